package oct_test

import (
	"context"
	"errors"
	"io"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"strata/pkg/mem"
	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/oct/aip"
	"strata/pkg/oct/attenuation"
	"strata/pkg/oct/beamprofile"
	"strata/pkg/oct/crop"
	"strata/pkg/oct/focal"
	"strata/pkg/oct/normalize"
	"strata/pkg/oct/resample"
	"strata/pkg/oct/smooth"
	"strata/pkg/oct/stack"
	"strata/pkg/oct/stitch"
	"strata/pkg/registration"
	"strata/pkg/zarr/store"
	"strata/tests/octtest"
)

// full is a store that has room for so many objects.
type full struct {
	store.Writer
	left atomic.Int64
}

var errFull = errors.New("no space left")

func (f *full) Put(ctx context.Context, key string, parts ...[]byte) error {
	if f.left.Add(-1) < 0 {
		return errFull
	}
	return f.Writer.Put(ctx, key, parts...)
}

func (f *full) Create(ctx context.Context, key string) (store.PendingObject, error) {
	if f.left.Add(-1) < 0 {
		return nil, errFull
	}
	return f.Writer.Create(ctx, key)
}

// A stage that cannot write gives back all it took: no goroutine goes on, and memory
// does not grow with the failures.
func TestFailuresKeepNothing(t *testing.T) {
	image := func() *ngff.Image {
		in, _ := octtest.Made(t, []int{12, 48, 64}, []int{6, 8, 16}, nil, nil, func(i int) uint16 { return uint16(i * 7919 >> 2) })
		return in
	}
	in := image()
	shifts, err := registration.ReadShifts(strings.NewReader("fixed_id,moving_id,x_shift_mm,y_shift_mm\n"), "shifts")
	if err != nil {
		t.Fatal(err)
	}
	stacked := stack.Input{Shifts: shifts, Slices: []stack.Slice{{ID: 1, Path: "1", Image: image()}, {ID: 2, Path: "2", Image: image()}}}
	flat := octtest.Plane(t, make([]float32, 8*16), 8, 16) // estimating one takes long
	layout := oct.Layout{Levels: 3}
	for name, stage := range map[string]func(out store.Writer, res oct.Resources) error{
		"aip": func(out store.Writer, res oct.Resources) error {
			_, err := aip.Run(octtest.Ctx, in, out, layout, &aip.Picture{To: io.Discard, ScaleBar: true}, res)
			return err
		},
		"resample": func(out store.Writer, res oct.Resources) error {
			_, err := resample.Run(octtest.Ctx, in, out, resample.Options{Resolution: [3]float64{10, 10, 10}, Prefetch: 8}, layout, res)
			return err
		},
		"focal": func(out store.Writer, res oct.Resources) error {
			_, err := focal.Run(octtest.Ctx, in, out, focal.Options{SigmaXY: 3, SigmaZ: 1, Correction: flat}, layout, res)
			return err
		},
		"crop": func(out store.Writer, res oct.Resources) error {
			_, _, err := crop.Run(octtest.Ctx, in, out, crop.Options{Depth: 60, PercentileMax: 99.9, MaxFraction: 0.5, SigmaXY: 3, SigmaZ: 2}, layout, res)
			return err
		},
		"attenuation": func(out store.Writer, res oct.Resources) error {
			_, _, err := attenuation.Run(octtest.Ctx, in, out, attenuation.Options{Method: attenuation.Li, Radius: 2, Strength: 1, MinBias: 0.1, SNR: 6, MaskSigma: 1}, layout, res)
			return err
		},
		"beam-profile": func(out store.Writer, res oct.Resources) error {
			_, _, err := beamprofile.Run(octtest.Ctx, in, out, beamprofile.Options{PercentileMax: 99}, layout, res)
			return err
		},
		"normalize": func(out store.Writer, res oct.Resources) error {
			_, _, err := normalize.Run(octtest.Ctx, in, out, normalize.Options{PercentileMax: 99, Sigma: 1}, layout, res)
			return err
		},
		"smooth": func(out store.Writer, res oct.Resources) error {
			_, err := smooth.Run(octtest.Ctx, in, out, smooth.Options{Median: 3, Sigma: []float64{3}}, oct.Layout{Levels: 3, Chunks: []int{6, 8, 16}}, res)
			return err
		},
		"stitch": func(out store.Writer, res oct.Resources) error {
			_, _, err := stitch.Run(octtest.Ctx, in, out, layout, stitch.Options{}, res)
			return err
		},
		"stack": func(out store.Writer, res oct.Resources) error {
			_, err := stack.Run(octtest.Ctx, stacked, stack.DefaultStackOptions(), out, layout, res)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			failures := 0
			fail := func() {
				for room := 0; ; room += 3 {
					out := &full{Writer: store.Memory()}
					out.left.Store(int64(room))
					err := stage(out, octtest.Small())
					if err == nil {
						return
					}
					if !errors.Is(err, errFull) {
						t.Fatal(err)
					}
					failures++
				}
			}
			fail()
			goroutines, more := runtime.NumGoroutine(), int64(1)
			// What is kept for the next decoder comes once; what is lost, every time.
			for try := 0; try < 5 && more > 0; try++ {
				before := mem.InUse()
				fail()
				more = mem.InUse() - before
			}
			if failures < 8 {
				t.Errorf("only %d failures", failures)
			}
			if more > 0 {
				t.Errorf("each time %d KiB more are not given back", more>>10)
			}
			for range 1000 { // what ended is counted a moment longer
				if runtime.NumGoroutine() <= goroutines {
					return
				}
				time.Sleep(time.Millisecond)
			}
			t.Errorf("%d goroutines more", runtime.NumGoroutine()-goroutines)
		})
	}
}
