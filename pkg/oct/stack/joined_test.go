//go:build !nocuda

package stack

import (
	"math/rand/v2"
	"testing"
	"time"

	"strata/pkg/dtype"
	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/zarr/store"
	"strata/tests/octtest"
)

// A device goes on where the host is, or does not: the same volume, decisions and warnings, with slices that are
// turned, matched and refined.
func TestDeviceJoins(t *testing.T) {
	trials := []int{40, 115, 132}
	if testing.Short() {
		trials = trials[:1]
	}
	for _, trial := range trials {
		in, opt := modelInput(t, trial)
		octtest.JoinedAfter(t, octtest.Small(), []int{1, 2}, func(res oct.Resources) (*ngff.Image, any, error) {
			return joined(in, opt, oct.Layout{Chunks: []int{3, 10, 12}, Codec: "raw"}, res)
		})
	}
}

// It does so in the middle of a slice, where little memory holds only some planes, and where level 0 is coarser than
// the slices, which is made on the device if none of it has been written.
func TestDeviceJoinsInSlice(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 6))
	var in Input
	for i, s := range oracleSpecimen(rng, 4, false) {
		in.Slices = append(in.Slices, Slice{i, "slice", s.stored(t, dtype.Float32, 2, []int{4, 16, 16}, nil, "raw", []float64{10, 10, 10})})
	}
	opt, layout := referenceOptions(), oct.Layout{Chunks: []int{2, 8, 8}, Codec: "raw", Levels: 1}
	opt.NoXYShift, opt.UseExpectedOverlap, opt.MovingZFirstIndex, opt.SlicingIntervalMM = true, true, 0, 0.05
	for _, c := range []struct {
		blend  bool
		levels []float64
		after  []int
	}{{true, nil, []int{1, 2, 3}}, {true, []float64{25, 50}, []int{1, 2, 3}}, {false, nil, []int{1, 2, 3, 5, 7}}, {false, []float64{25}, []int{2, 3}}} {
		opt.Blend, opt.PyramidResolutions = c.blend, c.levels
		res := octtest.Small()
		if !c.blend {
			for res.Mem = 32 << 10; ; res.Mem += res.Mem / 16 { // the least that does
				if _, _, err := joined(in, opt, layout, res); err == nil {
					break
				}
			}
		}
		octtest.JoinedAfter(t, res, c.after, func(res oct.Resources) (*ngff.Image, any, error) { return joined(in, opt, layout, res) })
	}
}

// joined stacks and returns what is decided besides the volume.
func joined(in Input, opt Options, layout oct.Layout, res oct.Resources) (*ngff.Image, any, error) {
	r, err := Run(octtest.Ctx, in, opt, store.Memory(), layout, res)
	if err != nil {
		return nil, nil, err
	}
	im := r.Image
	r.Image = nil
	return im, r, nil
}

// A device that comes when the host is about to end is left alone.
func TestDeviceComesLate(t *testing.T) {
	in, opt := modelInput(t, 40)
	d := octtest.Device(t, 64<<20)
	res := octtest.Small()
	res.Coming = oct.NewComing(time.Hour, 0, time.Minute)
	res.Coming.Settle(func(res *oct.Resources) { res.Device = d })
	before, _, _ := d.Traffic()
	if _, _, err := joined(in, opt, oct.Layout{Codec: "raw"}, res); err != nil {
		t.Fatal(err)
	}
	if after, _, _ := d.Traffic(); after != before {
		t.Errorf("%d bytes went to the device", after-before)
	}
}
