package aip

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"strata/pkg/cli/flags"
	"strata/pkg/mem"
	"strata/tests/cudaemu"
	"strata/tests/repo"
)

// TestBatchGivesBack: a process that does many pairs holds no more files and memory after twenty than after two: of
// zip files, folders and shards, also where a pair fails when its input is open.
func TestBatchGivesBack(t *testing.T) {
	t.Setenv(cudaemu.Variable, "libcuda.so.none")
	dir := t.TempDir()
	var list strings.Builder
	run := func(times int) (files int, bytes int64) {
		list.Reset()
		for i := range times {
			for _, name := range []string{"m_u16_v3shard", "m_u8_v3raw"} {
				in := filepath.Join(repo.Path(), "tests/golden/inputs", name+".zip", name+".ome.zarr")
				foreign := filepath.Join(dir, "foreign", fmt.Sprint(i, name))
				if err := os.MkdirAll(filepath.Join(foreign, "somebody's"), 0o777); err != nil {
					t.Fatal(err)
				}
				fmt.Fprintf(&list, "%s\t%s/%d/%s.ome.zarr\n%s\t%s\n", in, dir, i, name, in, foreign)
			}
		}
		if code, said := execute(t, list.String()); code != 2 || !strings.Contains(said, fmt.Sprintf("%d of %d pairs done", 2*times, 4*times)) {
			t.Fatalf("exit code %d: %s", code, said)
		}
		open, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Skip(err) // not on Linux
		}
		return len(open), mem.InUse()
	}
	files, held := run(2)
	if f, h := run(20); f > files || h > held {
		t.Errorf("after 20 rounds %d files and %d bytes, after 2 %d and %d", f, h, files, held)
	}
}

// execute runs aip in this process for the pairs of a list.
func execute(t *testing.T, list string) (code int, said string) {
	t.Helper()
	c := Command()
	var stderr bytes.Buffer
	err := flags.Parse(c, []string{"--batch", "-", "-f", "--png", "{out}.png"}, func(l *flags.Line) error {
		code = c.Run(l, flags.Streams{In: strings.NewReader(list), Out: io.Discard, Err: &stderr})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return code, stderr.String()
}
