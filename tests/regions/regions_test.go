package regions

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const page = "# Title\n\nIt takes <!-- seconds: begin -->3<!-- seconds: end --> s.\n\n<!-- table: begin -->\n| old |\n<!-- table: end -->\nAgain <!-- seconds: begin -->3<!-- seconds: end -->.\n"

func TestFill(t *testing.T) {
	got, err := Fill(page, map[string]string{"seconds": "4.5", "table": "| new |\n| row |\n"})
	want := strings.NewReplacer(">3<", ">4.5<", "| old |", "| new |\n| row |").Replace(page)
	if err != nil || got != want {
		t.Errorf("%v\n%s", err, got)
	}
	if again, err := Fill(got, map[string]string{"seconds": "4.5"}); err != nil || again != got {
		t.Errorf("filled again: %v\n%s", err, again)
	}
	for name, text := range map[string]string{
		"rows":    page,
		"seconds": "<!-- seconds: end --><!-- seconds: begin -->",
		"table":   "<!-- table: begin -->| a |<!-- table: end -->\n",
	} {
		if got, err := Fill(text, map[string]string{name: "x"}); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v\n%s", name, err, got)
		}
	}
}

func TestText(t *testing.T) {
	if got, err := Text(page, "table"); err != nil || got != "| old |\n" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := Text(page, "rows"); err == nil {
		t.Error("a region that is not there has a text")
	}
}

// A form that lacks a region leaves the page as it was.
func TestWrite(t *testing.T) {
	file := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(file, []byte(page), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := Write(file, file, map[string]string{"rows": ""}); err == nil || !strings.HasPrefix(err.Error(), file+": ") {
		t.Errorf("error %v, want one that names the file", err)
	}
	if err := Write(file, file, map[string]string{"table": ""}); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(file); err != nil || string(b) != strings.Replace(page, "| old |\n", "", 1) {
		t.Errorf("%v\n%s", err, b)
	}
}
