//go:build !nocuda

package stitch

import (
	"bytes"
	"math"
	"testing"
	"time"

	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/oct/stitch/affine"
	"strata/pkg/oct/stitch/canvas"
	"strata/pkg/zarr/store"
	"strata/tests/octtest"
)

// joined stitches and returns the report.
func joined(in *ngff.Image, layout oct.Layout, opt Options, res oct.Resources) (*ngff.Image, any, error) {
	im, s, err := Run(octtest.Ctx, in, store.Memory(), layout, opt, res)
	if err != nil {
		return nil, nil, err
	}
	var report bytes.Buffer
	if err := WriteStitching(&report, s); err != nil {
		return nil, nil, err
	}
	return im, report.String(), nil
}

// A device makes what the host has not begun when it comes, or nothing: the slice, the seams, the empty tiles,
// progress, NaN and warnings are the same. The host has one pass, or several of little memory, and the device begins
// beside it or after it.
func TestDeviceJoins(t *testing.T) {
	const ny, nx = 110, 150
	in, _ := octtest.Made(t, []int{13, ny, nx}, []int{4, 20, 32}, nil, nil, func(i int) float32 {
		y, x := i/nx%ny, i%nx
		switch {
		case y/20 == 1 && x/32 == 0, y/20 == 2 && x/32 == 1 && i/nx/ny < 5, y/20 == 4 && x/32 == 3:
			return 0
		case i%901 == 77:
			return float32(math.NaN())
		}
		return float32(i*7919%1013) / 3
	})
	opt := Options{Overlap: 0.3, Transform: affine.Matrix{{1, 0.03}, {-0.02, 1.01}}, Blending: canvas.BlendDiffusion, Interpolate: true, Seams: true}
	layout := oct.Layout{Chunks: []int{4, 16, 16}, Codec: "raw", Levels: 1}
	least := int64(64 << 10)
	for ; ; least += least / 16 { // the least that does
		if _, _, err := joined(in, layout, opt, oct.Resources{Workers: 1, Mem: least}); err == nil {
			break
		}
	}
	cases := []struct {
		workers int
		mem     int64
		after   []int
	}{{3, 64 << 20, []int{30}}, {1, 64 << 20, []int{1, 30, 70}}, {1, least, []int{1, 50, 90}}, {2, least * 3 / 2, []int{20}}}
	if testing.Short() {
		cases = cases[:1]
	}
	for _, c := range cases {
		octtest.JoinedAfter(t, oct.Resources{Workers: c.workers, Mem: c.mem}, c.after, func(res oct.Resources) (*ngff.Image, any, error) {
			return joined(in, layout, opt, res)
		})
	}
}

// A device that comes when the host is about to end is left alone.
func TestDeviceComesLate(t *testing.T) {
	in := imperfect[uint16](t, 11)
	d := octtest.Device(t, 64<<20)
	res := octtest.Small()
	res.Coming = oct.NewComing(time.Hour, 0, time.Minute)
	res.Coming.Settle(func(res *oct.Resources) { res.Device = d })
	before, _, _ := d.Traffic()
	if _, _, err := joined(in, oct.Layout{Codec: "raw"}, Options{Overlap: 0.3}, res); err != nil {
		t.Fatal(err)
	}
	if after, _, _ := d.Traffic(); after != before {
		t.Errorf("%d bytes went to the device", after-before)
	}
}

// With several channels a device joins in any, and does those after it. One that is too small is told of once.
func TestDeviceJoinsFrames(t *testing.T) {
	s := newScan(t, 2, 3, 96, 2, [2]int{0, 1})
	scan := s.scan
	scan.Planes = 2
	in, p := s.write(t, scan)
	opt := Options{Positions: p, Tolerance: 6, Channel: tissueChannel, Seams: true}
	octtest.JoinedAfter(t, oct.Resources{Workers: 2, Mem: 64 << 20}, []int{1, 8}, func(res oct.Resources) (*ngff.Image, any, error) {
		return joined(in, oct.Layout{Levels: 1}, opt, res)
	})
}
