package zarrtool

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"strata/pkg/dtype"
	"strata/pkg/ngff"
	"strata/pkg/zarr/store"
	"strata/tests/clitest"
	"strata/tests/race"
)

// An image whose pyramid is made anew in place is killed or interrupted at different
// moments. It has its old levels or its new ones, can be read, and the next run leaves
// nothing else in it.
func TestOmeInPlaceKilled(t *testing.T) {
	race.Leave(t)
	program, image := clitest.Program(t, "zarr-tool"), filepath.Join(t.TempDir(), "image.ome.zarr")
	run := func(sig os.Signal, after time.Duration, levels string) (took time.Duration, ended bool) {
		t.Helper()
		c := exec.Command(program, "ome", image, "--n_levels", levels, "-q")
		begun := time.Now()
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		if sig != nil {
			time.Sleep(after)
			_ = c.Process.Signal(sig)
		}
		err := c.Wait()
		if err != nil && sig == nil {
			t.Fatal(err)
		}
		return time.Since(begun), err == nil
	}
	makeImage(t, image, 2)
	took, _ := run(nil, 0, "4")
	ways := []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM, syscall.SIGINT}
	stopped := 0
	const tries = 18
	for i := range tries {
		levels, other := "2", 5
		if i%2 == 1 {
			levels, other = "4", 3
		}
		if _, ended := run(ways[i%len(ways)], took*time.Duration(i+1)/tries, levels); !ended {
			stopped++
		}
		im, err := ngff.Open(t.Context(), store.Folder(image), "") // all levels, or none
		if err != nil {
			t.Fatal(err)
		}
		want := int(levels[0]-'0') + 1
		if n := len(im.Levels); n != other && n != want {
			t.Errorf("%d levels", n)
		}
		for _, l := range im.Levels {
			shape := l.Array.Shape()
			b := make([]byte, shape[0]*shape[1]*shape[2])
			if err := l.Array.Read(t.Context(), l.Array.Bounds(), b); err != nil {
				t.Fatal(err)
			}
			for j, v := range b {
				if v != 7 {
					t.Fatalf("voxel %d of level %s is %d", j, l.Path, v)
				}
			}
		}
		run(nil, 0, levels)
		if n := names(t, image); n != want+1 {
			t.Errorf("%d entries for %d levels and the metadata", n, want)
		}
	}
	if stopped == 0 {
		t.Error("no run was stopped")
	}
}

// makeImage writes an image of sevens.
func makeImage(t *testing.T, path string, levels int) {
	t.Helper()
	shape := []int{32, 256, 256}
	w, err := ngff.Create(t.Context(), store.Folder(path), "", ngff.ImageSpec{Format: 3, Shape: shape, Chunks: []int{16, 32, 32},
		DType: dtype.Uint8, Axes: ngff.SpaceAxes("zyx", "micrometer"), Scale: []float64{1, 1, 1}, Levels: levels})
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 32*256*256)
	for i := range b {
		b[i] = 7
	}
	if err := w.WriteTile(t.Context(), []int{0, 0, 0}, shape, b); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// names counts what lies in an image, hidden files of killed writers left out.
func names(t *testing.T, image string) int {
	t.Helper()
	entries, err := store.Folder(image).List(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}
