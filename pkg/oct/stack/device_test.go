//go:build !nocuda

package stack

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"strata/pkg/dtype"
	"strata/pkg/gpu"
	"strata/pkg/meter"
	"strata/pkg/oct"
	"strata/pkg/registration"
	"strata/pkg/zarr"
	"strata/pkg/zarr/store"
	"strata/pkg/zarr/zarrgpu"
	"strata/tests/golden"
	"strata/tests/octtest"
	"strata/tests/race"
)

// stackOnBoth stacks on the CPU and on the device and compares all that comes of it. up and
// down are the bytes that went to the device and came back.
func stackOnBoth(t *testing.T, d *gpu.Device, in Input, opt Options, layout oct.Layout, res oct.Resources) (result *Result, up, down int64) {
	t.Helper()
	var results [2]*Result
	var bad, done [2]int64
	var warnings [2][]string
	up, down, _ = d.Traffic()
	for i, dev := range []*gpu.Device{nil, d} {
		res := res
		res.Device, res.Meter = dev, new(meter.Meter)
		res.Warn = func(m string) { warnings[i] = append(warnings[i], m) }
		var mu sync.Mutex
		res.Progress = func(n int64) {
			mu.Lock()
			defer mu.Unlock()
			done[i] += n
		}
		var err error
		if results[i], err = Run(octtest.Ctx, in, opt, store.Memory(), layout, res); err != nil {
			t.Fatalf("%+v: %v", opt, err)
		}
		bad[i] = res.Meter.NonFinite()
	}
	nowUp, nowDown, _ := d.Traffic()
	octtest.SameArrays(t, results[1].Image, results[0].Image)
	cpu, device := *results[0], *results[1]
	cpu.Image, device.Image = nil, nil
	if !reflect.DeepEqual(cpu, device) {
		t.Errorf("decided %+v, the CPU %+v", device, cpu)
	}
	if bad[0] != bad[1] || done[0] != done[1] || !reflect.DeepEqual(warnings[0], warnings[1]) {
		t.Errorf("%d voxels not finite, %d bytes done, warnings %q; the CPU has %d, %d and %q", bad[1], done[1], warnings[1], bad[0], done[0], warnings[0])
	}
	return results[0], nowUp - up, nowDown - down
}

func TestStackGoldenOnDevice(t *testing.T) {
	race.Leave(t)
	d := octtest.Device(t, 256<<20)
	for _, c := range golden.Cases(t, "stack") {
		t.Run(c.Name, func(t *testing.T) {
			var g stackGolden
			if err := json.Unmarshal(c.File, &g); err != nil {
				t.Fatal(err)
			}
			dir, shifts, transforms := golden.Slices(t, c)
			in := stackInput(t, dir, shifts, transforms)
			stackOnBoth(t, d, in, g.options(), oct.Layout{Levels: 5}, octtest.Small())
		})
	}
}

// modelInput makes slices, transforms and flags by chance, as TestStackModel does.
func modelInput(t *testing.T, trial int) (Input, Options) {
	t.Helper()
	rng := rand.New(rand.NewPCG(uint64(trial), 99))
	sl := oracleSpecimen(rng, 2+rng.IntN(3), trial%3 == 0)
	var rows strings.Builder
	rows.WriteString("fixed_id,moving_id,x_shift_mm,y_shift_mm\n")
	auto := t.TempDir()
	in := Input{}
	for i, s := range sl {
		if i > 0 {
			fmt.Fprintf(&rows, "%d,%d,%v,%v\n", sl[i-1].id, s.id, math.Round(rng.NormFloat64()*200)/10000, math.Round(rng.NormFloat64()*200)/10000)
			if trial%2 == 0 {
				randomTransform(rng, s, sl[i-1]).write(t, filepath.Join(auto, fmt.Sprintf("slice_z%02d", s.id)))
			}
		}
		typ := []dtype.Type{dtype.Uint16, dtype.Float64, dtype.Int32, dtype.Float32}[rng.IntN(4)]
		name := []string{"raw", "blosc-zstd:1", "zstd:1"}[rng.IntN(3)]
		chunks := []int{1 + rng.IntN(4), 5 + rng.IntN(20), 5 + rng.IntN(20)}
		in.Slices = append(in.Slices, Slice{s.id, fmt.Sprintf("slice %d", s.id), s.stored(t, typ, 2, chunks, nil, name, []float64{10, 10, 10})})
	}
	var err error
	if in.Shifts, err = registration.ReadShifts(strings.NewReader(rows.String()), "shifts"); err != nil {
		t.Fatal(err)
	}
	if in.Transforms, err = registration.OpenFolder(auto); err != nil {
		t.Fatal(err)
	}
	return in, randomOptions(rng, 60)
}

// Any slices, transforms and flags, as in TestStackModel: the CPU's bits, with much memory
// on the device and with as little as does.
func TestStackModelOnDevice(t *testing.T) {
	seen := map[string]int{}
	trials := []int{40, 108, 115, 132, 36, 5, 82, 148} // these have what is asked for below
	if testing.Short() {
		trials = trials[:2]
	}
	for i, trial := range trials {
		in, opt := modelInput(t, trial)
		layout, res := oct.Layout{Chunks: []int{3, 10, 12}, Codec: "raw"}, oct.Resources{Workers: 1 + i%3, Mem: 64 << 20}
		memory := int64(64 << 20)
		if i%4 == 1 {
			memory = leastOnDevice(t, in, opt, layout, res)
		}
		got, _, _ := stackOnBoth(t, octtest.Device(t, memory), in, opt, layout, res)
		for _, action := range got.Actions {
			seen[action]++
		}
		seen["gain"] += len(got.Gains)
		seen["refined"] += len(got.Refinements)
		if t.Failed() {
			t.Fatalf("trial %d, %d KiB: %+v", trial, memory>>10, opt)
		}
	}
	for _, key := range []string{"gain", "refined", "full", "rotation", "identity", "skip"} {
		if seen[key] == 0 && !testing.Short() {
			t.Errorf("no trial had %s: %v", key, seen)
		}
	}
}

// leastOnDevice is about the least memory of a device that a stack takes. Less is
// gpu.ErrMemory.
func leastOnDevice(t *testing.T, in Input, opt Options, layout oct.Layout, res oct.Resources) int64 {
	t.Helper()
	lo, hi := int64(4<<10), int64(64<<20)
	for hi > lo+lo/4 {
		mid := int64(math.Sqrt(float64(lo) * float64(hi)))
		t.Run(fmt.Sprint(mid>>10, " KiB"), func(t *testing.T) {
			res := res
			res.Device = octtest.Device(t, mid)
			_, err := Run(octtest.Ctx, in, opt, store.Memory(), layout, res)
			switch {
			case err == nil:
				hi = mid
			case !errors.Is(err, gpu.ErrMemory) || strings.Contains(err.Error(), "internal"):
				t.Fatal(err)
			default:
				lo = mid
			}
		})
	}
	return hi
}

// Bytes go to the device once, those that are measured twice, and the volume comes back
// once: with tables whose sizes are known. Chunks that the device decodes go there as
// they are stored.
func TestStackTrafficOnDevice(t *testing.T) {
	const n, y, x = 3, 40, 48
	for _, c := range []struct {
		name     string
		typ      dtype.Type
		codec    string
		measured bool
		refined  bool
		chunk    int
	}{
		{"uint16", dtype.Uint16, "raw", false, false, 5}, {"float32, refined", dtype.Float32, "raw", false, true, 4}, {"measured", dtype.Uint16, "raw", true, false, 7},
		{"zstd", dtype.Float32, "zstd:1", false, false, 4}, {"blosc, measured", dtype.Uint16, "blosc-zstd:1", true, false, 7},
	} {
		t.Run(c.name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(4, 4))
			const z, skip, interval = 14, 2, 8 // overlap: 4 planes
			texture := make([]float64, (n*interval+z)*y*x)
			for i := range texture {
				texture[i] = 100 + 50*rng.Float64()
			}
			const margin = y / 4 // what is measured
			centre := []int{z, y - 2*margin, x - 2*margin}
			d := octtest.Device(t, 64<<20)
			var in Input
			var wantUp, chunks int // as stored
			add := func(a *zarr.Array, start, shape []int) {
				err := a.Located(octtest.Ctx, zarr.Region{Start: start, Shape: shape}, func(_ *zarr.ChunkFile, list []zarr.Located) error {
					for _, c := range list {
						wantUp += int(max(0, c.Size))
					}
					chunks += len(list)
					return nil
				})
				if err != nil {
					t.Fatal(err)
				}
			}
			for i := range n {
				s := &oracleSlice{id: i, z: z, y: y, x: x}
				for _, v := range texture[i*interval*y*x:][:z*y*x] {
					s.v = append(s.v, v*float64(i+1))
				}
				im := s.stored(t, c.typ, 2, []int{c.chunk, 16, 16}, nil, c.codec, []float64{10, 10, 10})
				in.Slices = append(in.Slices, Slice{i, "slice", im})
				if a := im.Levels[0].Array; c.codec != "raw" {
					add(a, []int{0, 0, 0}, a.Shape())
					if c.measured { // all planes: overlaps are up to 8 of 14
						add(a, []int{0, margin, margin}, centre)
					}
				}
			}
			opt := referenceOptions()
			opt.NoXYShift, opt.Blend, opt.PyramidResolutions = true, true, nil
			opt.UseExpectedOverlap, opt.MovingZFirstIndex, opt.SlicingIntervalMM, opt.SearchRangeMM = !c.measured, skip, interval/100.0, 0.02
			if c.refined {
				opt.BlendRefinementPx = 3
			}
			got, up, down := stackOnBoth(t, d, in, opt, oct.Layout{Chunks: []int{2, 40, 48}, Codec: "raw"}, octtest.Small())
			if len(got.Gains) != n-1 {
				t.Fatalf("gains %v", got.Gains)
			}
			const overlap, moving = z - skip - interval, n - 1
			const lo, hi = z - interval - 2, z - interval + 2 // overlaps that are measured
			if c.codec == "raw" {
				wantUp = (n*z - moving*skip) * y * x * c.typ.Size()
				if c.measured { // both ends of a slice are looked at, which is more than it has
					wantUp += (hi + min(z, 2*hi) + hi) * centre[1] * centre[2] * c.typ.Size()
				}
			}
			wantUp += moving * 8 * overlap             // weights
			wantDown := 4*got.Shape[0]*y*x + moving*24 // medians, and of how many voxels
			if c.measured {
				wantDown += moving * (hi - lo + 1) * 40
			}
			if c.refined {
				wantDown += moving * 2 * 4 * y * x // mean planes
			}
			// what decoding needs: where chunks are, and what became of them
			tables := 256 * chunks
			if r, err := zarrgpu.NewReader(in.Slices[0].Image.Levels[0].Array, d, zarrgpu.Options{}); err != nil {
				t.Fatal(err)
			} else if w, _ := r.Way(); chunks > 0 && w != zarrgpu.NVComp {
				t.Fatalf("chunks come by way of %v", w)
			}
			if c.typ.IsFloat() { // voxels that are not finite, of each region
				regions := (int(down) - wantDown) / 8
				if chunks == 0 && (regions < n || regions > n*z) {
					t.Errorf("%d regions", regions)
				}
				wantDown += 8 * min(regions, n*z)
			}
			if int(up) < wantUp || int(up) > wantUp+tables || int(down) < wantDown || int(down) > wantDown+tables {
				t.Errorf("%d bytes went up and %d came down, want %d and %d, and up to %d for %d chunks", up, down, wantUp, wantDown, tables, chunks)
			}
		})
	}
}

// Where level 0 is coarser than the slices, or finer along an axis, it is made on the
// device: only it comes back.
func TestStackLevelOnDevice(t *testing.T) {
	d := octtest.Device(t, 64<<20)
	for _, c := range []struct {
		voxel, to []float64
		isotropic bool
	}{
		{[]float64{10, 10, 10}, []float64{25, 50}, true}, {[]float64{10, 10, 10}, []float64{13}, true}, {[]float64{20, 10, 10}, []float64{10}, true},
		{[]float64{10, 20, 10}, []float64{20}, true}, {[]float64{10, 10, 20}, []float64{20, 40}, true}, {[]float64{10, 20, 20}, []float64{30}, false},
	} {
		rng := rand.New(rand.NewPCG(6, 6))
		var in Input
		for i, s := range oracleSpecimen(rng, 3, false) {
			in.Slices = append(in.Slices, Slice{i, "slice", s.stored(t, dtype.Uint16, 2, []int{4, 16, 16}, nil, "raw", c.voxel)})
		}
		opt := referenceOptions()
		opt.NoXYShift, opt.UseExpectedOverlap, opt.MovingZFirstIndex, opt.SlicingIntervalMM = true, true, 0, c.voxel[0]*20/1000 // of 20 planes or so: some gaps
		opt.PyramidResolutions, opt.MakeIsotropic = c.to, c.isotropic
		for _, mem := range []int64{64 << 20, 1 << 20} { // planes are stored several at a time, or few
			res := octtest.Small()
			res.Mem = mem
			got, _, down := stackOnBoth(t, d, in, opt, oct.Layout{Chunks: []int{2, 8, 8}, Codec: "raw", Levels: 1}, res)
			level := got.Image.Levels[0].Array
			if want := octtest.Stored(level); down != want || slices.Equal(level.Shape(), got.Shape[:]) {
				t.Errorf("%v to %v: %d bytes came down, level 0 of shape %v has %d", c.voxel, c.to, down, level.Shape(), want)
			}
		}
	}
}

// A device without room for the planes that are needed is an error that says how much
// is.
func TestStackNoDeviceMemory(t *testing.T) {
	for _, measured := range []bool{true, false} {
		rng := rand.New(rand.NewPCG(1, 1))
		var in Input
		for i, s := range oracleSpecimen(rng, 2, false) {
			in.Slices = append(in.Slices, Slice{i, "slice", s.stored(t, dtype.Uint16, 2, []int{4, 8, 8}, nil, "raw", []float64{10, 10, 10})})
		}
		opt := referenceOptions()
		opt.NoXYShift, opt.UseExpectedOverlap, opt.MovingZFirstIndex, opt.SlicingIntervalMM, opt.SearchRangeMM = true, !measured, 0, 0.05, 0.02
		res := octtest.Small()
		res.Device = octtest.Device(t, 40<<10)
		_, err := Run(octtest.Ctx, in, opt, store.Memory(), oct.Layout{}, res)
		if !errors.Is(err, gpu.ErrMemory) || !strings.Contains(err.Error(), "slice: ") || !strings.Contains(err.Error(), "MiB of device memory") {
			t.Errorf("measured %v: %v", measured, err)
		}
	}
}

// On a device slices are looked at, matched and placed by the same numbers.
func TestAlignedOnDevice(t *testing.T) {
	race.Leave(t)
	d := octtest.Device(t, 256<<20)
	b := newBlock(t, 3, func(k int, v []float32) {
		for i := range v {
			v[i] *= []float32{1, 0.7, 1.2}[k]
		}
	})
	for _, how := range []BlendMatch{MatchNone, MatchWhole, MatchDepth} {
		for _, fix := range []RepairShifts{RepairOff, RepairFix} {
			opt := aligned()
			opt.Blend, opt.BlendMatch, opt.RepairShifts = true, how, fix
			in := b.in
			in.Shifts = b.wrong(t, 1, 0.1, 0)
			stackOnBoth(t, d, in, opt, oct.Layout{Chunks: []int{4, 64, 64}, Codec: "raw"}, octtest.Small())
		}
	}
}
