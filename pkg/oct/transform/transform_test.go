package transform

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"strata/pkg/dtype"
	"strata/pkg/filter"
	"strata/pkg/filter/bspline"
	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/zarr/store"
	"strata/tests/golden"
	"strata/tests/octtest"
)

// sliceOf returns an image of planes z that are each the plane v, plus 1000·z.
func sliceOf(t *testing.T, v []float32, depth, ny, nx int, chunks []int) *ngff.Image {
	t.Helper()
	all := make([]float32, 0, depth*len(v))
	for z := range depth {
		for _, f := range v {
			all = append(all, f+1000*float32(z))
		}
	}
	return octtest.MosaicOf(t, ngff.ImageSpec{Shape: []int{depth, ny, nx}, Chunks: chunks}, all)
}

// Planes are moved as SimpleITK moves them, whatever the chunks, the workers and the memory.
func TestRigid(t *testing.T) {
	for _, p := range golden.Primitives(t, "euler2d") {
		var args struct {
			Cases map[string]struct {
				Angle          float64 `json:"angle_deg"`
				TX, TY, CX, CY float64
			}
			Fill float64
		}
		var tol struct {
			Rel, Abs float64
			Off      float64 `json:"max_fraction_off"`
		}
		if err := json.Unmarshal(p.Args, &args); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(p.RawTolerance, &tol); err != nil {
			t.Fatal(err)
		}
		in := p.Arrays["in"]
		ny, nx := in.Shape[0], in.Shape[1]
		for name, c := range args.Cases {
			want := dtype.Slice[float32](p.Arrays[name].Data)
			m := Motion{Rigid: filter.Rigid{Angle: c.Angle * math.Pi / 180, TX: c.TX, TY: c.TY, CX: c.CX, CY: c.CY}}
			var first []float32
			for _, chunks := range [][]int{{2, ny, nx}, {1, 16, 16}} {
				im := sliceOf(t, dtype.Slice[float32](in.Data), 2, ny, nx, chunks)
				for _, res := range []oct.Resources{octtest.Small(), {Workers: 1, Mem: 1 << 20}} {
					out, err := Run(octtest.Ctx, im, store.Memory(), m, float32(args.Fill), oct.Layout{}, res)
					if err != nil {
						t.Fatal(err)
					}
					got := octtest.Read(t, out.Levels[0].Array)
					if first == nil {
						first = got
						off := 0
						for i, w := range want {
							if math.Abs(float64(got[i]-w)) > tol.Abs+tol.Rel*math.Abs(float64(w)) {
								off++
							}
						}
						if float64(off) > tol.Off*float64(len(want)) {
							t.Errorf("%s: %d of %d pixels are not those of SimpleITK", name, off, len(want))
						}
						continue
					}
					for i := range got {
						if math.Abs(float64(got[i]-first[i])) > 1e-3 {
							t.Fatalf("%s: voxel %d is %v in chunks of %v, and %v in one", name, i, got[i], chunks, first[i])
						}
					}
				}
			}
		}
	}
}

// Displacements are applied on top, as filter/bspline applies them to a whole plane; a slice that is moved away is the
// fill.
func TestWarpAndAway(t *testing.T) {
	const ny, nx = 40, 50
	plane := make([]float32, ny*nx)
	for i := range plane {
		plane[i] = float32(20 * math.Sin(float64(i%nx)/4) * math.Cos(float64(i/nx)/5))
	}
	im := sliceOf(t, plane, 1, ny, nx, []int{1, 16, 16})
	w := bspline.NewWarp(ny, nx, 20)
	for i := range w.DX {
		w.DX[i], w.DY[i] = 3*math.Sin(float64(i)), 2*math.Cos(float64(2*i))
	}
	m := Motion{Rigid: filter.Rigid{Angle: 0.1, TX: 2, TY: -1, CX: 25, CY: 20}, Warp: w}
	want := make([]float32, ny*nx)
	w.Resample(want, plane, ny, nx, m.Rigid, 0, 0, -7)
	out, err := Run(octtest.Ctx, im, store.Memory(), m, -7, oct.Layout{}, octtest.Small())
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range octtest.Read(t, out.Levels[0].Array) {
		if math.Abs(float64(f-want[i])) > 1e-3 {
			t.Fatalf("pixel %d is %v, want %v", i, f, want[i])
		}
	}
	out, err = Run(octtest.Ctx, im, store.Memory(), Motion{Rigid: filter.Rigid{TX: 500}}, 3, oct.Layout{}, octtest.Small())
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range octtest.Read(t, out.Levels[0].Array) {
		if f != 3 {
			t.Fatalf("pixel %d of a slice that was moved away is %v", i, f)
		}
	}
	if _, err := Run(octtest.Ctx, im, store.Memory(), m, 0, oct.Layout{}, oct.Resources{Workers: 1, Mem: 1000}); err == nil || !strings.Contains(err.Error(), "--mem grants") {
		t.Errorf("little memory: %v", err)
	}
}
