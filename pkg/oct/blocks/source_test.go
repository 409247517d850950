package blocks

import (
	"context"
	"errors"
	"testing"

	"strata/pkg/dtype"
	"strata/pkg/oct"
	"strata/pkg/zarr/store"
	"strata/tests/octtest"
)

// places is a volume whose voxels say where they are; it checks that it gets the memory that it asks for.
type places struct{ shape [3]int }

func (p places) Scratch(shape [3]int) int { return shape[0]*shape[1]*shape[2] + 3 }

func (p places) Read(_ context.Context, dst []float32, scratch []byte, start, shape [3]int) error {
	if len(scratch) < p.Scratch(shape) {
		return errors.New("too little scratch memory")
	}
	for i := range shape[0] * shape[1] * shape[2] {
		z, y, x := start[0]+i/(shape[1]*shape[2]), start[1]+i/shape[2]%shape[1], start[2]+i%shape[2]
		dst[i] = float32((z*p.shape[1]+y)*p.shape[2] + x)
	}
	return nil
}

// A volume from a source has its voxels, in blocks as large as memory allows, and the chunks of the volume that it
// takes the rest from.
func TestFrom(t *testing.T) {
	v := ramp[int16](t, []int{3, 9, 9}, []int{3, 8, 5})
	shape := [3]int{5, 33, 41}
	from := v.From(places{shape}, shape)
	if from.Chunk != [3]int{3, 8, 5} {
		t.Errorf("chunks %v", from.Chunk)
	}
	for _, c := range []struct {
		res  oct.Resources
		size [3]int
	}{
		{oct.Resources{Workers: 1, Mem: 8 << 20}, [3]int{3, 33, 41}},
		{oct.Resources{Workers: 4, Mem: 8 << 20}, [3]int{3, 33, 41}},
		{oct.Resources{Workers: 4, Mem: 700 << 10}, [3]int{3, 8, 41}},
	} {
		cut, err := from.Fit(Plan{Work: "placing blocks"}, oct.Layout{}, c.res)
		if err != nil {
			t.Fatal(c.res, err)
		}
		if cut.Size[0] != c.size[0] || cut.Size[1] > c.size[1] || cut.Size[2] > c.size[2] {
			t.Errorf("%+v: blocks of %v, want at most %v", c.res, cut.Size, c.size)
		}
		im, err := cut.Map(octtest.Ctx, store.Memory(), oct.Layout{}, cut.Spec(dtype.Float32), func(context.Context, *Block) error { return nil })
		if err != nil {
			t.Fatal(c.res, err)
		}
		for i, got := range octtest.Read(t, im.Levels[0].Array) {
			if got != float32(i) {
				t.Fatalf("%+v: voxel %d is %v", c.res, i, got)
			}
		}
	}
	if _, err := from.Fit(Plan{Work: "placing blocks"}, oct.Layout{}, oct.Resources{Workers: 1, Mem: 1 << 10}); err == nil {
		t.Error("blocks fit into 1 KiB")
	}
}

func TestPlanes(t *testing.T) {
	v := ramp[int16](t, []int{6, 4, 5}, []int{4, 4, 4})
	part := v.Planes(2, 5)
	n := 2 * 3 * 5
	got, want := make([]float32, n), make([]float32, n)
	shape := [3]int{2, 3, 5}
	if err := errors.Join(part.Read(octtest.Ctx, got, make([]byte, part.Scratch(shape)), [3]int{1, 1, 0}, shape),
		v.Read(octtest.Ctx, want, make([]byte, v.Scratch(shape)), [3]int{3, 1, 0}, shape)); err != nil {
		t.Fatal(err)
	}
	octtest.SameBits(t, got, want)
	if part.Shape != [3]int{3, 4, 5} {
		t.Errorf("shape %v", part.Shape)
	}
}
