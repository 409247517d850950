package help

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"strata/pkg/cli/flags"
)

// A group of any number of programs fits a screen, and names them all.
func TestBriefGroup(t *testing.T) {
	for _, n := range []int{3, 17, 18, 19, 40, 90} {
		group := &flags.Command{Name: "all", Usage: "many programs"}
		for i := range n {
			group.Commands = append(group.Commands, &flags.Command{Name: fmt.Sprintf("program-%02d", i), Usage: "do something", Run: func(*flags.Line, flags.Streams) int { return 0 }})
		}
		var b bytes.Buffer
		if err := Brief(&b, group, "all"); err != nil {
			t.Fatal(err)
		}
		if lines := strings.Count(b.String(), "\n"); lines > screenLines {
			t.Errorf("%d programs: %d lines", n, lines)
		}
		for _, c := range group.Commands {
			if !strings.Contains(b.String(), c.Name) {
				t.Errorf("%d programs: no %s in\n%s", n, c.Name, b.String())
			}
		}
		if described := strings.Count(b.String(), "do something"); described != min(n, 18) && !(n > 18 && described >= 3) {
			t.Errorf("%d programs: %d are described", n, described)
		}
	}
}

func TestFew(t *testing.T) {
	for _, c := range []struct {
		text  string
		width int
		want  string
	}{
		{"also write a PNG", 16, "also write a PNG"},
		{"how far a tile may move; 0: not at all", 30, "how far a tile may move"},
		{"how far a tile may move (in voxels of level 0)", 30, "how far a tile may move"},
		{"where tiles were recorded: JSON or CSV", 30, "where tiles were recorded"},
		{"raw: no codec, and thus no time for it", 20, "raw: no codec, and…"},
		{"raw, zstd, lz4, gzip, blosc", 16, "raw, zstd, lz4…"},
		{"ångström × µm × ångström", 15, "ångström × µm…"},
		{"onlyoneverylongword", 8, ""},
		{"a b", 0, ""},
		{"", -3, ""},
	} {
		if got := few(c.text, c.width); got != c.want {
			t.Errorf("%q in %d: %q, want %q", c.text, c.width, got, c.want)
		}
	}
}
