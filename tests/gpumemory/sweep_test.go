//go:build !nocuda

// Package gpumemory runs the stages on a device in little memory of every kind.
package gpumemory

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"strata/pkg/gpu"
	"strata/pkg/meter"
	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/oct/aip"
	"strata/pkg/oct/beamprofile"
	"strata/pkg/oct/crop"
	"strata/pkg/oct/flatfield"
	"strata/pkg/oct/focal"
	"strata/pkg/oct/normalize"
	"strata/pkg/oct/resample"
	"strata/pkg/oct/stack"
	"strata/pkg/oct/stitch"
	"strata/pkg/oct/stitch/canvas"
	"strata/pkg/registration"
	"strata/pkg/zarr/codec"
	"strata/pkg/zarr/store"
	"strata/tests/cudaemu"
	"strata/tests/gputest"
	"strata/tests/octtest"
	"strata/tests/race"
)

func TestMain(m *testing.M) { cudaemu.Main(m) }

// run is a stage at work on an input of its own.
type run func(res oct.Resources) (*ngff.Image, error)

// stages returns every stage with a GPU path, on tiles of one chunk each.
func stages(t *testing.T, chain codec.Chain) map[string]run {
	mosaic, _ := octtest.Made(t, []int{12, 90, 128}, []int{12, 32, 32}, nil, chain, octtest.Uneven[uint16])
	slice, _ := octtest.Made(t, []int{23, 45, 70}, []int{23, 20, 32}, nil, chain, octtest.Uneven[uint16])
	ctx, layout := octtest.Ctx, oct.Layout{Levels: 1, Codec: codecOf(chain)}
	shifts, err := registration.ReadShifts(strings.NewReader("fixed_id,moving_id,x_shift_mm,y_shift_mm\n0,1,0.004,0.002\n"), "shifts")
	if err != nil {
		t.Fatal(err)
	}
	return map[string]run{
		"aip": func(res oct.Resources) (*ngff.Image, error) {
			return aip.Run(ctx, mosaic, store.Memory(), layout, nil, res)
		},
		"resample": func(res oct.Resources) (*ngff.Image, error) {
			return resample.Run(ctx, mosaic, store.Memory(), resample.Options{Resolution: [3]float64{4, 4, 4}}, layout, res)
		},
		"focal": func(res oct.Resources) (*ngff.Image, error) {
			return focal.Run(ctx, mosaic, store.Memory(), focal.Options{SigmaXY: 3, SigmaZ: 1}, layout, res)
		},
		"crop": func(res oct.Resources) (*ngff.Image, error) {
			im, _, err := crop.Run(ctx, mosaic, store.Memory(), crop.Options{Depth: 20, PercentileMax: 99, MaxFraction: 0.5, SigmaXY: 3, SigmaZ: 1}, layout, res)
			return im, err
		},
		"stitch": func(res oct.Resources) (*ngff.Image, error) {
			im, _, err := stitch.Run(ctx, mosaic, store.Memory(), oct.Layout{Levels: 1, Codec: layout.Codec, Chunks: []int{6, 16, 16}},
				stitch.Options{Overlap: 0.2, Blending: canvas.BlendAverage}, res)
			return im, err
		},
		"stack": func(res oct.Resources) (*ngff.Image, error) {
			in := stack.Input{Slices: []stack.Slice{{ID: 0, Path: "z00", Image: slice}, {ID: 1, Path: "z01", Image: slice}}, Shifts: shifts}
			r, err := stack.Run(ctx, in, stack.Options{}, store.Memory(), layout, res)
			if err != nil {
				return nil, err
			}
			return r.Image, nil
		},
		"beam-profile": func(res oct.Resources) (*ngff.Image, error) {
			im, _, err := beamprofile.Run(ctx, slice, store.Memory(), beamprofile.Options{PercentileMax: 99.9}, layout, res)
			return im, err
		},
		"normalize": func(res oct.Resources) (*ngff.Image, error) {
			im, _, err := normalize.Run(ctx, slice, store.Memory(), normalize.Options{PercentileMax: 99.9, SpanPercentile: 90, Sigma: 1}, layout, res)
			return im, err
		},
		"flatfield": func(res oct.Resources) (*ngff.Image, error) {
			r, err := flatfield.Run(ctx, slice, store.Memory(), flatfield.Options{Solver: flatfield.LinumBasic, MaxIterations: 2, MaxSamples: 12}, layout, res)
			if err != nil {
				return nil, err
			}
			return r.Image, nil
		},
	}
}

func codecOf(chain codec.Chain) string {
	if len(chain) == 0 {
		return "raw"
	}
	return "zstd:1"
}

// limits are what a run is granted, in bytes, and its workers.
type limits struct {
	mem, pinned, device int64
	workers             int
}

func (l limits) String() string {
	return fmt.Sprintf("--mem %d KiB, %d KiB page-locked, %d KiB of the device, %d workers", l.mem>>10, l.pinned>>10, l.device>>10, l.workers)
}

// outcome is what came of a run.
type outcome struct {
	image *ngff.Image
	err   error
	done  int64 // bytes of progress
}

// on runs a stage within limits, on a device or on the CPU.
func (r run) on(t *testing.T, l limits, device bool) (o outcome) {
	res := oct.Resources{Workers: l.workers, Mem: l.mem, Meter: new(meter.Meter)}
	if device {
		d, err := gpu.Open(first(t), gpu.Limits{Memory: l.device, Pinned: l.pinned})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := d.Close(); err != nil {
				t.Errorf("%v: %v", l, err)
			}
			if n := d.Pinned().Peak(); n > l.pinned {
				t.Errorf("%v: %d bytes of page-locked memory", l, n)
			}
		}()
		res.Device = d
	}
	var done atomic.Int64
	res.Progress = func(n int64) { done.Add(n) }
	o.image, o.err = r(res)
	o.done = done.Load()
	return o
}

func first(t *testing.T) gpu.Info {
	list, err := gpu.Devices()
	if err != nil {
		t.Fatal(err)
	}
	return list[0]
}

const plenty = 64 << 20

func TestSweep(t *testing.T) {
	race.Leave(t)
	gputest.NeedDouble(t)
	for _, chain := range []codec.Chain{{codec.Zstd(1, false)}, nil} {
		for name, r := range stages(t, chain) {
			t.Run(name+" "+codecOf(chain), func(t *testing.T) { sweep(t, r) })
		}
	}
}

// sweep runs a stage within many limits. What it makes is the CPU's. It fails only for memory, before it has begun, no
// matter how many workers there are, and not for --mem where the CPU works.
func sweep(t *testing.T, r run) {
	want := r.on(t, limits{mem: plenty, workers: 2}, false)
	if want.err != nil {
		t.Fatal(want.err)
	}
	grid := map[limits]bool{}
	for _, pinned := range []int64{32 << 10, 64 << 10, 160 << 10, 400 << 10, 1 << 20, plenty} {
		for _, device := range []int64{100 << 10, 400 << 10, plenty} {
			grid[limits{mem: plenty, pinned: pinned, device: device}] = true
		}
	}
	for _, mem := range []int64{1 << 20, 3 << 19, 3 << 20} {
		for _, pinned := range []int64{400 << 10, plenty} {
			grid[limits{mem: mem, pinned: pinned, device: plenty}] = true
		}
	}
	worked := 0
	for l := range grid {
		var first error
		for i, workers := range []int{1, 16} {
			l.workers = workers
			got := r.on(t, l, true)
			switch {
			case got.err == nil:
				worked++
				octtest.SameArrays(t, got.image, want.image)
			case errors.Is(got.err, gpu.ErrMemory):
				if got.done > 0 {
					t.Errorf("%v: after %d bytes: %v", l, got.done, got.err)
				}
				if l.pinned == plenty && l.device == plenty && r.on(t, l, false).err == nil {
					t.Errorf("%v: %v; the CPU works", l, got.err)
				}
			default:
				if cpu := r.on(t, l, false); cpu.err == nil {
					t.Errorf("%v: %v; the CPU works", l, got.err)
				}
			}
			if i > 0 && (got.err == nil) != (first == nil) && (got.err == nil || r.on(t, l, false).err == nil) {
				t.Errorf("%v: %v; a single worker: %v", l, got.err, first)
			}
			if i == 0 {
				first = got.err
			}
		}
	}
	if worked < len(grid)/6 {
		t.Errorf("%d of %d runs worked", worked, 2*len(grid))
	}
}
