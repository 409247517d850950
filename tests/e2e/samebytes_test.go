package e2e

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The same run writes the same bytes again, whatever the workers and the memory are: images with all that they note,
// tables, metrics but for their time.
func TestStagesSameBytes(t *testing.T) {
	if testing.Short() {
		t.Skip("runs every stage twice")
	}
	dir := t.TempDir()
	specimen(t, dir, "--slices", "3", "--tiles", "2,2", "--tile", "48,96,96", "--chunks", "24,48,48", "--codec", "zstd:1")
	run(t, dir, "phantom", "raw", "--raw", "--slices", "1", "--tiles", "2,2", "--tile", "64,96,96", "-q")
	stamp := regexp.MustCompile(`(?m)^  "timestamp": .*$`)
	for name, line := range memoryLines {
		t.Run(name, func(t *testing.T) {
			made := func(more ...string) map[string]string {
				if err := os.RemoveAll(dir + "/o"); err != nil {
					t.Fatal(err)
				}
				if err := os.Mkdir(dir+"/o", 0o777); err != nil {
					t.Fatal(err)
				}
				words := strings.Fields(line)
				run(t, dir, words[0], slices.Concat(words[1:], more, []string{"-q"})...)
				files := outputs(t, dir, true)
				for f, text := range files {
					files[f] = stamp.ReplaceAllString(text, "")
				}
				return files
			}
			first := made("-j", "1", "--mem", "1GiB")
			for _, more := range [][]string{{"-j", "4", "--mem", "1GiB"}, {"-j", "3", "--mem", "160MiB"}} {
				again := made(more...)
				if !slices.Equal(slices.Sorted(maps.Keys(first)), slices.Sorted(maps.Keys(again))) {
					t.Fatalf("%v: other files", more)
				}
				for f := range first {
					if first[f] != again[f] {
						t.Errorf("%v: %s differs", more, f)
					}
				}
			}
		})
	}
}
