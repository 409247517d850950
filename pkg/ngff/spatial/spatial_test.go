package spatial

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"strata/pkg/dtype"
	"strata/pkg/ngff"
	"strata/pkg/zarr/store"
)

var ctx = context.Background()

// create writes an image of zeros, of which only the metadata matter.
func create(t *testing.T, spec ngff.ImageSpec) *ngff.Image {
	t.Helper()
	st := store.Memory()
	w, err := ngff.Create(ctx, st, "", spec)
	if err != nil {
		t.Fatal(err)
	}
	n := spec.DType.Size()
	for _, k := range spec.Shape {
		n *= k
	}
	if err := w.WriteTile(ctx, make([]int, len(spec.Shape)), spec.Shape, make([]byte, n)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(ctx); err != nil {
		t.Fatal(err)
	}
	im, err := ngff.Open(ctx, st, "")
	if err != nil {
		t.Fatal(err)
	}
	return im
}

// Boxes are z, y, x in micrometres, whatever the order, the number and the unit of the axes.
func TestLevels(t *testing.T) {
	for _, c := range []struct {
		axes, unit     string
		shape          []int
		scale, shift   []float64
		flat           bool
		size, origin   [3]float64
		others         []int
		coarse         [3]int
		coarser, begin [3]float64 // voxel size and origin of level 1
	}{
		{"zyx", "micrometer", []int{4, 6, 8}, []float64{3, 2, 1}, []float64{30, 20, 10}, false, [3]float64{3, 2, 1}, [3]float64{30, 20, 10}, nil,
			[3]int{2, 3, 4}, [3]float64{6, 4, 2}, [3]float64{31.5, 21, 10.5}},
		{"yx", "millimeter", []int{6, 8}, []float64{0.002, 0.001}, nil, true, [3]float64{1, 2, 1}, [3]float64{}, nil,
			[3]int{1, 3, 4}, [3]float64{1, 4, 2}, [3]float64{0, 1, 0.5}},
		{"xyz", "nanometer", []int{8, 6, 4}, []float64{1000, 2000, 3000}, nil, false, [3]float64{3, 2, 1}, [3]float64{}, nil,
			[3]int{2, 3, 4}, [3]float64{6, 4, 2}, [3]float64{1.5, 1, 0.5}},
		{"tcyx", "micrometer", []int{2, 3, 6, 8}, []float64{1, 1, 2, 1}, []float64{0, 0, 5, 7}, true, [3]float64{1, 2, 1}, [3]float64{0, 5, 7}, []int{0, 1},
			[3]int{1, 3, 4}, [3]float64{1, 4, 2}, [3]float64{0, 6, 7.5}},
	} {
		im := create(t, ngff.ImageSpec{Axes: ngff.SpaceAxes(c.axes, c.unit), Shape: c.shape, Chunks: slices.Repeat([]int{2}, len(c.shape)), DType: dtype.Uint8,
			Scale: c.scale, Translation: c.shift, Levels: 1})
		levels, err := Levels(im)
		if err != nil || len(levels) != 2 {
			t.Fatalf("%s: %d levels, %v", c.axes, len(levels), err)
		}
		l, k := levels[0], levels[1]
		if l.Flat() != c.flat || !near(l.Size, c.size) || !near(l.Origin, c.origin) || !slices.Equal(l.Others, c.others) {
			t.Errorf("%s in %s: flat %v, size %v, origin %v, others %v", c.axes, c.unit, l.Flat(), l.Size, l.Origin, l.Others)
		}
		if k.Shape != c.coarse || !near(k.Size, c.coarser) || !near(k.Origin, c.begin) {
			t.Errorf("%s: level 1 has shape %v, size %v, origin %v, want %v, %v, %v", c.axes, k.Shape, k.Size, k.Origin, c.coarse, c.coarser, c.begin)
		}
		for d := range 3 {
			if want := min(2, l.Shape[d]); l.Chunk[d] != want {
				t.Errorf("%s: chunk %v", c.axes, l.Chunk)
			}
		}
	}
}

func near(a, b [3]float64) bool {
	for d := range a {
		if diff := a[d] - b[d]; diff > 1e-9 || diff < -1e-9 {
			return false
		}
	}
	return true
}

// A box is a region of the array in the array's own order.
func TestRegion(t *testing.T) {
	im := create(t, ngff.ImageSpec{Axes: ngff.SpaceAxes("tczyx", ""), Shape: []int{2, 3, 4, 5, 6}, Chunks: []int{1, 1, 4, 5, 6}, DType: dtype.Uint8, Scale: []float64{1, 1, 1, 1, 1}})
	levels, err := Levels(im)
	if err != nil {
		t.Fatal(err)
	}
	start, shape := [3]int{1, 2, 3}, [3]int{3, 2, 1}
	for _, c := range []struct {
		others []int
		want   string
	}{{nil, "[0 0 1 2 3] [1 1 3 2 1]"}, {[]int{1, 2}, "[1 2 1 2 3] [1 1 3 2 1]"}} {
		r := levels[0].Region(start, shape, c.others)
		if got := fmt.Sprint(r.Start, r.Shape); got != c.want {
			t.Errorf("others %v: %s, want %s", c.others, got, c.want)
		}
	}
}

// Images that have no place in a plane are refused with the reason.
func TestRefused(t *testing.T) {
	im := create(t, ngff.ImageSpec{Axes: ngff.SpaceAxes("zyx", ""), Shape: []int{2, 2, 2}, Chunks: []int{2, 2, 2}, DType: dtype.Uint8, Scale: []float64{1, 1, 1}})
	im.Levels[0].Scale = []float64{1, 1e300, 1}
	im.VoxelSize = []float64{1, 1e300, 1}
	if _, err := Levels(im); err == nil || !strings.Contains(err.Error(), `axis "y": voxel size 1e+300 µm`) {
		t.Errorf("a huge voxel: %v", err)
	}
	im.Axes = []ngff.Axis{{Name: "z"}, {Name: "a"}, {Name: "x"}}
	if _, err := Levels(im); err == nil || !strings.Contains(err.Error(), "no axes y and x") {
		t.Errorf("no axis y: %v", err)
	}
}
