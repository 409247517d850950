package oct

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
	"strata/pkg/registration"
	"strata/pkg/zarr/store"
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
		in, _ := made(t, []int{12, 48, 64}, []int{6, 8, 16}, nil, nil, func(i int) uint16 { return uint16(i * 7919 >> 2) })
		return in
	}
	in := image()
	shifts, err := registration.ReadShifts(strings.NewReader("fixed_id,moving_id,x_shift_mm,y_shift_mm\n"), "shifts")
	if err != nil {
		t.Fatal(err)
	}
	stack := StackInput{Shifts: shifts, Slices: []StackSlice{{1, "1", image()}, {2, "2", image()}}}
	flat := plane(t, make([]float32, 8*16), 8, 16) // estimating one takes long
	layout := Layout{Levels: 3}
	for name, stage := range map[string]func(out store.Writer, res Resources) error{
		"aip": func(out store.Writer, res Resources) error {
			_, err := AIP(ctx, in, out, layout, io.Discard, res)
			return err
		},
		"resample": func(out store.Writer, res Resources) error {
			_, err := Resample(ctx, in, out, isotropic(10), layout, res)
			return err
		},
		"focal": func(out store.Writer, res Resources) error {
			_, err := Focal(ctx, in, out, FocalCurvature{SigmaXY: 3, SigmaZ: 1, Correction: flat}, layout, res)
			return err
		},
		"crop": func(out store.Writer, res Resources) error {
			_, _, err := Crop(ctx, in, out, below(), layout, res)
			return err
		},
		"smooth": func(out store.Writer, res Resources) error {
			_, err := Smooth(ctx, in, out, Smoothing{Median: 3, Sigma: []float64{3}}, Layout{Levels: 3, Chunks: []int{6, 8, 16}}, res)
			return err
		},
		"stitch": func(out store.Writer, res Resources) error {
			_, _, err := Stitch(ctx, in, out, layout, StitchOptions{}, res)
			return err
		},
		"stack": func(out store.Writer, res Resources) error {
			_, err := Stack(ctx, stack, ReferenceStackOptions(), out, layout, res)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			failures := 0
			fail := func() {
				for room := 0; ; room += 3 {
					out := &full{Writer: store.Memory()}
					out.left.Store(int64(room))
					err := stage(out, small())
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
