package stack

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/registration"
	"strata/pkg/zarr/store"
	"strata/tests/octtest"
)

// motorSlices are three slices of 6 × 10 × 12 voxels of 10 µm, two and one pixels (x, y) apart, and where voxels are.
func motorSlices(t *testing.T) (in Input, value func(slice, z, y, x int) float32) {
	t.Helper()
	const nz, ny, nx = 6, 10, 12
	random := rand.New(rand.NewPCG(1, 2))
	var all [3][]float32
	for k := range all {
		for range nz * ny * nx {
			all[k] = append(all[k], float32(1+random.IntN(1000)))
		}
		all[k][0] = 0
		image := octtest.MosaicOf(t, ngff.ImageSpec{Format: 3, Shape: []int{nz, ny, nx}, Chunks: []int{4, 5, 6}, Scale: []float64{10, 10, 10}}, all[k])
		in.Slices = append(in.Slices, Slice{k, fmt.Sprintf("slice %d", k), image})
	}
	var err error
	in.Shifts, err = registration.ReadShifts(strings.NewReader("fixed_id,moving_id,x_shift_mm,y_shift_mm\n0,1,0.02,0.01\n1,2,0.02,0.01\n"), "shifts.csv")
	if err != nil {
		t.Fatal(err)
	}
	return in, func(k, z, y, x int) float32 {
		y, x = y-k, x-2*k
		if z < 0 || z >= nz || y < 0 || y >= ny || x < 0 || x >= nx {
			return 0
		}
		return all[k][(z*ny+y)*nx+x]
	}
}

// Slices that overlap by a given number of planes, by the motor alone, whatever a registration says: put there,
// averaged, and with the voxels that they have.
func TestMotorOnly(t *testing.T) {
	in, value := motorSlices(t)
	for _, c := range []struct {
		overlap int
		average bool
	}{{0, false}, {2, false}, {2, true}, {1, true}} {
		opt := DefaultStackOptions()
		opt.OverlapPlanes, opt.MovingZFirstIndex, opt.RepairShifts, opt.Native, opt.ZSpacingUM = &c.overlap, 0, RepairOff, true, 25
		if c.average {
			opt.Blend, opt.BlendMatch, opt.BlendWeights = true, MatchNone, WeightsAverage
		}
		var warned []string
		res := octtest.Small()
		res.Warn = func(m string) { warned = append(warned, m) }
		result, err := Run(octtest.Ctx, in, opt, store.Memory(), oct.Layout{Levels: 2}, res)
		if err != nil {
			t.Fatal(err)
		}
		depth := 18 - 2*c.overlap
		a := result.Image.Levels[0].Array
		if want := []int{depth, 12, 16}; !slices.Equal(a.Shape(), want) || !slices.Equal(result.Image.VoxelSize, []float64{25, 10, 10}) || len(result.Image.Levels) != 3 {
			t.Fatalf("shape %v of %v µm, %d levels; want %v", a.Shape(), result.Image.VoxelSize, len(result.Image.Levels), want)
		}
		if got, want := result.Image.Levels[2].Array.Shape(), []int{depth / 2 / 2, 3, 4}; !slices.Equal(got, want) {
			t.Errorf("level 2 has the shape %v, want %v", got, want)
		}
		got := octtest.Read(t, a)
		for i, v := range got {
			z, y, x := i/(12*16), i/16%12, i%16
			want := float32(0)
			for k := range 3 {
				from := k * (6 - c.overlap)
				inside := z >= from && z < from+6 && y >= k && y < k+10 && x >= 2*k && x < 2*k+12
				own := value(k, z-from, y, x)
				switch {
				case !inside:
				case c.average && k > 0 && z < from+c.overlap && want > 0 && own > 0:
					want = (want + own) / 2
				case c.average && k > 0 && z < from+c.overlap:
					want = max(want, own)
				default:
					want = own
				}
			}
			if math.Abs(float64(v-want)) > 1e-3 {
				t.Fatalf("overlap %d, average %v: voxel (%d, %d, %d) is %v, want %v", c.overlap, c.average, z, y, x, v, want)
			}
		}
		if d := result.Decisions[0]; d.Source != "given" || d.Overlap != c.overlap || len(warned) > 0 {
			t.Errorf("%+v, warnings %q", d, warned)
		}
	}
	opt := DefaultStackOptions()
	opt.Native, opt.RepairShifts, opt.UseExpectedOverlap, opt.MovingZFirstIndex = true, RepairOff, true, 0
	said := ""
	res := octtest.Small()
	res.Warn = func(m string) { said = m }
	if _, err := Run(octtest.Ctx, in, opt, store.Memory(), oct.Layout{Levels: 9}, res); err != nil || !strings.Contains(said, "is halved 3 times, not 9") {
		t.Errorf("%q %v", said, err)
	}
}
