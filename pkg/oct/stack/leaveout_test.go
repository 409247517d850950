package stack

import (
	"fmt"
	"testing"

	"strata/pkg/dtype"
	"strata/pkg/oct"
	"strata/pkg/oct/stack/tables"
	"strata/pkg/registration"
	"strata/pkg/zarr"
	"strata/pkg/zarr/store"
	"strata/tests/octtest"
)

// numbered returns slices whose voxels tell their slice and plane.
func numbered(t *testing.T, depth int, ids ...int) (in Input) {
	t.Helper()
	in.Config = map[int]registration.SliceConfig{}
	for _, id := range ids {
		im, _ := octtest.Made(t, []int{depth, 8, 9}, []int{4, 8, 8}, nil, nil, func(i int) float32 { return float32(100*(id+1) + i/72) })
		in.Slices = append(in.Slices, Slice{id, fmt.Sprintf("slice %d", id), im})
	}
	return in
}

// planesOf returns the first voxel of each plane of the volume of slices.
func planesOf(t *testing.T, in Input, o Options) (planes []float32, result *Result) {
	t.Helper()
	o.NoXYShift, o.PyramidResolutions, o.RepairShifts = true, nil, RepairOff
	result, err := Run(octtest.Ctx, in, o, store.Memory(), oct.Layout{Chunks: []int{4, 8, 9}}, octtest.Small())
	if err != nil {
		t.Fatal(err)
	}
	a := result.Image.Levels[0].Array
	shape := a.Shape()
	v := make([]float32, shape[0]*shape[1]*shape[2])
	if err := a.Read(octtest.Ctx, zarr.Region{Start: make([]int, 3), Shape: shape}, dtype.Bytes(v)); err != nil {
		t.Fatal(err)
	}
	for z := range shape[0] {
		planes = append(planes, v[z*shape[1]*shape[2]])
	}
	return planes, result
}

// Slices behind one that is left out lie where they lie with it, also where nothing shows what lay between.
func TestStackLeftOut(t *testing.T) {
	for _, depth := range []int{22, 12} { // neighbours of a slice that is left out overlap; they do not
		o := referenceOptions()
		o.SlicingIntervalMM, o.MovingZFirstIndex, o.UseExpectedOverlap = 0.035, 1, true // 10 planes of 3.5 µm
		all, _ := planesOf(t, numbered(t, depth, 0, 1, 2, 3, 4), o)
		in := numbered(t, depth, 0, 2, 4)
		in.LeftOut, in.Cuts = []int{1, 3}, map[int]int{2: 2, 4: 2}
		for _, expected := range []bool{true, false} { // no search either
			o.UseExpectedOverlap = expected
			got, result := planesOf(t, in, o)
			if len(got) != len(all) {
				t.Fatalf("%d planes, want %d", len(got), len(all))
			}
			for z, v := range got {
				want := all[z]
				switch owner := int(want)/100 - 1; {
				case owner%2 == 0:
				case z-10*(owner-1) < depth: // the slice before it shows this plane, too
					want = float32(100*owner + z - 10*(owner-1))
				default:
					want = 0
				}
				if v != want {
					t.Errorf("slices of %d planes: plane %d is %v, want %v", depth, z, v, want)
				}
			}
			overlap := depth - 1 - 20
			want := tables.Decision{SliceID: 2, FixedID: 0, Source: "left_out", Overlap: max(0, overlap), Blend: max(0, overlap)}
			if d := result.Decisions[0]; d != want {
				t.Errorf("%+v, want %+v", d, want)
			}
			o.Blend = true
			if blended, _ := planesOf(t, in, o); len(blended) != len(all) || blended[len(all)-1] != all[len(all)-1] {
				t.Errorf("blended: %v", blended)
			}
			o.Blend = false
		}
	}
}

// A slice in whose place the blade cut nothing lies on the one before it; transforms onto slices that are left out do
// not count.
func TestStackCuts(t *testing.T) {
	o := referenceOptions()
	o.SlicingIntervalMM, o.MovingZFirstIndex = 0.035, 1
	in := numbered(t, 22, 0, 1)
	in.Cuts = map[int]int{1: 0}
	if got, _ := planesOf(t, in, o); len(got) != 22 || got[0] != 100 || got[1] != 201 || got[21] != 221 {
		t.Errorf("%v", got)
	}
	dir := t.TempDir()
	offsets := [2]int{20, 3}
	(&oracleTransform{conf: 1, offsets: &offsets}).write(t, dir+"/z02")
	in = numbered(t, 22, 0, 2)
	var err error
	if in.Transforms, err = registration.OpenFolder(dir); err != nil {
		t.Fatal(err)
	}
	if _, result := planesOf(t, in, o); result.Decisions[0].Source != "registration" {
		t.Errorf("%+v", result.Decisions)
	}
	in.LeftOut, in.Apart = []int{1}, []int{2} // scanned twice: one cut lies between them
	if _, result := planesOf(t, in, o); result.Decisions[0].Loaded || result.Decisions[0].Source == "registration" {
		t.Errorf("%+v", result.Decisions)
	}
}

// Neither the overlap of an interpolated slice with the one before it is searched for, nor that of the one behind it,
// nor are they changed to those of others; nor do they change others.
func TestStackInterpolated(t *testing.T) {
	o := referenceOptions()
	o.SlicingIntervalMM, o.MovingZFirstIndex, o.ZOverlapMinCorr = 0.035, 1, 0
	in := numbered(t, 22, 0, 1, 2, 3)
	in.Config[1] = registration.SliceConfig{Use: true, Interpolated: true}
	_, result := planesOf(t, in, o)
	for i, want := range []string{"interpolated", "interpolated", "correlation"} {
		if d := result.Decisions[i]; d.Source != want || i < 2 && d.Overlap != 11 {
			t.Errorf("%+v, want %s", d, want)
		}
	}
	o.MeasureInterpolated = true
	if _, result = planesOf(t, in, o); result.Decisions[0].Source != "correlation" {
		t.Errorf("%+v", result.Decisions)
	}
}
