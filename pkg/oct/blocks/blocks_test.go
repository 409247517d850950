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
	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/oct/octtest"
	"strata/pkg/zarr/store"
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

// boxSum replaces a block's voxels without halo by sums over 3×3×3 voxels of the volume, and checks the halo on the way.
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
