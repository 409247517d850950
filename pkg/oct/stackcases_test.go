package oct

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"strata/pkg/dtype"
	"strata/pkg/registration"
	"strata/pkg/zarr/store"
)

// stackOf stacks slices without shifts, with transforms of their own.
func stackOf(t *testing.T, sl []*oracleSlice, opt StackOptions, res Resources) (*StackResult, *oracleResult, error) {
	t.Helper()
	opt.NoXYShift, opt.PyramidResolutions = true, nil
	var in StackInput
	dir := t.TempDir()
	for _, s := range sl {
		in.Slices = append(in.Slices, StackSlice{s.id, fmt.Sprintf("slice %d", s.id), s.stored(t, dtype.Float32, 3, []int{s.z, 16, 16}, nil, "raw", []float64{10, 10, 10})})
		if s.auto != nil {
			s.auto.write(t, filepath.Join(dir, fmt.Sprintf("z%02d", s.id)))
		}
	}
	var err error
	if in.Transforms, err = registration.OpenFolder(dir); err != nil {
		t.Fatal(err)
	}
	got, err := Stack(ctx, in, opt, store.Memory(), Layout{Chunks: []int{2, 16, 16}}, res)
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
			opt := DefaultStackOptions()
			opt.Blend = blend
			for _, mem := range []int64{64 << 20, 0} {
				res := Resources{Workers: 2, Mem: mem}
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
	opt := DefaultStackOptions()
	opt.Blend, opt.MovingZFirstIndex, opt.SlicingIntervalMM, opt.SearchRangeMM = true, 0, float64(sl[0].z-4)/100, 0.02
	res := Resources{Workers: 2, Mem: 64 << 20, Warn: func(m string) { warnings = append(warnings, m) }}
	got, _, err := stackOf(t, sl, opt, res)
	if err != nil {
		t.Fatal(err)
	}
	for i, m := range got.Matches {
		if m.Correlation != 0 || !m.Fallback || m.Overlap != 4 {
			t.Errorf("match %d: %+v, want the expected overlap of 4 and correlation 0", i, m)
		}
	}
	if !slices.ContainsFunc(warnings, func(w string) bool { return strings.Contains(w, "not all finite") }) {
		t.Errorf("warnings %q say nothing of NaN", warnings)
	}
	v := read(t, got.Image.Levels[0].Array)
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
		opt := DefaultStackOptions()
		opt.Blend, opt.MovingZFirstIndex, opt.SlicingIntervalMM, opt.SearchRangeMM, opt.BlendRefinementPx = true, 0, float64(sl[0].z-4)/100, 0.02, 5
		got, want, err := stackOf(t, sl, opt, small())
		if err != nil {
			t.Fatal(err)
		}
		compareStack(t, 0, opt, got, want, map[string]int{})
		for i, f := range read(t, got.Image.Levels[0].Array) {
			if math.Abs(float64(f)-value) > 1e-4 {
				t.Fatalf("constant %v: voxel %d is %v", value, i, f)
			}
		}
	}
}

// The medians are exact also when the sample misleads: every fourth voxel,
// which is what the sample sees, is brighter than all others.
func TestStackMedians(t *testing.T) {
	const n, depth = 512, 3
	rng := rand.New(rand.NewPCG(6, 6))
	for _, misleading := range []bool{false, true} {
		a := &assembly{res: small(), crew: newCrew(2), ny: n, nx: n}
		var old, moving [][]float32
		var both [2][]float64
		r := rect{y0: 1, y1: n, x0: 0, x1: n - 1}
		i := 0
		for range depth {
			f, m := make([]float32, n*n), make([]float32, n*n)
			for k := range f {
				f[k], m[k] = rng.Float32()*100-10, float32(rng.IntN(50))
			}
			for y := r.y0; y < r.y1; y++ {
				for x := r.x0; x < r.x1; x++ {
					k := y*n + x
					if step := depth * (r.y1 - r.y0) * (r.x1 - r.x0) / sampled; misleading && i%step == 0 {
						f[k], m[k] = 1000+f[k], 1000+m[k]
					}
					i++
					if f[k] > 0 && m[k] > 0 {
						both[0], both[1] = append(both[0], float64(f[k])), append(both[1], float64(m[k]))
					}
				}
			}
			old, moving = append(old, f), append(moving, m)
		}
		for _, piece := range []int{depth, 1} {
			count, here, there, err := a.medians(ctx, r, old, func(f func(at int, planes [][]float32) error) error {
				for at := 0; at < depth; at += piece {
					if err := f(at, moving[at:at+piece]); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil || count != int64(len(both[0])) || here != oracleMedian(both[0]) || there != oracleMedian(both[1]) {
				t.Errorf("misleading %v: %d voxels, medians %v and %v (%v), want %d, %v and %v", misleading, count, here, there, err, len(both[0]), oracleMedian(both[0]), oracleMedian(both[1]))
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
	files, err := FindSlices(dir)
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
	if _, err := FindSlices(dir); err == nil || !strings.Contains(err.Error(), "too large") {
		t.Errorf("%v", err)
	}
}

// What openSlices refuses, by name.
func TestStackRefuses(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	sl := oracleSpecimen(rng, 2, false)
	stored := func(s *oracleSlice, um ...float64) StackSlice {
		return StackSlice{s.id, fmt.Sprintf("slice %d", s.id), s.stored(t, dtype.Float32, 3, []int{s.z, 16, 16}, nil, "raw", um)}
	}
	a := stored(sl[0], 10, 10, 10)
	for name, c := range map[string]struct {
		in   []StackSlice
		want string
	}{
		"none":       {nil, "there are no slices to stack"},
		"voxel size": {[]StackSlice{a, stored(sl[1], 10, 10.02, 10)}, fmt.Sprintf("slice %d: voxel size is 10.02 µm along y, that of slice %d is 10 µm", sl[1].id, sl[0].id)},
	} {
		_, err := Stack(ctx, StackInput{Slices: c.in}, DefaultStackOptions(), store.Memory(), Layout{}, small())
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
	// a thousandth is no difference; one slice is a stack
	for _, in := range [][]StackSlice{{a, stored(sl[1], 10, 10.005, 10)}, {a}} {
		if _, err := Stack(ctx, StackInput{Slices: in}, DefaultStackOptions(), store.Memory(), Layout{}, small()); err != nil {
			t.Error(err)
		}
	}
}
