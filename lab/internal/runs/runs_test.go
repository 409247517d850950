package runs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Records come by the names of their files; what is no record is an error that names it, and so is a folder without
// any.
func TestRead(t *testing.T) {
	dir := t.TempDir()
	if _, err := Read(t.Context(), dir); err == nil || !strings.Contains(err.Error(), dir+": no run records") {
		t.Errorf("an empty folder: %v", err)
	}
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	write("b.json", `{"tool": "align"}`)
	write("a.json", `{"tool": "slices", "command": "assess"}`)
	write("c.txt", "no record")
	all, err := Read(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 2 || all[0].Program() != "slices assess" || all[1].Program() != "align" || all[1].Path != filepath.Join(dir, "b.json") {
		t.Errorf("%v", all)
	}
	write("c.json", `{"exit_code": 1}`)
	if _, err := Read(t.Context(), dir); err == nil || !strings.Contains(err.Error(), "c.json") {
		t.Errorf("no record: %v", err)
	}
}

// The machine is named in one line that ends with a date, in a checkout or not.
func TestMachine(t *testing.T) {
	if got := Machine(); !regexp.MustCompile(`^\d+ cores \(.+\), commit [0-9a-f]*, \d{4}-\d\d-\d\d \d\d:\d\d UTC$`).MatchString(got) {
		t.Errorf("%q", got)
	}
}
