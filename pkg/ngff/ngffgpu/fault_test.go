//go:build !nocuda

package ngffgpu

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"strata/pkg/dtype"
	"strata/pkg/filelayer"
	"strata/pkg/gpu"
	"strata/pkg/gpu/nvcomp"
	"strata/pkg/ngff"
	"strata/pkg/settings"
	"strata/pkg/zarr"
	"strata/pkg/zarr/store"
	"strata/tests/gputest"
)

// faults are calls that fail, the how-manieth time, and with what: 2 is out of memory, 700 a
// fault after which all else fails.
func faults() (list []string) {
	for _, c := range []struct {
		call string
		n    int
	}{{"cuMemAlloc_v2", 8}, {"cuMemHostAlloc", 5}, {"cuModuleLoadDataEx", 2}, {"cuLaunchKernel", 5}, {"cuMemcpyDtoHAsync_v2", 5}, {"cuStreamSynchronize", 4}, {"cuFileWrite", 3}, {"chunk", 3}} {
		for n := range c.n {
			for _, code := range []string{"2", "700s"} {
				if c.call == "cuFileWrite" {
					code = map[string]string{"2": "5", "700s": "-4096"}[code] // EIO; only a page
				} else if c.call == "chunk" { // of nvCOMP
					code = map[string]string{"2": "11", "700s": "12"}[code]
				}
				list = append(list, fmt.Sprintf("%s:%d:%s", c.call, n+1, code))
			}
		}
	}
	return list
}

// Whatever fails: the image is as without a device, or there is an error, and every chunk
// that is there is whole.
func TestFaults(t *testing.T) {
	if fault := os.Getenv("STRATA_TEST_FAULT"); fault != "" {
		faulty(t, fault, os.Getenv("STRATA_TEST_CODEC"))
		return
	}
	if testing.Short() {
		t.Skip("a process for each fault")
	}
	for _, fault := range faults() {
		for _, codecs := range []string{"raw", "straight", "blosc-zstd"} {
			if codecs != "straight" && strings.HasPrefix(fault, "cuFile") || codecs != "blosc-zstd" && strings.HasPrefix(fault, "chunk") {
				continue
			}
			t.Run(codecs+"/"+fault, func(t *testing.T) {
				t.Parallel()
				c := exec.Command(os.Args[0], "-test.run=^TestFaults$", "-test.count=1")
				env := "CUEMU_FAIL=" + fault
				if chunk, ok := strings.CutPrefix(fault, "chunk:"); ok {
					env = "CUEMU_CHUNK=" + chunk
				}
				c.Env = append(os.Environ(), gputest.FaultVariable+"="+env, "STRATA_TEST_FAULT="+fault, "STRATA_TEST_CODEC="+codecs)
				if out, err := c.CombinedOutput(); err != nil {
					t.Errorf("%v\n%s", err, out)
				} else if bytes.Contains(out, []byte("LEAK")) && !strings.HasSuffix(fault, "s") { // a lost context gives nothing back
					t.Errorf("the double says:\n%s", out)
				}
			})
		}
	}
}

// faulty writes an image while a call fails.
func faulty(t *testing.T, fault, codecs string) {
	shape, chunks, tile, straight := []int{4, 24, 40}, []int{2, 16, 16}, []int{4, 16, 16}, codecs == "straight"
	if straight {
		shape, chunks, tile, codecs = []int{4, 80, 80}, []int{2, 64, 64}, []int{4, 64, 64}, "raw"
	}
	im := imageOf(t, "zyx", dtype.Uint16, shape, chunks, tile, codecs)
	im.Format, im.Levels = 3, 2
	im.codecs(t, codecs)
	want := im.onHost(t)
	list, err := gpu.Devices()
	if err != nil {
		t.Fatal(err)
	}
	d, err := gpu.Open(list[0], much)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := nvcomp.Open(d); err != nil { // which is tried then
		t.Fatal(err)
	}
	gputest.Fault()
	dir := t.TempDir()
	var o Options
	if straight {
		s := settings.Default()
		s.Threads, s.Threshold = 2, 1
		if o.Files, err = filelayer.NewPool(d, s, nil); err != nil {
			t.Fatal(err)
		}
	}
	got, err := im.onDevice(d, store.Folder(dir), o)
	if straight {
		if closed := o.Files.Close(); closed != nil && d.Lost() == nil {
			t.Error(closed)
		}
	}
	if closed := d.Close(); closed != nil && d.Lost() == nil {
		t.Error(closed)
	}
	if err == nil {
		same(t, got, want)
		return
	}
	var call *gpu.Error
	if named, _, _ := strings.Cut(fault, ":"); !errors.As(err, &call) || call.Call != named && named != "cuLaunchKernel" {
		t.Errorf("%v, want %s to fail", err, named)
	}
	if lost := strings.HasSuffix(fault, "s"); lost && !errors.Is(err, gpu.ErrLost) {
		t.Errorf("lost, but: %v", err)
	}
	if _, err := ngff.Open(ctx, store.Folder(dir), ""); err == nil {
		t.Error("an image that was not finished is one")
	}
	wholeChunks(t, dir, want)
}

// wholeChunks looks at all that is left in a folder of an image.
func wholeChunks(t *testing.T, dir string, want *ngff.Writer) {
	t.Helper()
	for k := range want.Levels() {
		a, err := zarr.OpenArray(ctx, store.Folder(dir), fmt.Sprint(k))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		err = filepath.WalkDir(filepath.Join(dir, fmt.Sprint(k)), func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			if strings.Contains(e.Name(), ".tmp-") {
				t.Errorf("left behind: %s", path)
			}
			key, err := filepath.Rel(filepath.Join(dir, fmt.Sprint(k), "c"), path)
			if err != nil || strings.HasPrefix(key, "..") {
				return err
			}
			var index []int
			for _, s := range strings.Split(key, "/") {
				var i int
				if _, err := fmt.Sscan(s, &i); err != nil {
					return err
				}
				index = append(index, i)
			}
			r, err := a.ShardRegion(index)
			if err != nil {
				return err
			}
			var b [2][]byte
			for i, from := range []*zarr.Array{a, want.Array(k)} {
				b[i] = make([]byte, volume(r.Shape)*a.DType().Size())
				if err := from.Read(ctx, r, b[i]); err != nil {
					return err
				}
			}
			if !bytes.Equal(b[0], b[1]) {
				t.Errorf("level %d: chunk %v is not what it should be", k, index)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
