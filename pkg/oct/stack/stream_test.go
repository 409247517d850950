package stack

import (
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"strata/pkg/dtype"
	"strata/pkg/meter"
	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/registration"
	"strata/pkg/zarr"
	"strata/pkg/zarr/store"
	"strata/tests/octtest"
	"strata/tests/race"
)

// storedBytes are the bytes that reading a box of a slice takes from storage.
func storedBytes(t *testing.T, im *ngff.Image, start, shape []int) int64 {
	t.Helper()
	var count meter.Meter
	a := im.Levels[0].Array.With(zarr.Workers(1), zarr.Meter(&count))
	n := a.DType().Size()
	for _, s := range shape {
		n *= s
	}
	if err := a.Read(octtest.Ctx, zarr.Region{Start: start, Shape: shape}, make([]byte, n)); err != nil {
		t.Fatal(err)
	}
	return count.BytesRead()
}

// No byte of a slice comes from storage twice, but for the chunks on which an
// overlap is measured: those once more, before, since no slice has a place until
// all overlaps are known.
func TestStackReadsOnce(t *testing.T) {
	race.Leave(t)
	for _, codec := range []string{"raw", "blosc-zstd:1", "zstd:1"} {
		for _, depth := range []int{20, 4, 7} {
			for name, set := range map[string]func(o *Options){
				"expected":         func(o *Options) { o.UseExpectedOverlap = true },
				"expected, blend":  func(o *Options) { o.UseExpectedOverlap, o.Blend = true, true },
				"registration":     func(o *Options) { o.Blend, o.BlendRefinementPx = true, 3 },
				"measured":         func(o *Options) {},
				"measured, blend":  func(o *Options) { o.Blend = true },
				"blend depth":      func(o *Options) { o.UseExpectedOverlap, o.Blend, o.BlendZRefineVox = true, true, 2 },
				"measured, a pass": func(o *Options) { o.Blend, o.ZOverlapMinCorr = true, 0 },
			} {
				rng := rand.New(rand.NewPCG(8, 8))
				sl := oracleSpecimen(rng, 4, false)
				opt := referenceOptions()
				opt.NoXYShift, opt.MovingZFirstIndex, opt.PyramidResolutions = true, 1, nil
				opt.SlicingIntervalMM, opt.SearchRangeMM = float64(sl[0].z-5)/100, 0.02
				set(&opt)
				dir := t.TempDir()
				var in Input
				var once, twice int64
				var count meter.Meter
				for i, s := range sl {
					if name == "registration" && i > 0 {
						(&oracleTransform{angle: 0.01, conf: 1, offsets: &[2]int{s.z - 4, 0}}).write(t, filepath.Join(dir, fmt.Sprintf("z%02d", s.id)))
					}
					chunks := []int{min(depth, s.z), 8, 8}
					im := s.stored(t, dtype.Float32, 2, chunks, nil, codec, []float64{10, 10, 10})
					in.Slices = append(in.Slices, Slice{s.id, fmt.Sprintf("slice %d", s.id), im})
					once += storedBytes(t, im, []int{0, 0, 0}, []int{s.z, s.y, s.x})
					if measured := strings.HasPrefix(name, "measured") || name == "blend depth"; measured {
						g := min(s.y, s.x) / 4 // the chunks that meet the centre
						y0, x0 := g/8*8, g/8*8
						y1, x1 := min((s.y-g+7)/8*8, s.y), min((s.x-g+7)/8*8, s.x)
						twice += storedBytes(t, im, []int{0, y0, x0}, []int{s.z, y1 - y0, x1 - x0})
					}
				}
				for _, s := range in.Slices {
					s.Image.Levels[0].Array = s.Image.Levels[0].Array.With(zarr.Meter(&count))
				}
				var err error
				if in.Transforms, err = registration.OpenFolder(dir); err != nil {
					t.Fatal(err)
				}
				if _, err := Run(octtest.Ctx, in, opt, store.Memory(), oct.Layout{Codec: "raw"}, octtest.Small()); err != nil {
					t.Fatal(err)
				}
				if got := count.BytesRead(); got > once+twice || got < once*8/10 || twice > 0 && got <= once {
					t.Errorf("%s, %s in chunks of %d planes: %d bytes read of %d, and %d to measure", name, codec, depth, got, once, twice)
				}
			}
		}
	}
}

// What a stack needs depends on the planes that are blended, not on how many
// slices there are or how deep they are.
func TestStackMemoryIsFlat(t *testing.T) {
	race.Leave(t)
	need := func(n, depth int, measured bool) int64 {
		rng := rand.New(rand.NewPCG(9, 9))
		var in Input
		var first *ngff.Image
		for i := range n {
			if i == 0 {
				s := &oracleSlice{z: depth, y: 96, x: 96}
				for range depth * 96 * 96 {
					s.v = append(s.v, float64(rng.IntN(1000)))
				}
				first = s.stored(t, dtype.Float32, 2, []int{2, 16, 16}, nil, "raw", []float64{10, 10, 10})
			}
			in.Slices = append(in.Slices, Slice{i, "slice", first})
		}
		opt := referenceOptions()
		opt.NoXYShift, opt.Blend, opt.MovingZFirstIndex, opt.PyramidResolutions = true, true, 0, nil
		opt.UseExpectedOverlap, opt.SlicingIntervalMM, opt.SearchRangeMM = !measured, float64(depth-4)/100, 0.02
		return leastMemory(t, in, opt, oct.Layout{Chunks: []int{2, 96, 96}, Codec: "raw"}, oct.Resources{Workers: 2, Mem: 32 << 20})
	}
	for _, measured := range []bool{false, true} {
		least := need(2, 10, measured)
		for _, c := range [][2]int{{12, 10}, {2, 60}} {
			if got := need(c[0], c[1], measured); got > least+least/4 {
				t.Errorf("measured %v: %d slices of %d planes need %d KiB, 2 of 10 planes %d KiB", measured, c[0], c[1], got>>10, least>>10)
			}
		}
	}
}

// Voxels that are not finite are counted once, also where the planes to be blended
// come in pieces, several times.
func TestStackCountsNotFinite(t *testing.T) {
	rng := rand.New(rand.NewPCG(10, 10))
	var in Input
	want := int64(0)
	for i := range 3 {
		s := &oracleSlice{z: 24, y: 40, x: 40}
		for range s.z * s.y * s.x {
			v := rng.Float64() * 1000 * float64(i+1)
			if rng.IntN(100) == 0 {
				v = []float64{math.NaN(), math.Inf(1), math.Inf(-1)}[rng.IntN(3)]
				want++
			}
			s.v = append(s.v, v)
		}
		typ := []dtype.Type{dtype.Float32, dtype.Float64}[i%2]
		in.Slices = append(in.Slices, Slice{i, "slice", s.stored(t, typ, 2, []int{4, 16, 16}, nil, "blosc-zstd:1", []float64{10, 10, 10})})
	}
	opt := referenceOptions()
	opt.NoXYShift, opt.Blend, opt.UseExpectedOverlap, opt.MovingZFirstIndex, opt.SlicingIntervalMM, opt.PyramidResolutions = true, true, true, 0, 0.06, nil
	layout, res := oct.Layout{Chunks: []int{2, 40, 40}, Codec: "raw"}, octtest.Small()
	for _, mem := range []int64{res.Mem, leastMemory(t, in, opt, layout, res)} {
		var count meter.Meter
		res.Mem, res.Meter = mem, &count
		if _, err := Run(octtest.Ctx, in, opt, store.Memory(), layout, res); err != nil {
			t.Fatal(err)
		}
		if got := count.NonFinite(); got != want {
			t.Errorf("%d KiB: %d voxels are counted as not finite, want %d", mem>>10, got, want)
		}
	}
}
