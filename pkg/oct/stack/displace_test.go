package stack

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"strata/pkg/dtype"
	"strata/pkg/filter"
	"strata/pkg/filter/bspline"
	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/oct/register"
	"strata/pkg/registration"
	"strata/pkg/zarr/store"
	"strata/tests/octtest"
)

const bentDepth, bentNY, bentNX = 6, 170, 190

// bent returns three slices that show one picture in all planes, the second of them bent by a few pixels, and the
// picture.
func bent(t *testing.T) (in []Slice, picture []float32) {
	t.Helper()
	r := rand.New(rand.NewPCG(4, 9))
	noise := make([]float32, bentNY*bentNX)
	picture = make([]float32, len(noise))
	for _, sigma := range []float64{2, 5} {
		for i := range noise {
			noise[i] = float32(r.NormFloat64() * sigma)
		}
		smooth := make([]float32, len(noise))
		filter.Separable(smooth, noise, bentNY, bentNX, toFloat32(filter.GaussianKernel(sigma, 0)))
		for i, f := range smooth {
			picture[i] += f
		}
	}
	for i := range picture {
		picture[i] += 10
	}
	bend := bspline.NewWarp(bentNY, bentNX, 40).Like(func(x, y float64) (float64, float64) {
		return 3 * math.Sin(x/32) * math.Cos(y/40), 2.5 * math.Cos(x/38) * math.Sin(y/29)
	})
	for k := range 3 {
		plane := picture
		if k == 1 {
			plane = make([]float32, len(picture))
			bend.Resample(plane, picture, bentNY, bentNX, filter.Rigid{}, 0, 0, 0)
		}
		var v []float32
		for range bentDepth {
			v = append(v, plane...)
		}
		st := store.Memory()
		shape := []int{bentDepth, bentNY, bentNX}
		w, err := ngff.Create(octtest.Ctx, st, "", ngff.ImageSpec{Format: 3, Shape: shape, Chunks: []int{4, 64, 64}, DType: dtype.Float32,
			Axes: ngff.SpaceAxes("zyx", "micrometer"), Scale: []float64{10, 10, 10}})
		if err == nil {
			err = w.WriteTile(octtest.Ctx, []int{0, 0, 0}, shape, dtype.Bytes(v))
		}
		if err == nil {
			err = w.Close(octtest.Ctx)
		}
		if err != nil {
			t.Fatal(err)
		}
		in = append(in, Slice{k, fmt.Sprintf("slice_z%02d", k), octtest.Open(t, st)})
	}
	return in, picture
}

// registered registers the neighbours into a folder.
func registered(t *testing.T, in []Slice) string {
	t.Helper()
	dir := t.TempDir()
	o := register.Defaults()
	o.SlicingIntervalMM, o.SearchRangeMM, o.Elastic = 0.04, 0.01, true
	for k := 1; k < len(in); k++ {
		r, err := register.Run(octtest.Ctx, register.Slice{Path: in[k-1].Path, Image: in[k-1].Image}, register.Slice{Path: in[k].Path, Image: in[k].Image}, o, octtest.Small())
		if err != nil || r.Elastic == nil {
			t.Fatal(err, r)
		}
		pair := filepath.Join(dir, in[k].Path)
		if err := os.Mkdir(pair, 0o777); err != nil {
			t.Fatal(err)
		}
		files, err := r.Files("transform.tfm", "offsets.txt")
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if err := os.WriteFile(filepath.Join(pair, f.Name), f.Content, 0o666); err != nil {
				t.Fatal(err)
			}
		}
	}
	return dir
}

// A slice that is bent is laid on the others by the displacements that register finds, and so is the slice after it,
// whose displacements are beside the bent one. The volume does not depend on workers and memory.
func TestStackDisplaces(t *testing.T) {
	in, picture := bent(t)
	dir := registered(t, in)
	o := DefaultStackOptions()
	o.NoXYShift, o.UseExpectedOverlap, o.SlicingIntervalMM, o.MovingZFirstIndex, o.RepairShifts, o.PyramidResolutions, o.MaxRotationDeg = true, true, 0.04, 0, RepairOff, nil, 0
	volume := func(o Options, res oct.Resources) ([]float32, int) {
		folder, err := registration.OpenFolder(dir)
		if err != nil {
			t.Fatal(err)
		}
		st := store.Memory()
		r, err := Run(context.Background(), Input{Slices: in, Transforms: folder}, o, st, oct.Layout{}, res)
		if err != nil {
			t.Fatal(err)
		}
		return octtest.Read(t, r.Image.Levels[0].Array), r.Shape[0]
	}
	// off tells by how much a plane differs from the picture, in units of its deviation
	off := func(v []float32) float64 {
		sum, squares, n := 0.0, 0.0, 0.0
		for y := 20; y < bentNY-20; y++ {
			for x := 20; x < bentNX-20; x++ {
				f, d := float64(picture[y*bentNX+x])-10, float64(v[y*bentNX+x]-picture[y*bentNX+x])
				sum, squares, n = sum+d*d, squares+f*f, n+1
			}
		}
		return math.Sqrt(sum / squares)
	}
	for _, blend := range []bool{false, true} {
		o.Blend, o.BlendMatch = blend, MatchWhole
		if blend { // overlaps are compared with the displacements
			o.UseExpectedOverlap, o.SearchRangeMM = false, 0.01
		}
		first, depth := volume(o, octtest.Small())
		for z := range depth {
			if d := off(first[z*bentNY*bentNX:]); d > 0.15 {
				t.Errorf("blend %v: plane %d of %d is off by %.3f", blend, z, depth, d)
			} else {
				t.Logf("blend %v: plane %d of %d is off by %.3f", blend, z, depth, d)
			}
		}
		for _, res := range []oct.Resources{{Workers: 1, Mem: 5 << 20}, {Workers: 7, Mem: 1 << 30}} {
			again, _ := volume(o, res)
			octtest.SameBits(t, again, first)
		}
	}
	// without the displacements the bent slice shows
	for k := 1; k < 3; k++ {
		if err := os.Remove(filepath.Join(dir, in[k].Path, registration.ElasticName)); err != nil {
			t.Fatal(err)
		}
	}
	o.Blend, o.UseExpectedOverlap = false, true
	plain, _ := volume(o, octtest.Small())
	if d := off(plain[5*bentNY*bentNX:]); d < 0.3 {
		t.Errorf("without displacements: off by %.3f only", d)
	}
}

// Displacements that fold the plane are left out with a word; those of a slice whose transform is skipped are not its
// own.
func TestDisplace(t *testing.T) {
	bend := bspline.NewWarp(40, 40, 10).Like(func(x, y float64) (float64, float64) { return 2 * math.Sin(x/10), 0 })
	fold := bspline.NewWarp(40, 40, 10).Like(func(x, y float64) (float64, float64) { return -2 * x, 0 })
	loaded := func(w *bspline.Warp, confidence float64) pairTransform {
		return pairTransform{loaded: true, elastic: w, confidence: confidence}
	}
	p := movers(DefaultStackOptions(), 20, loaded(nil, 1), loaded(bend, 0.1), loaded(bend, 1), pairTransform{}, loaded(fold, 1), loaded(nil, 1))
	var words []string
	res := octtest.Small()
	res.Warn = func(text string) { words = append(words, text) }
	p.rotate()
	p.displace(&res)
	for i, want := range []bool{false, false, true, true, false, false} {
		if m := p.moving[i]; (m.warp != nil) != want || m.resampled != want {
			t.Errorf("slice %d: displaced %v, want %v", m.slice.id, m.warp != nil, want)
		}
	}
	if len(words) != 1 || !strings.Contains(words[0], "slice 5: ") {
		t.Errorf("%q", words)
	}
	if !p.warped() {
		t.Error("not displaced")
	}
}
