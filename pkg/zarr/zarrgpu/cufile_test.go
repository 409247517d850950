//go:build !nocuda

package zarrgpu

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"strata/pkg/dtype"
	"strata/pkg/filelayer"
	"strata/pkg/gpu"
	"strata/pkg/gpu/cufile"
	"strata/pkg/meter"
	"strata/pkg/settings"
	"strata/pkg/zarr"
	"strata/pkg/zarr/codec"
	"strata/pkg/zarr/store"
	"strata/tests/gputest"
)

// files is a pool of threads that leave everything to cuFile that it takes.
func files(t *testing.T, d *gpu.Device, compat settings.Mode) *filelayer.Pool {
	t.Helper()
	s := settings.Default()
	s.Threads, s.Threshold, s.Compat = 2, 0, compat
	p, err := filelayer.NewPool(d, s, func(text string) { t.Log(text) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// Regions of raw chunks, in files of their own and in shards, some of them missing, read
// straight into the device and put together there.
func TestStraight(t *testing.T) {
	d, s := open(t, gpu.Limits{Memory: 64 << 20, Pinned: 64 << 20})
	pool := files(t, d, settings.Auto)
	if ok, reason := pool.Mode(); !ok {
		t.Skipf("the file system of %s: %s", t.TempDir(), reason)
	}
	for name, spec := range map[string]zarr.Spec{
		"files":  {Chunks: []int{3, 8, 10}, DType: dtype.Uint16},
		"shards": {Chunks: []int{2, 4, 5}, Shard: []int{4, 8, 10}, DType: dtype.Float32},
		"bytes":  {Chunks: []int{3, 5, 7}, DType: dtype.Uint8, Format: 2},
	} {
		t.Run(name, func(t *testing.T) {
			spec.Shape, spec.Fill = []int{7, 21, 30}, 37
			a := array(t, store.Folder(t.TempDir()), spec)
			if spec.Shard == nil {
				if err := os.Remove(a.Store().Location(a.ChunkKey([]int{1, 1, 1}))); err != nil {
					t.Fatal(err)
				}
			}
			counts, m := new(Counts), new(meter.Meter)
			r, err := NewReader(a, d, Options{Files: pool, Counts: counts, Meter: m})
			if err != nil {
				t.Fatal(err)
			}
			if w, why := r.Way(); w != GDS {
				t.Fatalf("by way of %v: %s", w, why)
			}
			total := int64(0)
			for _, g := range append(regions(a), zarr.Region{Start: []int{1, 1, 1}, Shape: []int{5, 19, 27}}) {
				same(t, r, s, a, g)
				total += r.Bytes(g.Shape)
			}
			if got := counts.Bytes(GDS); got != total || counts.Fallbacks() != 0 {
				t.Errorf("%d of %d bytes came straight, %d regions were read again", got, total, counts.Fallbacks())
			}
			if m.BytesRead() == 0 {
				t.Error("nothing was counted as read")
			}
		})
	}
}

// regions are all of an array, one chunk of it, and some that cut through chunks.
func regions(a *zarr.Array) []zarr.Region {
	c := a.Chunks()
	one := zarr.Region{Start: make([]int, len(c)), Shape: c}
	for d, n := range c {
		if 2*n <= a.Shape()[d] {
			one.Start[d] = n
		}
	}
	return []zarr.Region{a.Bounds(), one, {Start: []int{0, 0, 0}, Shape: []int{1, 1, 1}},
		{Start: []int{2, 7, 5}, Shape: []int{4, 9, 21}}, {Start: []int{0, one.Start[1], 0}, Shape: []int{a.Shape()[0], c[1], a.Shape()[2]}}, {Start: []int{1, 1, 1}, Shape: []int{0, 1, 1}}}
}

// What takes less memory than cutting through chunks needs is read by the host.
func TestStraightLittleMemory(t *testing.T) {
	d, s := open(t, gpu.Limits{Memory: 48 << 10, Pinned: 64 << 20})
	pool := files(t, d, settings.Auto)
	a := array(t, store.Folder(t.TempDir()), zarr.Spec{Shape: []int{64, 128}, Chunks: []int{64, 64}, DType: dtype.Float32})
	counts := new(Counts)
	r, err := NewReader(a, d, Options{Files: pool, Counts: counts})
	if err != nil {
		t.Fatal(err)
	}
	same(t, r, s, a, zarr.Region{Start: []int{0, 64}, Shape: []int{64, 64}})
	same(t, r, s, a, zarr.Region{Start: []int{0, 32}, Shape: []int{64, 64}})
	if counts.Bytes(Host) != 16<<10 || counts.Bytes(GDS) != 16<<10 || counts.Fallbacks() != 0 || len(counts.Reasons()) != 1 {
		t.Errorf("%d bytes by the host, %d straight, %d regions read again, because %q", counts.Bytes(Host), counts.Bytes(GDS), counts.Fallbacks(), counts.Reasons())
	}
}

// A file that is too short is the error that the host has for it; one that cuFile cannot
// open is read by the host and warned of once.
func TestStraightFaults(t *testing.T) {
	d, _ := open(t, gpu.Limits{Memory: 64 << 20, Pinned: 64 << 20})
	pool := files(t, d, settings.Auto)
	a := array(t, store.Folder(t.TempDir()), zarr.Spec{Shape: []int{8, 16}, Chunks: []int{8, 8}, DType: dtype.Float32})
	r, err := NewReader(a, d, Options{Files: pool})
	if err != nil {
		t.Fatal(err)
	}
	file := a.Store().Location(a.ChunkKey([]int{0, 1}))
	if err := os.Truncate(file, 100); err != nil {
		t.Fatal(err)
	}
	_, err = r.Fetch(ctx, a.Bounds())
	if err == nil || !strings.Contains(err.Error(), filepath.ToSlash(file)) {
		t.Errorf("a short chunk: %v", err)
	}
	want := a.Read(ctx, a.Bounds(), make([]byte, r.Bytes(a.Shape())))
	if want == nil || err.Error() != want.Error() {
		t.Errorf("a short chunk: %v, of the host %v", err, want)
	}
}

// Each array takes the best way that can serve it, or says why it cannot take the one that
// was asked for.
func TestWays(t *testing.T) {
	d, _ := open(t, gpu.Limits{Memory: 8 << 20, Pinned: 8 << 20})
	pool, compat := files(t, d, settings.Auto), files(t, d, settings.On)
	raw := zarr.Spec{Shape: []int{4, 4}, Chunks: []int{2, 2}, DType: dtype.Uint16}
	coded, transposed := raw, raw
	coded.Codecs = codec.Chain{codec.LZ4(1)}
	transposed.Order = 'F'
	six := zarr.Spec{Shape: []int{2, 2, 2, 2, 2, 2}, Chunks: []int{1, 1, 1, 1, 1, 2}, DType: dtype.Uint16}
	for i, c := range []struct {
		spec    zarr.Spec
		folder  bool
		backend string
		files   *filelayer.Pool
		way     Way
		why     string // of the way, or of the refusal
		refused bool
	}{
		{raw, true, "auto", pool, GDS, "", false},
		{raw, true, "", compat, Bounce, "compat_mode is on", false},
		{raw, true, "", nil, Bounce, "read by the host", false},
		{raw, false, "", pool, Bounce, "not files", false},
		{transposed, true, "", pool, Host, "C order", false},
		{six, true, "", pool, Host, "6 dimensions", false},
		{raw, true, "host", pool, Host, "", false},
		{raw, true, "bounce", pool, Bounce, "", false},
		{raw, true, "gds", pool, GDS, "", false},
		{raw, true, "gds", compat, 0, "compat_mode is on", true},
		{raw, true, "nvcomp", pool, 0, "not encoded", true},
		{coded, true, "gds", pool, 0, "encoded", true},
		{coded, true, "bounce", pool, 0, "encoded", true},
		{transposed, true, "bounce", pool, 0, "C order", true},
		{raw, true, "mmap", pool, Host, "", false},
		{coded, true, "direct", pool, Host, "", false},
		{raw, true, "tape", pool, 0, "none that a GPU has", true},
	} {
		var st store.Writer = store.Memory()
		if c.folder {
			st = store.Folder(t.TempDir())
		}
		a := array(t, st, c.spec)
		var said []string
		r, err := NewReader(a, d, Options{Backend: c.backend, Files: c.files, Debug: func(m string) { said = append(said, m) }})
		if c.refused {
			if err == nil || !strings.Contains(err.Error(), c.why) || !strings.HasPrefix(err.Error(), "--backend "+c.backend+" cannot read ") {
				t.Errorf("%d: %v, want %q", i, err, c.why)
			}
			continue
		}
		if err != nil {
			t.Errorf("%d: %v", i, err)
			continue
		}
		if w, why := r.Way(); w != c.way || !strings.Contains(why, c.why) || (why == "") != (c.why == "") || (len(said) > 0) != (why != "") {
			t.Errorf("%d: by way of %v because %q (said %q), want %v because %q", i, w, why, said, c.way, c.why)
		}
	}
}

// Pages go to where they lie in pages of the device's memory as in the file, of whole files, of chunks in
// shards and of parts of them.
func TestStraightPages(t *testing.T) {
	if os.Getenv("CUEMU_CUFILE_ALIGNED") == "" {
		gputest.NeedDouble(t)
		c := exec.Command(os.Args[0], "-test.run=^TestStraightPages$", "-test.count=1")
		c.Env = append(os.Environ(), "CUEMU_CUFILE_ALIGNED=1")
		if out, err := c.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	d, s := open(t, gpu.Limits{Memory: 64 << 20, Pinned: 64 << 20})
	pool := files(t, d, settings.Auto)
	if ok, reason := pool.Mode(); !ok {
		t.Skipf("the file system of %s: %s", t.TempDir(), reason)
	}
	for _, spec := range []zarr.Spec{
		{Chunks: []int{8, 32, 33}, DType: dtype.Uint16},
		{Chunks: []int{8, 32, 33}, Shard: []int{16, 64, 33}, DType: dtype.Uint16},
		{Chunks: []int{3, 5, 7}, Shard: []int{24, 75, 77}, DType: dtype.Uint8},
	} {
		spec.Shape = []int{30, 100, 90}
		a := array(t, store.Folder(t.TempDir()), spec)
		r, err := NewReader(a, d, Options{Files: pool})
		if err != nil {
			t.Fatal(err)
		}
		for _, g := range append(regions(a), zarr.Region{Start: []int{1, 1, 1}, Shape: []int{28, 98, 87}}) {
			same(t, r, s, a, g)
		}
	}
	if _, _, fallbacks := d.Straight(); fallbacks > 0 {
		t.Errorf("%d pieces did not go straight", fallbacks)
	}
}

// TestWhileCuFileStarts: regions come by the host while cuFile is being initialised, and straight from then on.
func TestWhileCuFileStarts(t *testing.T) {
	gputest.NeedDouble(t)
	d, s := open(t, gpu.Limits{Memory: 64 << 20, Pinned: 64 << 20})
	modules := filepath.Join(t.TempDir(), "modules") // who reads it waits for a writer
	if err := unix.Mkfifo(modules, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv(cufile.ModulesVariable, modules)
	pool := files(t, d, settings.Auto)
	pool.Demand()
	goOn := func() {
		if f, err := os.OpenFile(modules, os.O_RDWR, 0); err == nil {
			pool.Mode()
			_ = f.Close()
		}
	}
	t.Cleanup(goOn) // else a test that fails waits forever
	a := array(t, store.Folder(t.TempDir()), zarr.Spec{Shape: []int{7, 21, 30}, Chunks: []int{3, 8, 10}, DType: dtype.Uint16})
	counts := new(Counts)
	r, err := NewReader(a, d, Options{Files: pool, Counts: counts})
	if err != nil {
		t.Fatal(err)
	}
	g := zarr.Region{Start: []int{1, 1, 1}, Shape: []int{5, 19, 27}}
	n := r.Bytes(g.Shape)
	same(t, r, s, a, g)
	if counts.Bytes(Bounce) != n || counts.Bytes(GDS) != 0 {
		t.Errorf("before: %d bytes by the host, %d straight, want %d and 0", counts.Bytes(Bounce), counts.Bytes(GDS), n)
	}
	goOn()
	same(t, r, s, a, g)
	if counts.Bytes(Bounce) != n || counts.Bytes(GDS) != n {
		t.Errorf("after: %d bytes by the host, %d straight, want %d of each", counts.Bytes(Bounce), counts.Bytes(GDS), n)
	}
}
