package stack

import (
	"strings"
	"sync/atomic"
	"testing"

	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/registration"
	"strata/pkg/zarr/store"
	"strata/tests/octtest"
)

// Progress ends at the bytes of all slices, though planes are left out of some and
// others are read twice; and what the shifts name beyond the slices is said.
func TestStackProgress(t *testing.T) {
	image := func() *ngff.Image {
		in, _ := octtest.Made(t, []int{12, 48, 64}, []int{6, 8, 16}, nil, nil, func(i int) uint16 { return uint16(i * 7919 >> 2) })
		return in
	}
	shifts, err := registration.ReadShifts(strings.NewReader("fixed_id,moving_id,x_shift_mm,y_shift_mm\n1,2,0.1,0\n2,3,0,0.1\n3,8,0,0\n8,9,0,0\n"), "shifts")
	if err != nil {
		t.Fatal(err)
	}
	in := Input{Shifts: shifts, Slices: []Slice{{1, "1", image()}, {2, "2", image()}, {3, "3", image()}}, LeftOut: []int{8}}
	for _, change := range []func(*Options){
		func(*Options) {}, func(o *Options) { o.Blend, o.BlendRefinementPx = true, 2 },
		func(o *Options) { o.UseExpectedOverlap, o.MovingZFirstIndex = true, 3 }, func(o *Options) { o.MovingZFirstIndex = 50 },
	} {
		opt := referenceOptions()
		change(&opt)
		var done atomic.Int64
		said := ""
		res := octtest.Small()
		res.Progress = func(n int64) { done.Add(n) }
		res.Warn = func(text string) { said += text + "\n" }
		if _, err := Run(octtest.Ctx, in, opt, store.Memory(), oct.Layout{}, res); err != nil {
			t.Fatal(err)
		}
		if want := int64(3 * 12 * 48 * 64 * 2); done.Load() != want {
			t.Errorf("%+v: progress of %d bytes, slices have %d", opt, done.Load(), want)
		}
		if !strings.Contains(said, "shifts: slices [9] are missing: the volume begins or ends without them\n") {
			t.Errorf("warnings: %s", said)
		}
	}
}
