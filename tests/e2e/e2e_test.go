// Package e2e tests the programs of bin/ together, as a user runs them: in processes of their own, killed in the
// middle, fed over HTTP. It has make bring bin/ up to date first.
package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"strata/tests/repo"
)

var bin string // folder of the programs

func TestMain(m *testing.M) {
	os.Exit(func() int {
		var err error
		if bin, err = repo.Programs(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		os.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH")) // for scripts
		return m.Run()
	}())
}

func command(dir, name string, args ...string) *exec.Cmd {
	c := exec.Command(filepath.Join(bin, name), args...)
	c.Dir = dir
	return c
}

func run(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	out, err := command(dir, name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

func fails(t *testing.T, code int, dir, name string, args ...string) string {
	t.Helper()
	out, err := command(dir, name, args...).CombinedOutput()
	var e *exec.ExitError
	if !errors.As(err, &e) || e.ExitCode() != code {
		t.Fatalf("%s %s: %v, want exit code %d\n%s", name, strings.Join(args, " "), err, code, out)
	}
	return string(out)
}

// tree is every file of a folder with its content, hidden ones included.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		files[strings.TrimPrefix(path, dir)] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestPhantomThroughEverything(t *testing.T) {
	dir := t.TempDir()
	run(t, dir, "phantom", "in", "--slices", "2", "--tiles", "2,3", "--tile", "20,32,40", "--crop", "5,7", "--dtype", "uint16", "-q")
	mosaic := "in/mosaic_grid_3d_z01.ome.zarr"
	run(t, dir, "aip", mosaic, "a.ome.zarr", "-q", "--png", "a.png")
	run(t, dir, "zarr-tool", "validate", "a.ome.zarr", "--ngff", "-q")
	run(t, dir, "zarr-tool", "validate", mosaic, "--ngff", "-q")
	// however the mosaic is stored, the projection is the same
	for name, args := range map[string][]string{
		"v2":     {"--zarr_format", "2", "--codec", "gzip:1"},
		"shards": {"--chunks", "10,32,40", "--shard", "20,64,80", "--codec", "zstd:1"},
		"raw":    {"--codec", "raw"},
	} {
		stored := name + ".ome.zarr"
		run(t, dir, "zarr-tool", append([]string{"reencode", mosaic, stored, "-q"}, args...)...)
		run(t, dir, "aip", stored, "b.ome.zarr", "-q", "-f", "--png", "b.png", "--mem", "64MiB")
		run(t, dir, "zarr-tool", "validate", "a.ome.zarr", "b.ome.zarr", "-q")
		a, errA := os.ReadFile(filepath.Join(dir, "a.png"))
		b, errB := os.ReadFile(filepath.Join(dir, "b.png"))
		if errA != nil || errB != nil || !bytes.Equal(a, b) {
			t.Errorf("%s: another picture (%v, %v)", name, errA, errB)
		}
	}
}

// A web server lists nothing: levels and label images come from the metadata.
func TestZarrToolOverHTTP(t *testing.T) {
	dir := t.TempDir()
	run(t, dir, "phantom", "m", "--tiles", "1,2", "--tile", "8,16,16", "--n_levels", "2", "--progress", "none")
	image := filepath.Join("m", "mosaic_grid_3d_z00.ome.zarr")
	run(t, dir, "zarr-tool", "ome", filepath.Join(image, "0"), filepath.Join(image, "labels", "cells"), "--dtype", "uint16", "--n_levels", "1", "-q")
	labels := `{"zarr_format": 3, "node_type": "group", "attributes": {"ome": {"version": "0.5", "labels": ["cells"]}}}`
	if err := os.WriteFile(filepath.Join(dir, image, "labels", "zarr.json"), []byte(labels), 0o666); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.FileServer(http.Dir(dir)))
	defer server.Close()
	address := server.URL + "/" + filepath.ToSlash(image)
	run(t, dir, "zarr-tool", "validate", address)
	run(t, dir, "zarr-tool", "reencode", address, "copy.ome.zarr", "--codec", "raw", "-q")
	run(t, dir, "zarr-tool", "validate", "copy.ome.zarr", image)
	if err := os.WriteFile(filepath.Join(dir, image, "labels", "cells", "1", "c", "0", "0", "0"), []byte("broken"), 0o666); err != nil {
		t.Fatal(err)
	}
	if out := fails(t, 3, dir, "zarr-tool", "validate", address); !strings.Contains(out, address+"/labels/cells/1/c/0/0/0: ") {
		t.Errorf("a broken chunk of a label image is not named:\n%s", out)
	}
	// nothing there says what is below
	if out := fails(t, 3, dir, "zarr-tool", "validate", address+"/0/../.."); !strings.Contains(out, server.URL) {
		t.Errorf("no address in:\n%s", out)
	}
	server.Close()
	if out := fails(t, 1, dir, "zarr-tool", "info", address); !strings.Contains(out, "tried") {
		t.Errorf("a server that is gone:\n%s", out)
	}
}

func TestAIPOverHTTP(t *testing.T) {
	dir := t.TempDir()
	run(t, dir, "phantom", "in", "--tiles", "2,2", "--tile", "20,32,40", "--shard", "20,64,80", "-q")
	server := httptest.NewServer(http.FileServer(http.Dir(dir)))
	defer server.Close()
	mosaic := "/in/mosaic_grid_3d_z00.ome.zarr"
	run(t, dir, "aip", dir+mosaic, "local.ome.zarr", "-q")
	run(t, dir, "aip", server.URL+mosaic, "remote.ome.zarr", "-q")
	run(t, dir, "zarr-tool", "validate", "local.ome.zarr", "remote.ome.zarr", "-q")
	fails(t, 3, dir, "aip", server.URL+"/in/none.ome.zarr", "none.ome.zarr", "-q")
}

// Killed or interrupted at any moment, aip leaves the old output as it was, or
// the new one complete; the next run removes what was left of the dead one.
func TestKilledInTheMiddle(t *testing.T) {
	dir := t.TempDir()
	run(t, dir, "phantom", "in", "--tiles", "4,4", "--tile", "100,128,128", "--codec", "gzip:1", "-q")
	mosaic := "in/mosaic_grid_3d_z00.ome.zarr"
	started := time.Now()
	run(t, dir, "aip", mosaic, "new.ome.zarr", "-q", "--n_levels", "2", "--png", "new.png")
	whole := time.Since(started)
	run(t, dir, "aip", mosaic, "out.ome.zarr", "-q", "--n_levels", "0")
	old, renewed := tree(t, dir+"/out.ome.zarr"), tree(t, dir+"/new.ome.zarr")
	same := func(a, b map[string]string) bool {
		if len(a) != len(b) {
			return false
		}
		for k, v := range a {
			if b[k] != v {
				return false
			}
		}
		return true
	}
	killed := 0
	signals := []syscall.Signal{syscall.SIGKILL, syscall.SIGINT, syscall.SIGTERM}
	// 15 moments of a run; more where the machine was busier when the run was timed than now
	for i := 0; i < 15 || killed < 5 && i < 75; i++ {
		sig := signals[i%3]
		c := command(dir, "aip", mosaic, "out.ome.zarr", "-f", "-q", "--n_levels", "2", "--png", "out.png")
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(whole * time.Duration(i%15) / 15)
		_ = c.Process.Signal(sig) // it may have ended
		err := c.Wait()
		got := tree(t, dir+"/out.ome.zarr")
		_, pngErr := os.Stat(dir + "/out.png")
		switch {
		case err == nil:
			if !same(got, renewed) || pngErr != nil {
				t.Fatalf("%v after %d/15 of a run: it succeeded, but the output is not the new one", sig, i%15)
			}
			whole = whole * 4 / 5
			run(t, dir, "aip", mosaic, "out.ome.zarr", "-f", "-q", "--n_levels", "0")
			if err := os.Remove(dir + "/out.png"); err != nil {
				t.Fatal(err)
			}
		case same(got, old) && pngErr != nil:
			killed++
		case sig == syscall.SIGKILL && same(got, renewed):
			// between the renames of a commit: each output is whole
			run(t, dir, "aip", mosaic, "out.ome.zarr", "-f", "-q", "--n_levels", "0")
			_ = os.Remove(dir + "/out.png") // it may not be there yet
		default:
			t.Fatalf("%v after %d/15 of a run: neither the old output nor the new one", sig, i%15)
		}
		if code := c.ProcessState.ExitCode(); err != nil && sig != syscall.SIGKILL && code != 128+int(sig) && code != -1 {
			t.Errorf("%v: exit code %d, want %d", sig, code, 128+int(sig))
		}
	}
	if killed < 5 {
		t.Errorf("only %d of 75 runs were hit in the middle", killed)
	}
	run(t, dir, "aip", mosaic, "other.ome.zarr", "-q")
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") {
			t.Errorf("%s was left behind", e.Name())
		}
	}
}

// Memory is flat: eight times the input, the same peak, far below the ceiling.
func TestMemoryIsBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("writes 300 MB")
	}
	dir := t.TempDir()
	peak := func(tiles string, args ...string) int64 {
		run(t, dir, "phantom", append([]string{"in", "--noise", "--tiles", tiles, "--tile", "64,128,128", "-q", "-f"}, args...)...)
		run(t, dir, "aip", "in/mosaic_grid_3d_z00.ome.zarr", "out.ome.zarr", "-q", "-f", "--report", "r.json")
		b, err := os.ReadFile(dir + "/r.json")
		if err != nil {
			t.Fatal(err)
		}
		var r struct {
			Peak int64 `json:"peak_resident_bytes"`
		}
		if err := json.Unmarshal(b, &r); err != nil || r.Peak == 0 {
			t.Fatalf("no peak in the record: %v", err)
		}
		return r.Peak
	}
	for _, codec := range []string{"raw", "zstd:1", "blosc-zstd:1"} {
		small, large := peak("2,4", "--codec", codec), peak("8,8", "--codec", codec)
		t.Logf("%s: %d MiB for 32 MiB of input, %d MiB for 256 MiB", codec, small>>20, large>>20)
		if large > 256<<20 || large > small+64<<20 {
			t.Errorf("%s: peak grew from %d to %d MiB with the input", codec, small>>20, large>>20)
		}
	}
}
