package stack

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"strata/pkg/dtype"
	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/oct/slicefiles"
	"strata/pkg/registration"
	"strata/pkg/zarr/store"
	"strata/tests/octtest"
)

// stackOf stacks slices without shifts, with transforms of their own.
func stackOf(t *testing.T, sl []*oracleSlice, opt Options, res oct.Resources) (*Result, *oracleResult, error) {
	t.Helper()
	opt.NoXYShift, opt.PyramidResolutions = true, nil
	var in Input
	dir := t.TempDir()
	for _, s := range sl {
		in.Slices = append(in.Slices, Slice{s.id, fmt.Sprintf("slice %d", s.id), s.stored(t, dtype.Float32, 3, []int{s.z, 16, 16}, nil, "raw", []float64{10, 10, 10})})
		if s.auto != nil {
			s.auto.write(t, filepath.Join(dir, fmt.Sprintf("z%02d", s.id)))
		}
	}
	var err error
	if in.Transforms, err = registration.OpenFolder(dir); err != nil {
		t.Fatal(err)
	}
	got, err := Run(octtest.Ctx, in, opt, store.Memory(), oct.Layout{Chunks: []int{2, 16, 16}}, res)
	return got, oracleStack(sl, nil, [3]float64{10, 10, 10}, opt), err
}

// Overlaps beyond a slice: the z cursor goes back, later slices meet planes that
// lie behind it, and planes at the end are empty.
func TestStackCursorGoesBack(t *testing.T) {
	for seed := range uint64(8) {
		rng := rand.New(rand.NewPCG(seed, 5))
		sl := oracleSpecimen(rng, 4, false)
		depth := sl[0].z
		for i, offsets := range [][2]int{{0, depth - 2 - int(seed)%3}, {2, 1}, {depth - 3, 0}} {
			sl[i+1].auto = &oracleTransform{conf: 1, offsets: &offsets}
		}
		for _, blend := range []bool{true, false} {
			opt := referenceOptions()
			opt.Blend = blend
			for _, mem := range []int64{64 << 20, 0} {
				res := oct.Resources{Workers: 2, Mem: mem}
				if mem == 0 {
					res.Mem = 1 << 20
					for ; ; res.Mem += 64 << 10 {
						if _, _, err := stackOf(t, sl, opt, res); err == nil {
							break
						} else if !strings.Contains(err.Error(), "--mem grants") {
							t.Fatal(err)
						}
					}
				}
				got, want, err := stackOf(t, sl, opt, res)
				if err != nil {
					t.Fatal(err)
				}
				compareStack(t, int(seed), opt, got, want, map[string]int{})
			}
		}
	}
}

// NaN and negative voxels: no correlation, no gain; where one side is a number
// that one is kept, elsewhere 0.
func TestStackNotFinite(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	sl := oracleSpecimen(rng, 3, false)
	for i, s := range sl {
		for k := range s.v {
			if k%7 == i {
				s.v[k] = []float64{math.NaN(), math.NaN(), math.Inf(-1), -5}[k%4]
			}
		}
	}
	var warnings []string
	opt := referenceOptions()
	opt.Blend, opt.MovingZFirstIndex, opt.SlicingIntervalMM, opt.SearchRangeMM = true, 0, float64(sl[0].z-4)/100, 0.02
	res := oct.Resources{Workers: 2, Mem: 64 << 20, Warn: func(m string) { warnings = append(warnings, m) }}
	got, _, err := stackOf(t, sl, opt, res)
	if err != nil {
		t.Fatal(err)
	}
	for i, m := range got.Matches {
		if m.Correlation != 0 || !m.Fallback || m.Overlap != 4 {
			t.Errorf("match %d: %+v, want the expected overlap of 4 and correlation 0", i, m)
		}
	}
	if !slices.ContainsFunc(warnings, func(w string) bool { return strings.Contains(w, "not finite") }) {
		t.Errorf("warnings %q say nothing of NaN", warnings)
	}
	v := octtest.Read(t, got.Image.Levels[0].Array)
	size := sl[0].y * sl[0].x
	end := sl[0].z
	for z := end - 4; z < end; z++ {
		for i, f := range v[z*size : (z+1)*size] {
			if f != f || math.IsInf(float64(f), -1) || f < 0 {
				t.Fatalf("blended voxel %d of plane %d is %v", i, z, f)
			}
		}
	}
	if plain := v[:size]; !slices.ContainsFunc(plain, func(f float32) bool { return f != f }) {
		t.Error("NaN outside the overlap must stay as it is")
	}
}

// All-zero and constant slices.
func TestStackConstant(t *testing.T) {
	for _, value := range []float64{0, 300.5} {
		rng := rand.New(rand.NewPCG(4, 4))
		sl := oracleSpecimen(rng, 3, false)
		for _, s := range sl {
			for k := range s.v {
				s.v[k] = value
			}
		}
		sl[1].auto = &oracleTransform{conf: 1, angle: 0.01, cx: 4, cy: 4}
		opt := referenceOptions()
		opt.Blend, opt.MovingZFirstIndex, opt.SlicingIntervalMM, opt.SearchRangeMM, opt.BlendRefinementPx = true, 0, float64(sl[0].z-4)/100, 0.02, 5
		got, want, err := stackOf(t, sl, opt, octtest.Small())
		if err != nil {
			t.Fatal(err)
		}
		compareStack(t, 0, opt, got, want, map[string]int{})
		for i, f := range octtest.Read(t, got.Image.Levels[0].Array) {
			if math.Abs(float64(f)-value) > 1e-4 {
				t.Fatalf("constant %v: voxel %d is %v", value, i, f)
			}
		}
	}
}

func TestFindSlices(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"slice_z10_a.ome.zarr", "slice_z2.ome.zarr", "slice_z003.zarr.zip", ".slice_z04.ome.zarr", "slice_z05.txt", "other_z06.ome.zarr", "shifts.csv"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	files, err := slicefiles.Find(context.Background(), dir)
	var ids []int
	for _, f := range files {
		ids = append(ids, f.ID)
	}
	if err != nil || !slices.Equal(ids, []int{2, 3, 10}) {
		t.Errorf("slices %v, %v, want 2, 3, 10", ids, err)
	}
	if err := os.Mkdir(filepath.Join(dir, "slice_z99999999999999999999.ome.zarr"), 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := slicefiles.Find(context.Background(), dir); err == nil || !strings.Contains(err.Error(), "too large") {
		t.Errorf("%v", err)
	}
}

// blank is a slice of a type without data.
func blank(t *testing.T, typ dtype.Type, shape []int, axes string) Slice {
	t.Helper()
	st := store.Memory()
	spec := ngff.ImageSpec{Shape: shape, Chunks: shape, DType: typ}
	for _, a := range axes {
		axis := ngff.Axis{Name: string(a), Type: ngff.TypeSpace, Unit: "micrometer"}
		if a == 'c' {
			axis = ngff.Axis{Name: "c", Type: ngff.TypeChannel}
		}
		spec.Axes, spec.Scale = append(spec.Axes, axis), append(spec.Scale, 1)
	}
	w, err := ngff.Create(octtest.Ctx, st, "", spec)
	if err == nil {
		n := typ.Size()
		for _, s := range shape {
			n *= s
		}
		err = w.WriteTile(octtest.Ctx, make([]int, len(shape)), shape, make([]byte, n))
	}
	if err == nil {
		err = w.Close(octtest.Ctx)
	}
	if err != nil {
		t.Fatal(err)
	}
	return Slice{0, "slice 0", octtest.Open(t, st)}
}

// Slices of any type, each its own, in millimetres and micrometres: the same
// volume, in the unit of the first.
func TestStackTypesAndUnits(t *testing.T) {
	rng := rand.New(rand.NewPCG(12, 12))
	sl := oracleSpecimen(rng, 3, false)
	for _, s := range sl {
		for i, v := range s.v {
			s.v[i] = math.Round(v * 0.1) // fits int8
		}
	}
	opt := referenceOptions()
	opt.NoXYShift, opt.Blend, opt.UseExpectedOverlap, opt.PyramidResolutions = true, true, true, nil
	opt.MovingZFirstIndex, opt.SlicingIntervalMM = 1, float64(sl[0].z-5)/100
	want := oracleStack(sl, nil, [3]float64{10, 10, 10}, opt)
	all := []dtype.Type{dtype.Int8, dtype.Uint8, dtype.Int16, dtype.Uint16, dtype.Int32, dtype.Uint32, dtype.Int64, dtype.Uint64, dtype.Float32, dtype.Float64}
	for k := range all {
		var in Input
		for i, s := range sl {
			im := s.stored(t, all[(k+3*i)%len(all)], 2+(k+i)%2, []int{1 + (k+i)%s.z, 16, 11}, nil, []string{"raw", "blosc-zstd:1", "zstd:1"}[(k+i)%3], []float64{10, 10, 10})
			if (k+i)%2 == 0 { // as a file in millimetres is opened
				for d := range 3 {
					im.Axes[d].Unit, im.Unit[d] = "millimeter", "millimeter"
					im.Levels[0].Scale[d] = 0.01
				}
			}
			in.Slices = append(in.Slices, Slice{s.id, fmt.Sprintf("slice %d", s.id), im})
		}
		got, err := Run(octtest.Ctx, in, opt, store.Memory(), oct.Layout{Levels: 5, Chunks: []int{3, 16, 16}}, octtest.Small())
		if err != nil {
			t.Fatal(err)
		}
		compareStack(t, k, opt, got, want, map[string]int{})
		unit, scale := "micrometer", 10.
		if k%2 == 0 {
			unit, scale = "millimeter", 0.01
		}
		if l := got.Image.Levels[0]; got.Image.Unit[0] != unit || math.Abs(l.Scale[0]-scale) > 1e-12 || l.Array.DType() != dtype.Float32 {
			t.Errorf("%v first: voxels of %v %s, %v", all[k], l.Scale, got.Image.Unit[0], l.Array.DType())
		}
	}
}

// A slice that lies in the plane beside where it belongs: moved back, the blended
// planes are those of the slice that lies right, and the planes after them stay.
func TestStackRefinement(t *testing.T) {
	const n, depth, overlap, dy, dx = 64, 9, 4, 3, -2 // the moving slice's content lies so far down and right
	rng := rand.New(rand.NewPCG(13, 13))
	field := make([]float64, n*n)
	for range 60 {
		y, x, s := rng.Float64()*n, rng.Float64()*n, 2+3*rng.Float64()
		for i := range field {
			v, u := float64(i/n)-y, float64(i%n)-x
			field[i] += 300 * math.Exp(-(v*v+u*u)/(2*s*s))
		}
	}
	slice := func(id, oy, ox int) *oracleSlice {
		s := &oracleSlice{id: id, z: depth, y: n, x: n}
		for range depth {
			for i := range field {
				s.v = append(s.v, 100+math.Round(field[min(max(i/n-oy, 0), n-1)*n+min(max(i%n-ox, 0), n-1)]))
			}
		}
		return s
	}
	sl := []*oracleSlice{slice(0, 0, 0), slice(1, dy, dx)}
	sl[1].auto = &oracleTransform{conf: 1, offsets: &[2]int{depth - overlap, 0}}
	for _, c := range []struct {
		limit float64
		moved bool
	}{{5, true}, {math.Hypot(dy, dx), true}, {3.6, false}, {0, false}} {
		opt := referenceOptions()
		opt.Blend, opt.BlendRefinementPx = true, c.limit
		got, _, err := stackOf(t, sl, opt, octtest.Small())
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := got.Refinements[1]; ok != c.moved {
			t.Fatalf("limit %v: moved by %v", c.limit, got.Refinements)
		}
		v := octtest.Read(t, got.Image.Levels[0].Array)
		for z := range got.Shape[0] {
			off := 0
			for y := 8; y < n-8; y++ {
				for x := 8; x < n-8; x++ {
					right := float64(v[(z*n+y)*n+x]) - sl[0].at(0, y, x)
					beside := float64(v[(z*n+y)*n+x]) - sl[1].at(0, y, x)
					if blended := z < depth && c.moved || z <= depth-overlap; blended && math.Abs(right) > 1e-3 || z >= depth && math.Abs(beside) > 1e-3 {
						off++
					}
				}
			}
			if off > 0 {
				t.Errorf("limit %v: %d voxels of plane %d are not where they belong", c.limit, off, z)
			}
		}
	}
}

// The first slice stands as it is, whatever the folder says of it.
func TestStackFirstIsNotTransformed(t *testing.T) {
	rng := rand.New(rand.NewPCG(14, 14))
	sl := oracleSpecimen(rng, 2, false)
	opt := referenceOptions()
	plain, _, err := stackOf(t, sl, opt, octtest.Small())
	if err != nil {
		t.Fatal(err)
	}
	sl[0].auto = &oracleTransform{angle: math.NaN()} // a file that cannot be read
	got, _, err := stackOf(t, sl, opt, octtest.Small())
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(octtest.Read(t, got.Image.Levels[0].Array), octtest.Read(t, plain.Image.Levels[0].Array)) {
		t.Error("the first slice is changed by its transform")
	}
}

// What openSlices refuses, by name.
func TestStackRefuses(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	sl := oracleSpecimen(rng, 2, false)
	stored := func(s *oracleSlice, um ...float64) Slice {
		return Slice{s.id, fmt.Sprintf("slice %d", s.id), s.stored(t, dtype.Float32, 3, []int{s.z, 16, 16}, nil, "raw", um)}
	}
	a := stored(sl[0], 10, 10, 10)
	voxel := func(um float64) Slice {
		s := blank(t, dtype.Uint8, []int{4, 4, 4}, "zyx")
		s.Image.VoxelSize[1] = um
		return s
	}
	for name, c := range map[string]struct {
		in   []Slice
		want string
	}{
		"none":            {nil, "there are no slices to stack"},
		"voxel size":      {[]Slice{a, stored(sl[1], 10, 10.02, 10)}, fmt.Sprintf("slice %d: voxel size is 10.02 µm along y, that of slice %d is 10 µm", sl[1].id, sl[0].id)},
		"fewer axes":      {[]Slice{blank(t, dtype.Uint8, []int{4, 4}, "yx")}, "slice has 2 axes, want 3 (z, y, x)"},
		"other axes":      {[]Slice{blank(t, dtype.Uint8, []int{4, 4, 4}, "czy")}, "axis 0 of the slice is \"c\", want z, y, x in this order"},
		"boolean":         {[]Slice{blank(t, dtype.Bool, []int{4, 4, 4}, "zyx")}, "data type bool: want integers of up to 64 bits, float32 or float64"},
		"half floats":     {[]Slice{blank(t, dtype.Float16, []int{4, 4, 4}, "zyx")}, "data type float16: want"},
		"complex":         {[]Slice{blank(t, dtype.Complex64, []int{4, 4, 4}, "zyx")}, "data type complex64: want"},
		"voxels of 0":     {[]Slice{voxel(0)}, "voxel size along y is 0, want a positive number"},
		"negative voxels": {[]Slice{voxel(-3)}, "voxel size along y is -3, want a positive number"},
		"NaN voxels":      {[]Slice{voxel(math.NaN())}, "voxel size along y is NaN, want a positive number"},
	} {
		_, err := Run(octtest.Ctx, Input{Slices: c.in}, referenceOptions(), store.Memory(), oct.Layout{}, octtest.Small())
		if err == nil || !strings.Contains(err.Error(), c.want) || !errors.Is(err, oct.ErrInput) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
	// a thousandth is no difference; one slice is a stack
	for _, in := range [][]Slice{{a, stored(sl[1], 10, 10.005, 10)}, {a}} {
		if _, err := Run(octtest.Ctx, Input{Slices: in}, referenceOptions(), store.Memory(), oct.Layout{}, octtest.Small()); err != nil {
			t.Error(err)
		}
	}
}
