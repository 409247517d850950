package blocks

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"strata/pkg/dtype"
	"strata/pkg/mem"
	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/zarr/codec"
	"strata/pkg/zarr/store"
	"strata/tests/octtest"
)

func ramp[T dtype.Element](t *testing.T, shape, chunks []int) *Volume {
	t.Helper()
	im, _ := octtest.Made(t, shape, chunks, nil, nil, func(i int) T { return T(i*7919%251 - 3*(i%2)) })
	v, err := Open(im)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// boxSum replaces a block's voxels without halo by sums over 3×3×3 voxels of the volume, and checks the halo on the
// way.
func boxSum(v *Volume) func(ctx context.Context, b *Block) error {
	return func(_ context.Context, b *Block) error {
		src := slices.Clone(b.Voxels)
		for z := range b.Size[0] {
			for y := range b.Size[1] {
				for x := range b.Size[2] {
					at, sum := [3]int{z + b.Inner[0], y + b.Inner[1], x + b.Inner[2]}, float32(0)
					for k := range 27 {
						p := [3]int{at[0] + k/9 - 1, at[1] + k/3%3 - 1, at[2] + k%3 - 1}
						inside := true
						for d := range p {
							global := p[d] + b.Start[d]
							inside = inside && global >= 0 && global < v.Shape[d]
						}
						if inside {
							sum += src[b.At(p[0], p[1], p[2])]
						}
					}
					b.Voxels[b.At(at[0], at[1], at[2])] = sum / 8
				}
			}
		}
		return nil
	}
}

// However a volume is cut, and by however many workers, a filter with the right halo gives the same voxels.
func TestMap(t *testing.T) {
	v := ramp[int16](t, []int{7, 21, 18}, []int{3, 8, 5})
	for _, out := range []dtype.Type{dtype.Float32, dtype.Int16, dtype.Uint8} {
		var first []byte
		for _, size := range [][3]int{{}, {0, 8, 5}, {3, 8, 5}, {3, 16, 10}} {
			for _, workers := range []int{1, 3} {
				res := oct.Resources{Workers: workers, Mem: 8 << 20}
				c, err := v.Cut(Plan{Size: size, Halo: [3]int{1, 1, 1}, PerVoxel: 4, Work: "adding blocks"}, res)
				if err != nil {
					t.Fatal(err)
				}
				im, err := c.Map(octtest.Ctx, store.Memory(), oct.Layout{Levels: 1}, v.Spec(out), boxSum(v))
				if err != nil {
					t.Fatal(err)
				}
				a := im.Levels[0].Array
				raw := make([]byte, 7*21*18*out.Size())
				if err := a.Read(octtest.Ctx, a.Bounds(), raw); err != nil {
					t.Fatal(err)
				}
				if first == nil {
					first = raw
				}
				if !slices.Equal(raw, first) {
					t.Errorf("blocks of %v by %d workers as %v: other voxels", size, workers, out)
				}
				if !slices.Equal(a.Chunks(), []int{3, 8, 5}) || im.VoxelSize[0] != 3.5 {
					t.Errorf("chunks %v, voxel size %v", a.Chunks(), im.VoxelSize)
				}
			}
		}
	}
}

func TestEach(t *testing.T) {
	v := ramp[uint16](t, []int{5, 9, 9}, []int{2, 4, 4})
	c, err := v.Cut(Plan{Size: v.Columns(oct.Layout{}), Work: "adding columns"}, octtest.Small())
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	seen, sum := map[int]bool{}, 0.0
	err = c.Each(octtest.Ctx, func(_ context.Context, b *Block) error {
		mu.Lock()
		defer mu.Unlock()
		seen[b.Index] = true
		for _, x := range b.Voxels {
			sum += float64(x)
		}
		return nil
	})
	want := 0.0
	for i := range 5 * 9 * 9 {
		want += float64(uint16(i*7919%251 - 3*(i%2)))
	}
	if err != nil || len(seen) != 9 || math.Abs(sum-want) > 0 {
		t.Errorf("%v: %d blocks, sum %v, want 9 and %v", err, len(seen), sum, want)
	}
}

// A worker visits the blocks of a column from the first plane down; each block is visited once, in smaller blocks, too.
func TestDown(t *testing.T) {
	v := ramp[uint16](t, []int{50, 90, 80}, []int{20, 40, 40})
	for _, mem := range []int64{64 << 20, 400 << 10} {
		c, err := v.Cut(Plan{Size: v.Chunk, Work: "adding blocks", Down: true, Shrink: true}, oct.Resources{Workers: 3, Mem: mem})
		if err != nil {
			t.Fatal(err)
		}
		if smaller := c.Size != v.Chunk; smaller != (mem < 1<<20) {
			t.Errorf("%d bytes: blocks of %v", mem, c.Size)
		}
		var mu sync.Mutex
		next, voxels := map[[2]int]int{}, 0
		err = c.Each(octtest.Ctx, func(_ context.Context, b *Block) error {
			mu.Lock()
			defer mu.Unlock()
			o := b.Origin()
			at := [2]int{o[1], o[2]}
			if next[at] != o[0] {
				t.Errorf("plane %d of column %v, want %d", o[0], at, next[at])
			}
			next[at] += b.Size[0]
			voxels += b.Size[0] * b.Size[1] * b.Size[2]
			return nil
		})
		if err != nil || voxels != 50*90*80 {
			t.Errorf("%v: %d voxels", err, voxels)
		}
	}
	if _, err := v.Cut(Plan{Size: v.Chunk, Work: "adding blocks", Shrink: true}, oct.Resources{Workers: 1, Mem: 1 << 10}); err == nil {
		t.Error("blocks fit into 1 KiB")
	}
}

// A volume in memory has the voxels of the array; one that is too large stays where it is.
func TestHold(t *testing.T) {
	v := ramp[int16](t, []int{7, 21, 18}, []int{3, 8, 5})
	h, err := v.Reserve(octtest.Small())
	if err != nil {
		t.Fatal(err)
	}
	defer h.Release()
	if err := h.Load(octtest.Ctx); err != nil {
		t.Fatal(err)
	}
	held := h.Volume
	if want := octtest.Small().Mem - 4*7*21*18; h.Left.Mem != want || h.Left.Besides != 4*7*21*18 {
		t.Errorf("%d bytes are left, want %d; %d are used besides", h.Left.Mem, want, h.Left.Besides)
	}
	start, shape := [3]int{1, 3, 4}, [3]int{5, 11, 9}
	n := 5 * 11 * 9
	got, want := make([]float32, n), make([]float32, n)
	if err := errors.Join(v.Read(octtest.Ctx, want, make([]byte, 2*n), start, shape), held.Read(octtest.Ctx, got, nil, start, shape)); err != nil {
		t.Fatal(err)
	}
	octtest.SameBits(t, got, want)
	h, err = v.Reserve(oct.Resources{Workers: 1, Mem: 20000})
	if err != nil || h.Volume != v || h.Left.Mem != 20000 || h.Held() {
		t.Errorf("a volume that is too large: %v, %d", err, h.Left.Mem)
	}
}

func TestBadVolumes(t *testing.T) {
	v := ramp[float32](t, []int{8, 64, 64}, []int{8, 64, 64})
	if _, err := v.Cut(Plan{Work: "filtering blocks", PerVoxel: 64}, oct.Resources{Workers: 1, Mem: 1 << 20}); err == nil || !strings.Contains(err.Error(), "--mem grants 1 MiB") {
		t.Errorf("too little memory: %v", err)
	}
	c, err := v.Cut(Plan{Work: "filtering blocks", Size: [3]int{0, 32, 32}}, octtest.Small())
	if err != nil {
		t.Fatal(err)
	}
	none := func(context.Context, *Block) error { return nil }
	if _, err := c.Map(octtest.Ctx, store.Memory(), oct.Layout{Chunks: []int{8, 24, 32}}, v.Spec(dtype.Float32), none); !errors.Is(err, oct.ErrLayout) {
		t.Errorf("chunks that do not divide blocks: %v", err)
	}
	if _, err := c.Map(octtest.Ctx, store.Memory(), oct.Layout{Chunks: []int{3, 16, 32}}, v.Spec(dtype.Float32), none); err != nil {
		t.Errorf("chunks that divide blocks, and any along an axis in one block: %v", err)
	}
	stop := errors.New("stop")
	if _, err := c.Map(octtest.Ctx, store.Memory(), oct.Layout{}, v.Spec(dtype.Float32), func(context.Context, *Block) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("an error of the computation: %v", err)
	}
	if _, err := c.Map(octtest.Ctx, store.Memory(), oct.Layout{}, v.Spec(dtype.Float32), func(context.Context, *Block) error { panic("at a voxel") }); err == nil {
		t.Error("a panic of the computation is no error")
	}
	flat := store.Memory()
	w, err := ngff.Create(octtest.Ctx, flat, "", ngff.ImageSpec{Shape: []int{4, 4}, Chunks: []int{4, 4}, DType: dtype.Uint8, Axes: ngff.SpaceAxes("yx", "micrometer"), Scale: []float64{1, 1}})
	if err == nil {
		err = w.WriteTile(octtest.Ctx, []int{0, 0}, []int{4, 4}, make([]byte, 16))
	}
	if err == nil {
		err = w.Close(octtest.Ctx)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(octtest.Open(t, flat)); !errors.Is(err, oct.ErrInput) {
		t.Errorf("an image without z: %v", err)
	}
}

// Boxes that are read at once have the voxels of boxes that are read one by one.
func TestReadBoxes(t *testing.T) {
	starts, shape := [][3]int{{0, 3, 2}, {4, 3, 2}, {0, 10, 0}, {4, 3, 2}}, [3]int{2, 9, 11}
	n := shape[0] * shape[1] * shape[2]
	check := func(v *Volume) {
		t.Helper()
		raw := make([]byte, len(starts)*n*v.DType.Size())
		var got [][]float32
		for range starts {
			got = append(got, make([]float32, n))
		}
		if err := v.ReadBoxes(octtest.Ctx, got, raw, starts, shape); err != nil {
			t.Fatal(err)
		}
		for i, start := range starts {
			want := make([]float32, n)
			if err := v.Read(octtest.Ctx, want, raw, start, shape); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got[i], want) {
				t.Errorf("%v: box at %v differs", v.DType, start)
			}
		}
	}
	check(ramp[int16](t, []int{7, 21, 18}, []int{3, 8, 5}))
	check(ramp[float32](t, []int{7, 21, 18}, []int{7, 8, 5}))
	for _, name := range []string{"zstd:1", "blosc-zstd:1", "gzip:1"} { // whole chunks, blocks, whole chunks
		chain, err := codec.FromFlag(name, dtype.Uint16, 2)
		if err != nil {
			t.Fatal(err)
		}
		im, _ := octtest.Made(t, []int{7, 21, 18}, []int{7, 8, 5}, nil, chain, func(i int) uint16 { return uint16(i * 7919 % 251) })
		v, err := Open(im)
		if err != nil {
			t.Fatal(err)
		}
		check(v)
	}
}

// Planes come in their order with the voxels of the volume, however many at a time, in memory that is as large as was
// said.
func TestLayers(t *testing.T) {
	v := ramp[int16](t, []int{11, 9, 14}, []int{4, 4, 5})
	for _, n := range []int{1, 4, 7, 20} {
		next := 0
		before := mem.InUse()
		err := v.Layers(octtest.Ctx, oct.Resources{Workers: 2, Mem: 1 << 20}, n, func(z int, planes [][]float32) error {
			if z != next || len(planes) != min(n, 11-z) {
				t.Fatalf("%d planes at %d, want some of %d at %d", len(planes), z, n, next)
			}
			next += len(planes)
			for k, p := range planes {
				for i, got := range p {
					j := (z+k)*9*14 + i
					if want := float32(int16(j*7919%251 - 3*(j%2))); got != want {
						t.Fatalf("voxel %d of plane %d: %v, want %v", i, z+k, got, want)
					}
				}
			}
			return nil
		})
		if err != nil || next != 11 || mem.InUse() != before {
			t.Errorf("%d at a time: %v, %d planes, %d bytes are not freed", n, err, next, mem.InUse()-before)
		}
	}
	stop := errors.New("stop")
	if err := v.Layers(octtest.Ctx, octtest.Small(), 2, func(int, [][]float32) error { return stop }); !errors.Is(err, stop) {
		t.Error(err)
	}
}

// A pyramid of chunks that need more than its share of the memory is made all the same, if the blocks leave room for
// it, and gives the same levels.
func TestPyramidOfLargeChunks(t *testing.T) {
	in, _ := octtest.Made(t, []int{24, 64, 64}, []int{24, 64, 32}, nil, nil, func(i int) float32 { return float32(i * 7919 % 1009) })
	v, err := Open(in)
	if err != nil {
		t.Fatal(err)
	}
	layout := oct.Layout{Levels: 2}
	least := LeastPyramid(v.Spec(v.DType), layout)
	var first []float32
	for _, memory := range []int64{64 << 20, 4*least - 4096} {
		cut, err := v.Fit(Plan{Work: "copying blocks"}, layout, oct.Resources{Workers: 2, Mem: memory})
		if err != nil {
			t.Fatal(err)
		}
		if memory/4 >= least != (memory == 64<<20) {
			t.Fatalf("a quarter of %d bytes, %d are needed: this test shows nothing", memory, least)
		}
		out, err := cut.Map(octtest.Ctx, store.Memory(), layout, cut.Spec(v.DType), func(context.Context, *Block) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		got := octtest.Read(t, out.Levels[2].Array)
		if first == nil {
			first = got
		}
		octtest.SameBits(t, got, first)
	}
	if _, err := v.Fit(Plan{Work: "copying blocks"}, layout, oct.Resources{Workers: 2, Mem: least}); err == nil || !strings.Contains(err.Error(), "--mem grants") {
		t.Errorf("too little memory: %v", err)
	}
}
