package ngff

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"strata/pkg/dtype"
	"strata/pkg/zarr"
	"strata/pkg/zarr/codec"
	"strata/pkg/zarr/store"
	"strata/tests/race"
)

// box of a C-ordered image as a tile of its own.
func crop(src []byte, elem int, shape, start, size []int) []byte {
	s, o, n := padded(shape, 1), padded(start, 0), padded(size, 1)
	dst := make([]byte, n.volume()*elem)
	var b box
	for d := range rank {
		b.lo[d], b.hi[d] = o[d], o[d]+n[d]
	}
	copyBox(memory{data: dst, origin: o, stride: contiguous(n)}, memory{data: src, stride: contiguous(s)}, b, elem)
	return dst
}

// bytesOf makes noise of an element type.
func bytesOf(t dtype.Type, n int, rng *rand.Rand) []byte {
	switch t {
	case dtype.Uint8:
		return dtype.Bytes(noise[uint8](n, rng))
	case dtype.Int16:
		return dtype.Bytes(noise[int16](n, rng))
	case dtype.Uint16:
		return dtype.Bytes(noise[uint16](n, rng))
	case dtype.Int32:
		return dtype.Bytes(noise[int32](n, rng))
	case dtype.Uint64:
		return dtype.Bytes(noise[uint64](n, rng))
	case dtype.Float32:
		return dtype.Bytes(noise[float32](n, rng))
	case dtype.Float64:
		return dtype.Bytes(noise[float64](n, rng))
	case dtype.Bool:
		return make([]byte, n)
	}
	panic(t.String())
}

// model makes all levels of an image from the whole of the level above.
func model(t testing.TB, spec *ImageSpec, level0 []byte) [][]byte {
	t.Helper()
	levels := [][]byte{level0}
	shapes := LevelShapes(spec.Shape, spec.Axes, spec.Levels)
	for k := range shapes[1:] {
		b, shape, err := Downsample(spec.DType, levels[k], shapes[k], spec.Axes)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(shape, shapes[k+1]) {
			t.Fatalf("level %d has shape %v, want %v", k+1, shape, shapes[k+1])
		}
		levels = append(levels, b)
	}
	return levels
}

// tilesOf lists tiles of several chunks.
func tilesOf(spec *ImageSpec, tile []int) (starts, sizes [][]int) {
	for s := range TileOrder(spec.Shape, tile, spec.Axes) {
		n := make([]int, len(s))
		for d := range n {
			n[d] = min(tile[d], spec.Shape[d]-s[d])
		}
		starts, sizes = append(starts, s), append(sizes, n)
	}
	return starts, sizes
}

// compare checks every level of an image against the model.
func compareLevels(t testing.TB, st store.Store, path string, want [][]byte) {
	t.Helper()
	im, err := Open(t.Context(), st, path)
	if err != nil {
		t.Fatal(err)
	}
	if len(im.Levels) != len(want) {
		t.Fatalf("%d levels, want %d", len(im.Levels), len(want))
	}
	for k, l := range im.Levels {
		got := make([]byte, len(want[k]))
		if err := l.Array.Read(t.Context(), l.Array.Bounds(), got); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want[k]) {
			t.Fatalf("level %d of shape %v differs from the model", k, l.Array.Shape())
		}
	}
}

type trial struct {
	spec    ImageSpec
	tile    []int
	callers int
	order   string
	write   func(w *Writer, start, shape []int, tile []byte) error // nil: WriteTile
}

func (c *trial) String() string {
	return fmt.Sprintf("zarr v%d %s %v chunks %v shard %v tile %v, %d levels, %d callers × %d workers, %s, budget %d",
		c.spec.Format, c.spec.DType, c.spec.Shape, c.spec.Chunks, c.spec.Shard, c.tile, c.spec.Levels, c.callers, c.spec.Workers, c.order, c.spec.Budget)
}

func randomTrial(rng *rand.Rand) *trial {
	c := &trial{callers: 1 + rng.IntN(4)}
	s := &c.spec
	names := []string{"yx", "zyx", "zyx", "cyx", "czyx", "tczyx"}[rng.IntN(6)]
	s.Axes = SpaceAxes(names, "micrometer")
	s.Format = 2 + rng.IntN(2)
	s.DType = []dtype.Type{dtype.Uint8, dtype.Int16, dtype.Uint16, dtype.Int32, dtype.Uint64, dtype.Float32, dtype.Float64}[rng.IntN(7)]
	sharded := s.Format == 3 && rng.IntN(2) == 0
	for _, a := range s.Axes {
		n, chunk := 1+rng.IntN(40), 1+rng.IntN(12)
		if len(names) == 5 {
			n, chunk = 1+rng.IntN(14), 2+rng.IntN(6)
		}
		if a.Type != TypeSpace {
			n, chunk = 1+rng.IntN(3), 1+rng.IntN(2)
		}
		s.Shape, s.Chunks, s.Scale = append(s.Shape, n), append(s.Chunks, chunk), append(s.Scale, 0.5)
		if sharded {
			s.Shard = append(s.Shard, chunk*(1+rng.IntN(3)))
		}
		c.tile = append(c.tile, chunk*(1+rng.IntN(3)))
	}
	s.Levels = rng.IntN(7)
	s.Workers = 1 + rng.IntN(3)
	s.Name = "trial"
	c.order = []string{"near", "raster", "random"}[rng.IntN(3)]
	if rng.IntN(2) == 0 {
		s.Budget = 1 // as small as it goes: see run
	}
	return c
}

// run writes a trial and returns the writer, closed.
func (c *trial) run(t testing.TB, st store.Writer, level0 []byte, rng *rand.Rand) *Writer {
	t.Helper()
	if c.spec.Budget == 1 {
		c.spec.Budget = leastBudget(t, &c.spec) + int64(rng.IntN(4))*8192
	}
	w, err := Create(t.Context(), st, "im", c.spec)
	if err != nil {
		t.Fatal(err)
	}
	starts, sizes := tilesOf(&c.spec, c.tile)
	order := rng.Perm(len(starts))
	switch c.order {
	case "near":
		slices.Sort(order)
	case "raster":
		slices.SortFunc(order, func(a, b int) int { return slices.Compare(starts[a], starts[b]) })
	}
	work := make(chan int)
	write := c.write
	if write == nil {
		write = func(w *Writer, start, shape []int, tile []byte) error {
			return w.WriteTile(t.Context(), start, shape, tile)
		}
	}
	var wg sync.WaitGroup
	for range c.callers {
		wg.Go(func() {
			for i := range work {
				tile := crop(level0, c.spec.DType.Size(), c.spec.Shape, starts[i], sizes[i])
				if err := write(w, starts[i], sizes[i], tile); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for _, i := range order {
		work <- i
	}
	close(work)
	wg.Wait()
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	return w
}

// leastBudget finds the smallest budget that Create takes.
func leastBudget(t testing.TB, spec *ImageSpec) int64 {
	t.Helper()
	s := *spec
	for s.Budget = 4096; ; s.Budget += 4096 {
		w, err := Create(t.Context(), store.Memory(), "", s)
		if err == nil {
			w.Abort()
			return s.Budget
		}
		if s.Budget > 1<<30 {
			t.Fatal(err)
		}
	}
}

// Whatever the shape, the chunks, the order of arrival, the number of workers and
// the budget: every level is what the model makes of the whole level above, bit
// for bit, and the budget is kept.
func TestWriterEqualsModel(t *testing.T) {
	trials := 1000
	if race.Enabled() || testing.Short() {
		trials = 120
	}
	remade := 0
	for seed := range trials {
		rng := rand.New(rand.NewPCG(uint64(seed), 17))
		c := randomTrial(rng)
		n := padded(c.spec.Shape, 1).volume()
		level0 := bytesOf(c.spec.DType, n, rng)
		st := store.Memory()
		w := c.run(t, st, level0, rng)
		compareLevels(t, st, "im", model(t, &c.spec, level0))
		if c.spec.Budget > 0 && w.pyramid.peak() > c.spec.Budget {
			t.Errorf("peak %d of a budget of %d", w.pyramid.peak(), c.spec.Budget)
		}
		if w.Remade() > 0 {
			remade++
		}
		if t.Failed() {
			t.Fatalf("seed %d: %s", seed, c)
		}
	}
	if remade < trials/10 {
		t.Errorf("only %d of %d trials made chunks from stored data", remade, trials)
	}
}

// goldenWriter: the writer makes what the golden set has, chunk by chunk.
func TestWriterAgainstGolden(t *testing.T) {
	c, arrays := readCase(t, "testdata/u16_odd")
	spec := ImageSpec{
		Format: 3, Shape: c.Arrays["level0"].Shape, Chunks: c.Chunks, DType: dtype.Uint16, Levels: 3,
		Axes: SpaceAxes("zyx", "micrometer"), Scale: []float64{1, 1, 1},
	}
	st := store.Memory()
	tr := trial{spec: spec, tile: c.Chunks, callers: 2, order: "random"}
	tr.run(t, st, arrays["level0"], rand.New(rand.NewPCG(5, 5)))
	im, err := Open(t.Context(), st, "im")
	if err != nil {
		t.Fatal(err)
	}
	for k, l := range im.Levels {
		got := make([]byte, len(arrays[fmt.Sprintf("level%d", k)]))
		if err := l.Array.Read(t.Context(), l.Array.Bounds(), got); err != nil {
			t.Fatal(err)
		}
		compareGolden(t, l.Path, &c, values(dtype.Uint16, got), values(dtype.Uint16, arrays[fmt.Sprintf("level%d", k)]))
	}
}

func smallSpec() ImageSpec {
	return ImageSpec{
		Shape: []int{9, 20, 30}, Chunks: []int{4, 8, 8}, DType: dtype.Uint16, Levels: 2,
		Axes: SpaceAxes("zyx", "millimeter"), Scale: []float64{0.0035, 0.002, 0.002}, Name: "small",
	}
}

func TestCreateRefuses(t *testing.T) {
	for name, change := range map[string]func(*ImageSpec){
		"rank":        func(s *ImageSpec) { s.Shape = s.Shape[1:] },
		"scale":       func(s *ImageSpec) { s.Scale[1] = 0 },
		"no voxels":   func(s *ImageSpec) { s.Shape[2] = 0 },
		"chunks":      func(s *ImageSpec) { s.Chunks[0] = 0 },
		"shard":       func(s *ImageSpec) { s.Shard = []int{4, 8, 12} },
		"v2 shard":    func(s *ImageSpec) { s.Format, s.Shard = 2, []int{4, 8, 16} },
		"format":      func(s *ImageSpec) { s.Format = 4 },
		"levels":      func(s *ImageSpec) { s.Levels = -1 },
		"axis order":  func(s *ImageSpec) { s.Axes = SpaceAxes("yxc", "") },
		"axis names":  func(s *ImageSpec) { s.Axes = SpaceAxes("zyy", "") },
		"axis":        func(s *ImageSpec) { s.Axes[0].Name = "" },
		"dtype":       func(s *ImageSpec) { s.DType = dtype.Bool },
		"budget":      func(s *ImageSpec) { s.Budget = 4096 },
		"translation": func(s *ImageSpec) { s.Translation = []float64{1} },
	} {
		s := smallSpec()
		change(&s)
		st := store.Memory()
		w, err := Create(t.Context(), st, "", s)
		if err == nil {
			w.Abort()
			t.Errorf("%s: no error", name)
		}
		if e, _ := st.List(t.Context(), ""); len(e) > 0 {
			t.Errorf("%s: a refused spec left %v", name, e)
		}
	}
	s := smallSpec()
	s.DType, s.Levels = dtype.Bool, 0 // without a pyramid any type will do
	w, err := Create(t.Context(), store.Memory(), "", s)
	if err != nil {
		t.Fatal(err)
	}
	w.Abort()
}

func TestTilesAreChecked(t *testing.T) {
	w, err := Create(t.Context(), store.Memory(), "", smallSpec())
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	for _, c := range []struct {
		start, shape []int
		n            int
	}{
		{[]int{0, 0}, []int{4, 8}, 64},
		{[]int{0, 0, 4}, []int{4, 8, 8}, 512},
		{[]int{0, 0, 0}, []int{4, 8, 9}, 576},
		{[]int{8, 16, 24}, []int{4, 8, 8}, 512},
		{[]int{-4, 0, 0}, []int{4, 8, 8}, 512},
		{[]int{0, 0, 0}, []int{0, 8, 8}, 0},
		{[]int{0, 0, 0}, []int{4, 8, 8}, 100},
	} {
		if err := w.WriteTile(t.Context(), c.start, c.shape, make([]byte, c.n)); err == nil {
			t.Errorf("tile at %v of %v: no error", c.start, c.shape)
		}
		if err := w.CheckTile(c.start, c.shape); (err == nil) != (c.n == 100) {
			t.Errorf("tile at %v of %v: %v", c.start, c.shape, err)
		}
	}
	if err := w.WriteTile(t.Context(), []int{8, 16, 24}, []int{1, 4, 6}, make([]byte, 48)); err != nil {
		t.Fatal(err)
	}
	if err := w.WriteTile(t.Context(), []int{8, 16, 24}, []int{1, 4, 6}, make([]byte, 48)); err == nil {
		t.Error("a chunk was written twice")
	}
	if err := w.Close(t.Context()); err == nil {
		t.Error("an image without most of its tiles was closed")
	}
	if err := w.WriteTile(t.Context(), []int{0, 0, 0}, []int{4, 8, 8}, make([]byte, 512)); err == nil {
		t.Error("a tile after Close")
	}
	if err := w.Close(t.Context()); err == nil {
		t.Error("a second Close made an image")
	}
}

// Until Close, and after Abort, there is no image.
func TestNoImageBeforeClose(t *testing.T) {
	for _, format := range []int{2, 3} {
		st := store.Memory()
		s := smallSpec()
		s.Format = format
		s.Attributes = map[string]any{"acquired": "2026-01-01", "multiscales": "stale", "ome": 1}
		w, err := Create(t.Context(), st, "", s)
		if err != nil {
			t.Fatal(err)
		}
		level0 := bytesOf(s.DType, 9*20*30, rand.New(rand.NewPCG(1, 1)))
		if err := w.WriteTile(t.Context(), []int{0, 0, 0}, s.Shape, level0); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(t.Context(), st, ""); err == nil {
			t.Error("an image before Close")
		}
		if err := w.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		im, err := Open(t.Context(), st, "")
		if err != nil {
			t.Fatal(err)
		}
		if im.Version != VersionFor(format) || im.Name != "small" || len(im.Warnings) > 0 {
			t.Errorf("version %q, name %q, warnings %q", im.Version, im.Name, im.Warnings)
		}
		if got := string(im.Group.Attributes()["acquired"]); got != `"2026-01-01"` {
			t.Errorf("attribute acquired is %s", got)
		}
		if p := Validate(t.Context(), st, ""); len(p) > 0 {
			t.Errorf("problems of what was written: %v", p)
		}
		if want := []float64{3.5, 2, 2}; !slices.EqualFunc(im.VoxelSize, want, near) {
			t.Errorf("voxel size %v, want %v", im.VoxelSize, want)
		}
		if _, err := Create(t.Context(), st, "", s); err == nil {
			t.Error("an image was created over another")
		}
	}
}

func near(a, b float64) bool { return a-b < 1e-9 && b-a < 1e-9 }

func TestLevelsAreCapped(t *testing.T) {
	s := smallSpec()
	s.Levels = 5
	w, err := Create(t.Context(), store.Memory(), "", s)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	if w.Levels() != 4 || len(w.Warnings()) != 1 {
		t.Errorf("%d levels, warnings %q", w.Levels(), w.Warnings())
	}
}

// Chunks and shards below level 0 are those of level 0, clipped.
func TestLevelChunks(t *testing.T) {
	for _, c := range []struct{ shape, chunks, shard, wantC, wantS []int }{
		{[]int{100, 100}, []int{10, 20}, nil, []int{10, 20}, nil},
		{[]int{5, 100}, []int{10, 20}, nil, []int{5, 20}, nil},
		{[]int{25, 100}, []int{10, 20}, []int{40, 40}, []int{10, 20}, []int{30, 40}},
		{[]int{5, 15}, []int{10, 20}, []int{40, 40}, []int{5, 15}, nil},
		{[]int{5, 30}, []int{10, 20}, []int{40, 80}, []int{5, 20}, []int{5, 40}},
	} {
		gotC, gotS := levelChunks(c.shape, c.chunks, c.shard)
		if !slices.Equal(gotC, c.wantC) || !slices.Equal(gotS, c.wantS) {
			t.Errorf("%v of chunks %v shard %v: %v, %v", c.shape, c.chunks, c.shard, gotC, gotS)
		}
	}
}

// A cancelled write ends with the context's error and leaves nothing running.
func TestCancellation(t *testing.T) {
	before := runtime.NumGoroutine()
	s := smallSpec()
	s.Workers = 4
	w, err := Create(t.Context(), store.Memory(), "", s)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	level0 := make([]byte, 9*20*30*2)
	if err := w.WriteTile(ctx, []int{0, 0, 0}, s.Shape, level0); err == nil {
		t.Error("a cancelled write succeeded")
	}
	if err := w.Close(t.Context()); err == nil {
		t.Error("an image after a cancelled write")
	}
	for range 100 {
		if runtime.NumGoroutine() <= before {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Errorf("%d goroutines, %d before", runtime.NumGoroutine(), before)
}

// failing fails the n-th change of a store, and all after it.
type failing struct {
	store.Writer
	mu   sync.Mutex
	left int
}

func (f *failing) step() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.left--; f.left < 0 {
		return fmt.Errorf("disk full")
	}
	return nil
}

func (f *failing) Put(ctx context.Context, key string, parts ...[]byte) error {
	if err := f.step(); err != nil {
		return err
	}
	return f.Writer.Put(ctx, key, parts...)
}

func (f *failing) Create(ctx context.Context, key string) (store.PendingObject, error) {
	if err := f.step(); err != nil {
		return nil, err
	}
	return f.Writer.Create(ctx, key)
}

// Whichever write fails: an error comes out, and there is no image.
func TestFailingStore(t *testing.T) {
	for _, shard := range [][]int{nil, {8, 16, 16}} {
		s := smallSpec()
		s.Format, s.Shard, s.Workers = 3, shard, 2
		level0 := bytesOf(s.DType, 9*20*30, rand.New(rand.NewPCG(1, 1)))
		failed := 0
		for n := 0; ; n++ {
			st := &failing{Writer: store.Memory(), left: n}
			err := func() error {
				w, err := Create(t.Context(), st, "", s)
				if err != nil {
					return err
				}
				defer w.Abort()
				if err := w.WriteTile(t.Context(), []int{0, 0, 0}, s.Shape, level0); err != nil {
					if cerr := w.Close(t.Context()); cerr == nil {
						t.Error("closed after a failed write")
					}
					return err
				}
				return w.Close(t.Context())
			}()
			if err == nil {
				break
			}
			failed++
			if _, err := Open(t.Context(), st.Writer, ""); err == nil {
				t.Fatalf("an image although write %d failed", n)
			}
		}
		if failed < 10 {
			t.Errorf("only %d writes", failed)
		}
	}
}

func codecs(t testing.TB, flag string, d dtype.Type, format int) codec.Chain {
	t.Helper()
	c, err := codec.FromFlag(flag, d, format)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Compressed chunks and shards on disk, read back.
func TestWriterOnDisk(t *testing.T) {
	for _, format := range []int{2, 3} {
		s := smallSpec()
		s.Format = format
		s.Codecs = codecs(t, "blosc-zstd:1", s.DType, format)
		if format == 3 {
			s.Shard = []int{8, 16, 32}
		}
		st := store.Folder(t.TempDir())
		rng := rand.New(rand.NewPCG(2, 2))
		level0 := bytesOf(s.DType, 9*20*30, rng)
		tr := trial{spec: s, tile: []int{9, 8, 8}, callers: 2, order: "random"}
		tr.spec.Chunks, tr.tile = []int{4, 8, 8}, []int{12, 8, 16}
		tr.run(t, st, level0, rng)
		compareLevels(t, st, "im", model(t, &s, level0))
		a, err := zarr.OpenArray(t.Context(), st, "im/0")
		if err != nil {
			t.Fatal(err)
		}
		if format == 3 && !slices.Equal(a.DimensionNames(), []string{"z", "y", "x"}) {
			t.Errorf("dimension names %q", a.DimensionNames())
		}
		if a.Separator() != "/" {
			t.Errorf("separator %q", a.Separator())
		}
	}
}

// The length of an axis is a number in a header: no memory is taken for it that
// the budget does not grant.
func TestTooLongForAPyramid(t *testing.T) {
	for _, c := range []struct {
		shape []int
		want  string
	}{
		{[]int{4, 1 << 40}, "an axis of 1099511627776 samples is too long for a pyramid"},
		{[]int{4, 1 << 30}, "too small for a pyramid of axes this long (at least"},
	} {
		_, err := Create(t.Context(), store.Memory(), "", ImageSpec{Format: 3, Shape: c.shape, Chunks: []int{4, 1 << 10}, DType: dtype.Uint8,
			Axes: SpaceAxes("yx", "micrometer"), Scale: []float64{1, 1}, Levels: 2, Budget: 1 << 20})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("shape %v: %v, want %q", c.shape, err, c.want)
		}
	}
}

// Nor is there for the account of which chunks were written.
func TestTooManyChunks(t *testing.T) {
	spec := ImageSpec{Format: 3, Shape: []int{1 << 20, 1 << 40}, Chunks: []int{4, 4}, DType: dtype.Uint8,
		Axes: SpaceAxes("yx", "micrometer"), Scale: []float64{1, 1}}
	if _, err := Create(t.Context(), store.Memory(), "", spec); err == nil || !strings.Contains(err.Error(), "7.21e+16 chunks of shape [4 4]") {
		t.Errorf("2⁵⁶ chunks: %v", err)
	}
	spec.Shape = []int{4, 1 << 20}
	w, err := Create(t.Context(), store.Memory(), "", spec)
	if err != nil {
		t.Fatal(err)
	}
	w.Abort()
}

// peak returns the most memory that the pyramid ever had.
func (p *pyramid) peak() int64 {
	n := p.pool.Peak()
	if p.held != nil {
		n += p.held.Peak()
	}
	if p.spare.outB != nil {
		n += int64(pages(p.spare.out) + pages(p.spare.in))
	}
	return n
}
