package e2e

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"strata/pkg/runrecord"
)

// The --mem that a run names so that no core is idle is enough for that, and only a run that is short of memory names
// one. More memory changes no byte.
func TestMemoryForAllCores(t *testing.T) {
	if testing.Short() {
		t.Skip("runs every stage several times")
	}
	const cores = 4
	dir := t.TempDir()
	specimen(t, dir, "--slices", "3", "--tiles", "3,3", "--tile", "48,128,128", "--chunks", "48,128,128", "--codec", "zstd:1")
	run(t, dir, "phantom", "raw", "--raw", "--slices", "1", "--tiles", "3,3", "--tile", "64,96,96", "-q")
	stamp := regexp.MustCompile(`(?m)^  "timestamp": .*$`)
	idle := regexp.MustCompile(fmt.Sprintf(`^memory for ([0-9]+) of %d cores, which the others help: --mem ([0-9]+[MG]iB) is enough for (all|[0-9]+)$`, cores))
	short := 0
	for name, line := range memoryLines {
		t.Run(name, func(t *testing.T) {
			words := strings.Fields(line)
			once := func(size string) (runrecord.Record, []string, map[string]string, error) {
				for _, made := range []string{"/o", "/r.json"} {
					if err := os.RemoveAll(dir + made); err != nil {
						t.Fatal(err)
					}
				}
				if err := os.Mkdir(dir+"/o", 0o777); err != nil {
					t.Fatal(err)
				}
				args := slices.Concat(words[1:], []string{"-q", "-j", fmt.Sprint(cores), "--mem", size, "--report", "r.json"})
				if _, err := command(dir, words[0], args...).CombinedOutput(); err != nil {
					return runrecord.Record{}, nil, nil, err
				}
				var warned []string
				r := readRecord(t, dir+"/r.json")
				for _, w := range r.Warnings {
					if strings.Contains(w, "which the others help") {
						warned = append(warned, w)
					}
				}
				files := outputs(t, dir, true)
				for f, text := range files {
					if strings.HasSuffix(f, ".json") {
						files[f] = stamp.ReplaceAllString(text, "")
					}
				}
				return r, warned, files, nil
			}
			all, _, want, err := once("1GiB")
			if err != nil {
				t.Fatal(err)
			}
			if all.MemForAll != 0 {
				t.Errorf("1 GiB is not enough: %d", all.MemForAll)
			}
			for mib := 1; mib < 512; mib *= 2 {
				r, warned, files, err := once(fmt.Sprintf("%dMiB", mib))
				if err != nil {
					continue
				}
				for f := range want {
					if name == "align" { // it registers coarser levels where memory does not hold others
						break
					}
					if want[f] != files[f] {
						t.Errorf("%d MiB: %s is another file", mib, f)
					}
				}
				if r.MemForAll == 0 {
					if len(warned) > 0 {
						t.Errorf("%d MiB: all work, and yet: %q", mib, warned)
					}
					break
				}
				short++
				if len(warned) != 1 || !idle.MatchString(warned[0]) || r.MemForAll <= int64(mib)<<20 {
					t.Fatalf("%d MiB: all need %d: %q", mib, r.MemForAll, warned)
				}
				size := idle.FindStringSubmatch(warned[0])[2]
				if name == "align" { // with more memory it registers finer levels, which need more
					for range 3 {
						if more, _, _, err := once(size); err == nil && more.MemForAll != 0 {
							size = fmt.Sprintf("%dMiB", more.MemForAll>>20)
						}
					}
				}
				if more, warned, _, err := once(size); err != nil || more.MemForAll != 0 || len(warned) > 0 || more.Workers < all.Workers {
					t.Fatalf("%d MiB: told to give %s, which leaves %d workers of %d, and %q, %v", mib, size, more.Workers, all.Workers, warned, err)
				}
			}
		})
	}
	if short < 15 {
		t.Errorf("only %d runs were short of memory", short)
	}
}
