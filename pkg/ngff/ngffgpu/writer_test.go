//go:build !nocuda

package ngffgpu

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"strata/pkg/dtype"
	"strata/pkg/filelayer"
	"strata/pkg/gpu"
	"strata/pkg/gpu/nvcomp"
	"strata/pkg/gpu/trial"
	"strata/pkg/mem"
	"strata/pkg/ngff"
	"strata/pkg/settings"
	"strata/pkg/zarr"
	"strata/pkg/zarr/codec"
	"strata/pkg/zarr/store"
	"strata/tests/cudaemu"
	"strata/tests/gputest"
)

func TestMain(m *testing.M) { cudaemu.Main(m) }

var (
	ctx  = context.Background()
	much = gpu.Limits{Memory: 64 << 20, Pinned: 64 << 20}
)

// image is an image to be written, and its level 0.
type image struct {
	ngff.ImageSpec
	tile    []int
	data    []byte
	overlap bool // a tile is written while the next one is on the device
	odd     int  // where it begins in a buffer
}

// imageOf makes an image. shape and what follows have an axis for each of axes.
func imageOf(t *testing.T, axes string, kind dtype.Type, shape, chunks, tile []int, codecs string) *image {
	t.Helper()
	im := &image{tile: tile, ImageSpec: ngff.ImageSpec{
		Shape: shape, Chunks: chunks, DType: kind, Axes: ngff.SpaceAxes(axes, "micrometer"),
		Scale: slices.Repeat([]float64{1}, len(shape)), Levels: 3, Workers: 1, Fill: 3,
	}}
	im.codecs(t, codecs)
	im.data = make([]byte, volume(shape)*kind.Size())
	rng := rand.New(rand.NewPCG(uint64(len(im.data)), 7))
	for i := range im.data {
		im.data[i] = byte(rng.IntN(64)) // half of each byte, so that encoding pays; as floats finite
	}
	return im
}

func (im *image) codecs(t *testing.T, name string) {
	t.Helper()
	var err error
	if im.Codecs, err = codec.FromFlag(name, im.DType, max(im.Format, 2)); err != nil {
		t.Fatal(err)
	}
}

func volume(shape []int) int {
	n := 1
	for _, s := range shape {
		n *= s
	}
	return n
}

// tiles calls f for all tiles of an image until it fails.
func (im *image) tiles(f func(start, shape []int, elements []byte) error) error {
	for start := range ngff.TileOrder(im.Shape, im.tile, im.Axes) {
		shape := make([]int, len(start))
		for d := range shape {
			shape[d] = min(im.tile[d], im.Shape[d]-start[d])
		}
		if err := f(start, shape, im.crop(start, shape)); err != nil {
			return err
		}
	}
	return nil
}

// crop copies a box of level 0.
func (im *image) crop(start, shape []int) []byte {
	size := im.DType.Size()
	var out []byte
	for i := range volume(shape) {
		at, r := make([]int, len(shape)), i
		for d := len(shape) - 1; d >= 0; d-- {
			at[d] = start[d] + r%shape[d]
			r /= shape[d]
		}
		off := 0
		for d, n := range im.Shape {
			off = off*n + at[d]
		}
		out = append(out, im.data[off*size:][:size]...)
	}
	return out
}

// onHost writes the image without a device.
func (im *image) onHost(t *testing.T) *ngff.Writer {
	t.Helper()
	w, err := ngff.Create(ctx, store.Memory(), "", im.ImageSpec)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	if err := im.tiles(func(start, shape []int, b []byte) error { return w.WriteTile(ctx, start, shape, b) }); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(ctx); err != nil {
		t.Fatal(err)
	}
	return w
}

// onDevice writes the image from the memory of a device.
func (im *image) onDevice(d *gpu.Device, st store.Writer, o Options) (_ *ngff.Writer, err error) {
	out, err := ngff.Create(ctx, st, "", im.ImageSpec)
	if err != nil {
		return nil, err
	}
	defer out.Abort()
	w := NewWriter(out, d, o)
	if w.trial != nil {
		w.warmUp() // before the first tile, for the tests to know what is tried
	}
	var streams [2]*gpu.Stream
	for i := range streams {
		s, err := d.Stream()
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, s.Close()) }()
		streams[i] = s
	}
	n := volume(im.tile) * im.DType.Size()
	all, err := d.Memory().Get(int64(n + im.odd))
	if err != nil {
		return nil, err
	}
	defer all.Release()
	buffer := all.From(int64(im.odd), int64(n))
	host, err := d.Host(n)
	if err != nil {
		return nil, err
	}
	defer host.Release()
	var before *Tile
	defer func() { before.Release() }()
	err = im.tiles(func(start, shape []int, b []byte) error {
		s := streams[0]
		s.Upload(buffer, host.B[:copy(host.B, b)])
		if !im.overlap {
			return w.WriteTile(ctx, s, start, shape, buffer)
		}
		t, err := w.Begin(s, start, shape, buffer)
		if e := s.Wait(); e != nil || err != nil {
			t.Release()
			return w.first(e, err)
		}
		s.Zero(buffer) // it is ours again
		before, t = t, before
		if t == nil {
			return nil
		}
		return t.Write(ctx, streams[1])
	})
	if err == nil && before != nil {
		err = before.Write(ctx, streams[1])
	}
	if err != nil {
		return nil, err
	}
	return out, out.Close(ctx)
}

// same compares all levels.
func same(t *testing.T, got, want *ngff.Writer) {
	t.Helper()
	for k := range want.Levels() {
		var b [2][]byte
		for i, w := range []*ngff.Writer{got, want} {
			a := w.Array(k)
			b[i] = make([]byte, volume(a.Shape())*a.DType().Size())
			if err := a.Read(ctx, a.Bounds(), b[i]); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(b[0], b[1]) {
			t.Errorf("level %d differs from the host's", k)
		}
	}
}

// images are of all kinds of shapes. leaves says whether tiles can leave the device as they
// are stored.
func images(t *testing.T, codecs string, f func(t *testing.T, im *image, leaves bool)) {
	for _, c := range []struct {
		axes                string
		kind                dtype.Type
		shape, chunks, tile []int
		shard               []int
		levels              int
	}{
		{"yx", dtype.Float32, []int{64, 96}, []int{32, 32}, []int{32, 32}, nil, 3},
		{"yx", dtype.Float32, []int{64, 96}, []int{32, 32}, []int{32, 64}, []int{64, 32}, 3},
		{"yx", dtype.Uint16, []int{50, 70}, []int{32, 16}, []int{32, 32}, nil, 3},            // the far chunks are cut
		{"yx", dtype.Uint16, []int{49, 70}, []int{32, 16}, []int{32, 32}, []int{64, 64}, 3},  // seams
		{"yx", dtype.Uint8, []int{33, 64}, []int{40, 32}, []int{40, 32}, nil, 2},             // odd, in one chunk
		{"yx", dtype.Uint8, []int{33, 67}, []int{11, 13}, []int{11, 13}, nil, 2},             // odd chunks
		{"zyx", dtype.Uint16, []int{8, 32, 48}, []int{4, 16, 16}, []int{8, 16, 16}, nil, 2},  // chunks one behind the other
		{"zyx", dtype.Int16, []int{9, 32, 40}, []int{9, 16, 16}, []int{9, 16, 32}, nil, 2},   // z odd, in one chunk
		{"zyx", dtype.Float64, []int{6, 18, 40}, []int{4, 16, 16}, []int{4, 16, 16}, nil, 2}, //
		{"zyx", dtype.Uint64, []int{6, 16, 16}, []int{2, 8, 8}, []int{4, 8, 16}, nil, 2},     // taps, as sums may overflow
		{"zyx", dtype.Uint16, []int{7, 15, 33}, []int{3, 5, 7}, []int{6, 10, 14}, nil, 2},    // seams everywhere
		{"zyx", dtype.Float32, []int{3, 7, 9}, []int{1, 1, 2}, []int{1, 2, 4}, nil, 1},       // chunks of which level 1 needs nothing
		{"zyx", dtype.Uint16, []int{4, 15, 33}, []int{4, 5, 7}, []int{4, 10, 14}, nil, 0},    // no level 1
		{"czyx", dtype.Uint16, []int{3, 4, 16, 20}, []int{2, 4, 8, 8}, []int{2, 4, 8, 8}, nil, 2},
		{"czyx", dtype.Uint16, []int{2, 3, 16, 20}, []int{2, 3, 8, 8}, []int{2, 3, 8, 8}, nil, 1},
		{"tcyx", dtype.Int32, []int{2, 3, 16, 20}, []int{1, 2, 8, 8}, []int{1, 2, 16, 8}, []int{1, 2, 16, 16}, 1},
		{"zyx", dtype.Float16, []int{4, 8, 8}, []int{4, 8, 8}, []int{4, 8, 8}, nil, 1}, // no kernel
	} {
		for _, format := range []int{2, 3} {
			if format == 2 && c.shard != nil {
				continue
			}
			t.Run(fmt.Sprintf("%s/%v%v%v/%d", c.kind, c.shape, c.chunks, c.shard, format), func(t *testing.T) {
				im := imageOf(t, c.axes, c.kind, c.shape, c.chunks, c.tile, codecs)
				im.Format, im.Shard, im.Levels, im.overlap = format, c.shard, c.levels, format == 3
				if format == 3 {
					im.odd = im.DType.Size()
				}
				im.codecs(t, codecs)
				leaves := c.kind != dtype.Float16
				if codecs != "raw" && codecs != "gzip" {
					_, err := im.Codecs.Packing(volume(im.Chunks) * im.DType.Size())
					leaves = leaves && err == nil // tiny chunks are not compressed
				}
				f(t, im, leaves)
			})
		}
	}
}

// stored are the bytes that come down of tiles that leave as they are stored: the chunks of
// level 0, and what they give to level 1, in pieces of 16 bytes.
func stored(t *testing.T, w *ngff.Writer) (n int64) {
	t.Helper()
	a := w.Array(0)
	grid := make([]int, len(a.Shape()))
	for d, c := range a.Chunks() {
		grid[d] = (a.Shape()[d] + c - 1) / c
	}
	size, made := int64(a.DType().Size()), int64(0)
	for i := range volume(grid) {
		index := make([]int, len(grid))
		for d, r := len(grid)-1, i; d >= 0; d-- {
			index[d] = r % grid[d]
			r /= grid[d]
		}
		p := w.Part(index)
		n += int64(volume(a.Chunks())) * size
		if p.Made.Shape != nil {
			n += aligned(int64(volume(p.Made.Shape)) * size)
			made += int64(volume(p.Made.Shape))
		}
		for _, s := range p.Strips {
			n += aligned(int64(volume(s.Shape)) * size)
		}
	}
	if w.Levels() > 1 && made > int64(volume(w.Array(1).Shape())) {
		t.Errorf("%d voxels of level 1 are made, it has %v", made, w.Array(1).Shape())
	}
	return n
}

// packed are the bytes that come down of chunks that the device encodes, with what nvCOMP
// says of each stream.
func packedBytes(t *testing.T, w *ngff.Writer) (n int64) {
	t.Helper()
	a := w.Array(0)
	p, err := a.Codecs().Packing(volume(a.Chunks()) * a.DType().Size())
	if err != nil {
		t.Fatal(err)
	}
	err = a.Located(ctx, a.Bounds(), func(_ *zarr.ChunkFile, chunks []zarr.Located) error {
		for _, c := range chunks {
			n += aligned(c.Size) + 12*int64(len(p.List)) - int64(volume(a.Chunks())*a.DType().Size())
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return n + stored(t, w)
}

// What nvCOMP encodes comes down encoded, or by the host's codecs if it was asked for.
func TestPacked(t *testing.T) {
	d := gputest.Device(t, much)
	for _, codecs := range []string{"zstd", "lz4", "blosc-zstd", "blosc-lz4"} {
		t.Run(codecs, func(t *testing.T) {
			images(t, codecs, func(t *testing.T, im *image, leaves bool) {
				want := im.onHost(t)
				_, before, _ := d.Traffic()
				got, err := im.onDevice(d, store.Memory(), Options{Debug: func(text string) {
					if leaves {
						t.Error(text)
					}
				}})
				if err != nil {
					t.Fatal(err)
				}
				same(t, got, want)
				_, after, _ := d.Traffic()
				bytes := int64(len(im.data))
				if leaves {
					bytes = packedBytes(t, got)
				}
				if after-before != bytes {
					t.Errorf("%d bytes came from the device, want %d", after-before, bytes)
				}
			})
		})
	}
	im := imageOf(t, "yx", dtype.Uint16, []int{64, 64}, []int{32, 32}, []int{32, 32}, "blosc-zstd")
	said := ""
	got, err := im.onDevice(d, store.Memory(), Options{ByHost: true, Debug: func(text string) { said = text }})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(said, "asked for") {
		t.Errorf("it says %q", said)
	}
	want := im.onHost(t)
	for _, key := range []string{"0/c/0/1", "1/c/0/0"} {
		var b [2][]byte
		for i, w := range []*ngff.Writer{got, want} {
			if b[i], err = w.Array(0).Store().Get(ctx, key, nil, -1); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(b[0], b[1]) {
			t.Errorf("%s is not the host's", key)
		}
	}
}

func TestRaw(t *testing.T) {
	d := gputest.Device(t, much)
	images(t, "raw", func(t *testing.T, im *image, leaves bool) {
		_, before, _ := d.Traffic()
		got, err := im.onDevice(d, store.Folder(t.TempDir()), Options{})
		if err != nil {
			t.Fatal(err)
		}
		same(t, got, im.onHost(t))
		_, after, _ := d.Traffic()
		want := int64(len(im.data))
		if leaves {
			want = stored(t, got)
		}
		if after-before != want {
			t.Errorf("%d bytes came from the device, want %d", after-before, want)
		}
	})
}

// files is a pool that leaves whole pages to cuFile.
func files(t *testing.T, d *gpu.Device, warn func(string)) *filelayer.Pool {
	t.Helper()
	s := settings.Default()
	s.Threads, s.Threshold = 2, 1
	p, err := filelayer.NewPool(d, s, warn)
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

// Chunks that are not encoded go straight to their files.
func TestStraight(t *testing.T) {
	straight := int64(0)
	images(t, "raw", func(t *testing.T, im *image, leaves bool) {
		d := gputest.Device(t, much)
		p := files(t, d, func(text string) { t.Error(text) })
		dir := t.TempDir()
		_, before, _ := d.Traffic()
		got, err := im.onDevice(d, store.Folder(dir), Options{Files: p})
		if err != nil {
			t.Fatal(err)
		}
		want := im.onHost(t)
		same(t, got, want)
		wholeChunks(t, dir, want)
		_, after, _ := d.Traffic()
		if st := p.Stats(); leaves && (after-before != stored(t, got) || st.WrittenStraight+st.WrittenBounced < int64(len(im.data)) || st.Fallbacks > 0) {
			t.Errorf("%d bytes left the device, want %d; %+v", after-before, stored(t, got), st)
		}
		_, n, _ := d.Straight()
		straight += n
	})
	if straight == 0 {
		t.Error("cuFile had nothing to do")
	}
	d := gputest.Device(t, much)
	im := imageOf(t, "yx", dtype.Uint16, []int{64, 64}, []int{64, 64}, []int{64, 64}, "raw")
	if _, err := im.onDevice(d, store.Memory(), Options{Files: files(t, d, nil)}); err != nil {
		t.Error(err)
	}
	if _, n, _ := d.Straight(); n != 0 {
		t.Errorf("%d bytes went to the files of a store that has none", n)
	}
}

// What the host encodes comes down as it is.
func TestEncodedByHost(t *testing.T) {
	d := gputest.Device(t, much)
	images(t, "gzip", func(t *testing.T, im *image, leaves bool) {
		_, before, _ := d.Traffic()
		got, err := im.onDevice(d, store.Memory(), Options{})
		if err != nil {
			t.Fatal(err)
		}
		same(t, got, im.onHost(t))
		if _, after, _ := d.Traffic(); after-before != int64(len(im.data)) {
			t.Errorf("%d bytes came from the device, want %d", after-before, len(im.data))
		}
	})
}

// A writer holds no more than it says; with less device memory it writes the same.
func TestMemory(t *testing.T) {
	for _, codecs := range []string{"raw", "zstd", "blosc-lz4"} {
		t.Run(codecs, func(t *testing.T) { images(t, codecs, memory) })
	}
}

func memory(t *testing.T, im *image, leaves bool) {
	if !leaves {
		return
	}
	im.overlap, im.odd = false, 0
	plan, err := ngff.Create(ctx, store.Memory(), "", im.ImageSpec)
	if err != nil {
		t.Fatal(err)
	}
	defer plan.Abort()
	whole := gputest.Device(t, much)
	pinned, memory := NewWriter(plan, whole, Options{}).Memory(im.tile)
	// The trial of nvCOMP, before the writer's first tile, may take more.
	tried := whole.Memory().Peak()
	tile := mem.Pooled(int64(volume(im.tile) * im.DType.Size()))
	want := im.onHost(t)
	for _, have := range []int64{memory, 0} {
		limits := gpu.Limits{Memory: have + tile, Pinned: pinned + tile}
		if have > 0 {
			limits.Memory = max(limits.Memory, tried)
		}
		d := gputest.Device(t, limits)
		got, err := im.onDevice(d, store.Memory(), Options{})
		if err != nil {
			t.Fatal(err)
		}
		same(t, got, want)
		bytes := int64(len(im.data))
		if have > 0 || memory == 0 {
			bytes = stored(t, got)
			if len(im.Codecs) > 0 {
				bytes = packedBytes(t, got)
			}
		}
		if _, down, _ := d.Traffic(); down != bytes {
			t.Errorf("with %d bytes of device memory: %d bytes came from the device, want %d", have, down, bytes)
		}
	}
}

func TestRefuses(t *testing.T) {
	d := gputest.Device(t, much)
	im := imageOf(t, "yx", dtype.Uint16, []int{32, 32}, []int{16, 16}, []int{16, 16}, "raw")
	out, err := ngff.Create(ctx, store.Memory(), "", im.ImageSpec)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Abort()
	w := NewWriter(out, d, Options{})
	s, err := d.Stream()
	if err != nil {
		t.Fatal(err)
	}
	b, err := d.Memory().Get(1024)
	if err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]struct {
		start, shape []int
		src          gpu.Span
	}{
		"axes":     {[]int{0}, []int{16}, b.Span},
		"negative": {[]int{0, 0}, []int{-16, 16}, b.Span},
		"outside":  {[]int{32, 0}, []int{16, 16}, b.Span},
		"part":     {[]int{0, 0}, []int{16, 15}, b.Span},
		"short":    {[]int{0, 0}, []int{16, 16}, b.From(0, 256)},
		"aligned":  {[]int{0, 0}, []int{16, 16}, b.From(7, 512)},
	} {
		if err := w.WriteTile(ctx, s, c.start, c.shape, c.src); err == nil {
			t.Errorf("%s: no error", what)
		}
	}
	// an error of the stream's own comes first
	s.Upload(b.From(0, 8), make([]byte, 16))
	if err := w.WriteTile(ctx, s, []int{0, 0}, []int{16, 15}, b.Span); err == nil || !strings.Contains(err.Error(), "upload") {
		t.Errorf("after an upload that failed: %v", err)
	}
	s.Zero(b.Span)
	if err := w.WriteTile(ctx, s, []int{0, 0}, []int{16, 16}, b.Span); err != nil {
		t.Error(err)
	}
	if err := w.WriteTile(ctx, s, []int{0, 0}, []int{16, 16}, b.Span); err == nil {
		t.Error("a tile was written twice")
	}
	b.Release()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// Chunks are put together where pages of theirs are pages of the device's memory.
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
	d := gputest.Device(t, much)
	p := files(t, d, func(text string) { t.Error(text) })
	im := imageOf(t, "yx", dtype.Uint16, []int{250, 260}, []int{65, 67}, []int{130, 134}, "raw")
	got, err := im.onDevice(d, store.Folder(t.TempDir()), Options{Files: p})
	if err != nil {
		t.Fatal(err)
	}
	same(t, got, im.onHost(t))
	if _, n, _ := d.Straight(); n == 0 {
		t.Error("nothing went straight")
	}
}

// TestFirstChunk: an encoder that makes every chunk another never reaches a file, with a trial and without, and also if
// there is no memory for the host to decode the first chunk (the nth allocation fails, 0: none): the host encodes all.
func TestFirstChunk(t *testing.T) {
	if os.Getenv(gputest.FaultVariable) == "" {
		gputest.NeedDouble(t)
		wrong := make([]string, 400)
		for i := range wrong {
			wrong[i] = fmt.Sprintf("%d:-1", i+1)
		}
		for n := range 9 {
			t.Run(fmt.Sprint(n), func(t *testing.T) {
				t.Parallel()
				c := exec.Command(os.Args[0], "-test.run=^TestFirstChunk$", "-test.count=1")
				c.Env = append(os.Environ(), gputest.FaultVariable+"=CUEMU_CHUNK="+strings.Join(wrong, ","), fmt.Sprintf("STRATA_TEST_FAULT=%d", n))
				if out, err := c.CombinedOutput(); err != nil {
					t.Errorf("%v\n%s", err, out)
				}
			})
		}
		return
	}
	d := gputest.Device(t, much)
	lib, err := nvcomp.Open(d)
	if err != nil {
		t.Fatal(err)
	}
	if err := lib.Warm(d, nvcomp.Zstd); err != nil { // which is right then, as far as anybody knows
		t.Fatal(err)
	}
	gputest.Fault()
	n := os.Getenv("STRATA_TEST_FAULT")
	t.Setenv("CUEMU_FAIL", "cuMemHostAlloc:"+n+":2")
	for _, b := range []*trial.Book{nil, trial.New(1, 1)} {
		var said []string
		im := imageOf(t, "yx", dtype.Uint16, []int{250, 260}, []int{65, 67}, []int{130, 134}, "zstd")
		got, err := im.onDevice(d, store.Memory(), Options{Trials: b, Debug: func(m string) { said = append(said, m) }})
		if errors.Is(err, gpu.ErrMemory) && n != "0" {
			continue // nothing else was possible
		}
		if err != nil {
			t.Fatal(err)
		}
		same(t, got, im.onHost(t))
		if all := strings.Join(said, "; "); !strings.Contains(all, "nvCOMP encodes chunks that the host decodes to others") {
			t.Errorf("said %q", said)
		}
	}
}
