//go:build !nocuda

package fusion_test

import (
	"slices"
	"testing"

	"strata/pkg/gpu"
	"strata/pkg/meter"
	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/oct/compute/fusion"
	"strata/pkg/zarr/store"
	"strata/tests/octtest"
)

// A column is whole when the worker that began it writes it, even if another one was the last to add a tile, and both
// still work.
func TestOneWorkerWritesWhatAnotherAdds(t *testing.T) {
	in, _ := octtest.Made(t, []int{4, 8, 16}, []int{4, 8, 8}, nil, nil, func(i int) uint16 { return uint16(1 + i) })
	for _, d := range []*gpu.Device{nil, octtest.Device(t, 16<<20)} {
		m, err := oct.OpenMosaic(in)
		if err != nil {
			t.Fatal(err)
		}
		res := oct.Resources{Workers: 2, Mem: 16 << 20, Device: d, Meter: new(meter.Meter)}
		out := store.Memory()
		w, err := oct.Create(octtest.Ctx, out, oct.Layout{Codec: "raw"}, ngff.ImageSpec{Format: 3, Shape: m.Shape[:], Chunks: m.Shape[:], DType: m.DType, Axes: m.Axes(), Scale: []float64{1, 1, 1}}, m.Shape[:], res)
		if err != nil {
			t.Fatal(err)
		}
		halves := []oct.Rectangle{oct.Rect(0, 8, 0, 8), oct.Rect(0, 8, 8, 16)}
		column := fusion.Column{Box: oct.Rect(0, 8, 0, 16), Tiles: []int{0, 1}}
		for i, r := range halves {
			column.Regions = append(column.Regions, fusion.Region{Rectangle: r, Who: []int{i}, Seam: -1})
		}
		f := &fusion.Plan{Mosaic: m, Res: &res, Columns: []fusion.Column{column}, Tiles: 2, Unit: m.Shape, Size: [2]int{8, 16}, Mem: res.Mem, Output: w}
		memory, err := f.Memory()
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Open(2, memory.Column(&column, 4)); err != nil {
			t.Fatal(err)
		}
		add := func(w fusion.Fuser, m *fusion.ColumnMemory, i int) {
			if blank := w.Load(fusion.Tile{From: halves[i], To: halves[i]}, -1); blank != 0 {
				t.Errorf("%d planes of tile %d are zero", blank, i)
			}
			w.Planes(func(_, _ int) bool {
				w.Fuse(m, &fusion.Cell{Region: i, Last: true})
				return true
			})
		}
		p := &fusion.Pass{Plan: f, Z0: 0, Z1: 4}
		written := 0
		err = p.Work(octtest.Ctx, func(a fusion.Fuser) {
			c := a.Column(&column, nil)
			add(a, c, 0)
			if err := p.Work(octtest.Ctx, func(b fusion.Fuser) {
				add(b, c, 1)
				a.Write([]*fusion.ColumnMemory{c}, func(*fusion.ColumnMemory) { written++ })
			}); err != nil {
				t.Error(err)
			}
		})
		if err != nil || written != 1 {
			t.Errorf("%d columns were written: %v", written, err)
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		f.Close()
		if err := w.Close(octtest.Ctx); err != nil {
			t.Fatal(err)
		}
		got := octtest.Values(t, octtest.Open(t, out).Levels[0].Array)
		if want := octtest.Values(t, in.Levels[0].Array); !slices.Equal(got, want) {
			t.Errorf("on a device: %v: voxels are %v, want %v", d != nil, got[:16], want[:16])
		}
	}
}
