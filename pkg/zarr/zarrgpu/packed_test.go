//go:build !nocuda

package zarrgpu

import (
	"bytes"
	"compress/gzip"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"strata/pkg/dtype"
	"strata/pkg/gpu"
	"strata/pkg/zarr"
	"strata/pkg/zarr/codec"
	"strata/pkg/zarr/store"
	"strata/tests/gputest"
)

func blosc(t *testing.T, name string, shuffle codec.BloscShuffle, size int) codec.Codec {
	t.Helper()
	c, err := codec.Blosc(name, 5, shuffle, size, 0)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Regions of compressed chunks, in files of their own and in shards, some of them missing,
// decoded on the device and put together there: what goes up is what is stored, and what
// nvCOMP and the kernels are told.
func TestPacked(t *testing.T) {
	d, s := open(t, gpu.Limits{Memory: 64 << 20, Pinned: 64 << 20})
	files, shards := []int(nil), []int{4, 8, 10}
	for name, c := range map[string]struct {
		chunks, shard []int
		codecs        codec.Chain
		elem          dtype.Type
	}{
		"zstd":           {[]int{3, 8, 10}, files, codec.Chain{codec.Zstd(1, true)}, dtype.Uint16},
		"lz4 in shards":  {[]int{2, 4, 5}, shards, codec.Chain{codec.LZ4(1)}, dtype.Float32},
		"gzip":           {[]int{3, 5, 7}, files, codec.Chain{codec.Gzip(1)}, dtype.Uint8},
		"blosc-zstd":     {[]int{7, 21, 10}, files, codec.Chain{blosc(t, "zstd", codec.ByteShuffle, 4)}, dtype.Float32},
		"bits in shards": {[]int{2, 8, 10}, shards, codec.Chain{blosc(t, "lz4", codec.BitShuffle, 2)}, dtype.Int16},
		"checksum":       {[]int{2, 4, 10}, shards, codec.Chain{codec.Zstd(1, false), codec.CRC32C()}, dtype.Float64},
	} {
		t.Run(name, func(t *testing.T) {
			a := array(t, store.Folder(t.TempDir()), zarr.Spec{Shape: []int{7, 21, 30}, Chunks: c.chunks, Shard: c.shard, Codecs: c.codecs, DType: c.elem, Fill: 37})
			if c.shard == nil && c.chunks[0] < 7 {
				if err := os.Remove(a.Store().Location(a.ChunkKey([]int{1, 1, 1}))); err != nil {
					t.Fatal(err)
				}
			}
			counts := new(Counts)
			r, err := NewReader(a, d, Options{Backend: "nvcomp", Counts: counts})
			if err != nil {
				t.Fatal(err)
			}
			for _, g := range regions(a) {
				stored, chunks := int64(0), 0
				if err := a.Located(ctx, g, func(_ *zarr.ChunkFile, list []zarr.Located) error {
					for _, c := range list {
						stored += max(0, c.Size)
						chunks++
					}
					return nil
				}); err != nil {
					t.Fatal(err)
				}
				up, _, _ := d.Traffic()
				same(t, r, s, a, g)
				now, _, _ := d.Traffic()
				if most := stored + int64(chunks)*(16+128+200); now-up < stored || now-up > most {
					t.Errorf("%v: %d bytes went up, stored are %d in %d chunks", g, now-up, stored, chunks)
				}
			}
			if counts.Bytes(Host) != 0 || counts.Fallbacks() != 0 {
				t.Errorf("%d bytes by the host, %d regions read again: %v", counts.Bytes(Host), counts.Fallbacks(), counts.Reasons())
			}
		})
	}
}

// A chunk that is damaged is the error that the host has for it, on both ways to see it:
// in its headers, and by the decoder.
func TestPackedDamaged(t *testing.T) {
	d, s := open(t, gpu.Limits{Memory: 64 << 20, Pinned: 64 << 20})
	for _, at := range []int{0, 4} {
		a := array(t, store.Folder(t.TempDir()), zarr.Spec{Shape: []int{8, 64}, Chunks: []int{8, 32}, DType: dtype.Uint16, Codecs: codec.Chain{codec.LZ4(1)}})
		file := a.Store().Location(a.ChunkKey([]int{0, 1}))
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 6 {
			b[at+i] ^= 0xff
		}
		if err := os.WriteFile(file, b, 0o666); err != nil {
			t.Fatal(err)
		}
		want := a.Read(ctx, a.Bounds(), make([]byte, 1024))
		if want == nil {
			t.Fatal("the host decodes it")
		}
		r, err := NewReader(a, d, Options{})
		if err != nil {
			t.Fatal(err)
		}
		dst, err := d.Memory().Get(1024)
		if err != nil {
			t.Fatal(err)
		}
		err = r.Read(ctx, s, a.Bounds(), dst.Span)
		if err == nil || err.Error() != want.Error() {
			t.Errorf("damage at byte %d: %v, of the host: %v", at, err, want)
		}
		if err := s.Wait(); err != nil {
			t.Error(err)
		}
		dst.Release()
	}
}

// twoFaced is a store whose objects are damaged for those who open them, as the reader
// does that decodes on the device, and whole for those who get them.
type twoFaced struct{ store.Writer }

func (s twoFaced) Open(ctx context.Context, key string) (store.Object, error) {
	o, err := s.Writer.Open(ctx, key)
	return damaged{o}, err
}

type damaged struct{ store.Object }

func (d damaged) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	n, err := d.Object.ReadAt(ctx, p, off)
	for i := 20; i < n; i++ {
		p[i] ^= 0x5a
	}
	return n, err
}

// What the device cannot decode, because it says so, because a chunk is of a kind that it
// cannot, or because it has not the memory, is decoded by the host.
func TestPackedFallsBack(t *testing.T) {
	chain := codec.Chain{codec.Zstd(1, false)}
	spec := zarr.Spec{Shape: []int{64, 128}, Chunks: []int{64, 64}, DType: dtype.Float32, Codecs: chain}
	t.Run("status", func(t *testing.T) {
		d, s := open(t, gpu.Limits{Memory: 64 << 20, Pinned: 64 << 20})
		a := array(t, twoFaced{store.Folder(t.TempDir())}, spec)
		counts := new(Counts)
		var warnings []string
		r, err := NewReader(a, d, Options{Counts: counts, Warn: func(m string) { warnings = append(warnings, m) }})
		if err != nil {
			t.Fatal(err)
		}
		same(t, r, s, a, a.Bounds())
		same(t, r, s, a, a.Bounds())
		if counts.Fallbacks() != 2 || len(warnings) != 1 {
			t.Errorf("%d regions read again, warnings %q", counts.Fallbacks(), warnings)
		}
		if !strings.Contains(warnings[0], "chunk [0 0]") {
			t.Errorf("warning %q", warnings[0])
		}
	})
	t.Run("kind", func(t *testing.T) { // gzip of two members
		d, s := open(t, gpu.Limits{Memory: 64 << 20, Pinned: 64 << 20})
		dir := t.TempDir()
		spec := spec
		spec.Codecs = codec.Chain{codec.Gzip(1)}
		a := array(t, store.Folder(dir), spec)
		for x := range 2 {
			v := make([]byte, 4*64*64)
			if err := a.Read(ctx, zarr.Region{Start: []int{0, 64 * x}, Shape: []int{64, 64}}, v); err != nil {
				t.Fatal(err)
			}
			var b bytes.Buffer
			for _, half := range [][]byte{v[:5000], v[5000:]} {
				w := gzip.NewWriter(&b)
				if _, err := w.Write(half); err != nil {
					t.Fatal(err)
				}
				if err := w.Close(); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.WriteFile(filepath.Join(dir, a.ChunkKey([]int{0, x})), b.Bytes(), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		a.Close()
		counts := new(Counts)
		r, err := NewReader(a, d, Options{Counts: counts})
		if err != nil {
			t.Fatal(err)
		}
		for x := range 2 {
			same(t, r, s, a, zarr.Region{Start: []int{0, 64 * x}, Shape: []int{64, 64}})
		}
		if counts.Bytes(Host) != 2*16<<10 || counts.Fallbacks() != 0 || len(counts.Reasons()) != 1 {
			t.Errorf("%d bytes by the host, %d regions read again, because %q", counts.Bytes(Host), counts.Fallbacks(), counts.Reasons())
		}
	})
	t.Run("memory", func(t *testing.T) {
		d, s := open(t, gpu.Limits{Memory: 64 << 10, Pinned: 64 << 20})
		a := array(t, store.Folder(t.TempDir()), spec)
		counts := new(Counts)
		r, err := NewReader(a, d, Options{Counts: counts})
		if err != nil {
			t.Fatal(err)
		}
		for x := range 3 {
			same(t, r, s, a, zarr.Region{Start: []int{0, 32 * x}, Shape: []int{64, 64}})
		}
		if counts.Bytes(Host)+counts.Bytes(NVComp) < 3*16<<10 || counts.Bytes(Host) == 0 {
			t.Errorf("%d bytes by the host, %d decoded on the device", counts.Bytes(Host), counts.Bytes(NVComp))
		}
		if len(counts.Reasons()) != 1 {
			t.Errorf("because %q", counts.Reasons())
		}
	})
}

// A slot takes what Memory says of it, with what decoding takes beside it.
func TestPackedMemory(t *testing.T) {
	d, s := open(t, gpu.Limits{Memory: 64 << 20, Pinned: 64 << 20})
	a := array(t, store.Folder(t.TempDir()), zarr.Spec{Shape: []int{8, 100, 130}, Chunks: []int{4, 50, 60}, DType: dtype.Uint16, Codecs: codec.Chain{blosc(t, "zstd", codec.ByteShuffle, 2)}})
	r, err := NewReader(a, d, Options{})
	if err != nil {
		t.Fatal(err)
	}
	shape := []int{4, 100, 130}
	pinned, device := r.Memory(shape)
	dst, err := d.Memory().Get(r.Bytes(shape))
	if err != nil {
		t.Fatal(err)
	}
	defer dst.Release()
	before := d.Memory().Peak()
	if err := r.Read(ctx, s, zarr.Region{Start: []int{4, 0, 0}, Shape: shape}, dst.Span); err != nil {
		t.Fatal(err)
	}
	if err := s.Wait(); err != nil {
		t.Fatal(err)
	}
	if p, m := d.Pinned().Peak(), d.Memory().Peak()-before; p > pinned || m > device || 2*p < pinned || 2*m < device {
		t.Errorf("took %d and %d bytes, said %d and %d", p, m, pinned, device)
	}
}

// The first chunk that the device decodes is compared with the host's: where it differs, the host decodes the
// array, and a warning says which chunk it was. Its way to the host is not counted.
func TestPackedFirstChunk(t *testing.T) {
	spec := zarr.Spec{Shape: []int{64, 256}, Chunks: []int{64, 64}, DType: dtype.Float32, Codecs: codec.Chain{codec.Zstd(1, false)}}
	if os.Getenv(gputest.FaultVariable) == "" {
		d, s := open(t, gpu.Limits{Memory: 64 << 20, Pinned: 64 << 20})
		a := array(t, store.Folder(t.TempDir()), spec)
		counts := new(Counts)
		r, err := NewReader(a, d, Options{Counts: counts})
		if err != nil {
			t.Fatal(err)
		}
		_, before, _ := d.Traffic()
		f, err := r.Fetch(ctx, a.Bounds())
		if err != nil {
			t.Fatal(err)
		}
		f.Release()
		if _, down, _ := d.Traffic(); down-before != 4*12 || counts.Bytes(NVComp) != 64<<10 {
			t.Errorf("%d bytes came down, %d were decoded on the device", down-before, counts.Bytes(NVComp))
		}
		same(t, r, s, a, a.Bounds())
		gputest.NeedDouble(t)
		c := exec.Command(os.Args[0], "-test.run=^TestPackedFirstChunk$", "-test.count=1")
		c.Env = append(os.Environ(), gputest.FaultVariable+"=CUEMU_CHUNK=1:-1")
		if out, err := c.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	d, s := open(t, gpu.Limits{Memory: 64 << 20, Pinned: 64 << 20})
	a := array(t, store.Folder(t.TempDir()), spec)
	counts := new(Counts)
	var warnings []string
	r, err := NewReader(a, d, Options{Counts: counts, Warn: func(m string) { warnings = append(warnings, m) }})
	if err != nil {
		t.Fatal(err)
	}
	gputest.Fault()
	for x := range 3 {
		same(t, r, s, a, zarr.Region{Start: []int{0, 64 * x}, Shape: []int{64, 64}})
	}
	if counts.Bytes(NVComp) != 0 || counts.Bytes(Host) != 3*16<<10 || counts.Fallbacks() != 1 {
		t.Errorf("%d bytes were decoded on the device, %d by the host, %d regions were read again", counts.Bytes(NVComp), counts.Bytes(Host), counts.Fallbacks())
	}
	if len(warnings) != 1 || !strings.Contains(warnings[0], "chunk [0 0]: nvCOMP 6.0.0 decodes it otherwise than the host") {
		t.Errorf("warnings %q", warnings)
	}
}

// A chunk with a checksum is not decoded on the device, and not on the host, if a bit of it is flipped, wherever it
// lies.
func TestPackedChecksum(t *testing.T) {
	d, s := open(t, gpu.Limits{Memory: 64 << 20, Pinned: 64 << 20})
	for _, name := range []string{"raw", "lz4", "zstd:1", "gzip:1", "blosc-lz4", "blosc-zstd:1"} {
		for _, shard := range [][]int{nil, {8, 64}} {
			chain, err := codec.FromFlag(name+codec.ChecksumSuffix, dtype.Uint16, 3)
			if err != nil {
				t.Fatal(err)
			}
			a := array(t, store.Folder(t.TempDir()), zarr.Spec{Shape: []int{8, 64}, Chunks: []int{8, 32}, Shard: shard, DType: dtype.Uint16, Codecs: chain})
			var file string
			var at, n int64
			part := zarr.Region{Start: []int{3, 40}, Shape: []int{1, 4}} // of the second chunk
			if err := a.Located(ctx, part, func(f *zarr.ChunkFile, chunks []zarr.Located) error {
				file, at, n = f.Location(), chunks[0].Offset, chunks[0].Size
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			whole, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for i := range int64(25) {
				bit := 8*at + i*(8*n-1)/24
				damaged := bytes.Clone(whole)
				damaged[bit/8] ^= 1 << (bit % 8)
				if err := os.WriteFile(file, damaged, 0o666); err != nil {
					t.Fatal(err)
				}
				for _, g := range []zarr.Region{a.Bounds(), part} {
					a.Close()
					r, err := NewReader(a, d, Options{Backend: "auto"})
					if err != nil {
						t.Fatal(err)
					}
					dst, err := d.Memory().Get(1024)
					if err != nil {
						t.Fatal(err)
					}
					if err = r.Read(ctx, s, g, dst.Span); err == nil || !strings.Contains(err.Error(), file) {
						w, _ := r.Way()
						t.Errorf("%s in shards of %v, bit %d of %d bytes, region %v by way of %s: %v", name, shard, bit-8*at, n, g, w, err)
					}
					if err := s.Wait(); err != nil {
						t.Error(err)
					}
					dst.Release()
				}
			}
		}
	}
}
