package doctor

import (
	"context"
	"encoding/json"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"strata/tests/race"
	"strata/tests/sysinfotest"
)

// Whatever a file of a machine holds, there is a verdict in two lines, and nothing panics.
func TestGarbage(t *testing.T) {
	race.Leave(t)
	for machine, path := range map[string]string{"a6000": "/data", "nfs-rdma": "/vast", "slurm-apptainer": "/well", "degraded-raid": "/data"} {
		t.Run(machine, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := sysinfotest.Unpack(filepath.Join("../../../pkg/sysinfo/testdata", machine+".txtar"), dir); err != nil {
				t.Fatal(err)
			}
			var files []string
			if err := filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
				if err == nil && e.Type().IsRegular() {
					files = append(files, name)
				}
				return err
			}); err != nil {
				t.Fatal(err)
			}
			for i, name := range files {
				kept, err := os.ReadFile(name)
				if err != nil {
					t.Fatal(err)
				}
				half := string(kept[:len(kept)/2])
				content := []string{"", "\x00\xff -1 : = / \n\n", strings.Repeat("9", 400), half, half + "\n" + half + "\xe2\x82"}[i%5]
				for _, c := range []string{content, ": \x1b[31m " + string(kept)} {
					if err := os.WriteFile(name, []byte(c), 0o666); err != nil {
						t.Fatal(err)
					}
					s, err := examine(context.Background(), target{root: dir, path: path})
					if err != nil {
						t.Fatalf("%s: %v", name, err)
					}
					var b strings.Builder
					if err := s.print(&b, true); err != nil {
						t.Fatal(err)
					}
					if strings.ContainsAny(b.String(), "\x1b\x00") || s.Reading.Backend == "" || s.Reading.Because == "" || s.Verdict == "" {
						t.Errorf("%s with %q: %+v", name, c, s.Reading)
					}
					if err := json.NewEncoder(io.Discard).Encode(s); err != nil {
						t.Errorf("%s with %q: %v", name, c, err)
					}
				}
				if err := os.WriteFile(name, kept, 0o666); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}
