//go:build !nocuda

package stitch

import (
	"bytes"
	"errors"
	"math"
	"testing"

	"strata/pkg/dtype"
	"strata/pkg/gpu"
	"strata/pkg/meter"
	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/oct/stitch/affine"
	"strata/pkg/oct/stitch/canvas"
	"strata/pkg/phantom"
	"strata/pkg/zarr/store"
	"strata/tests/octtest"
)

// stitchOnBoth stitches on the CPU and on a device and compares the levels, byte by
// byte, and the reports. It returns what was copied there and back besides the output.
func stitchOnBoth(t *testing.T, d *gpu.Device, in *ngff.Image, layout oct.Layout, opt Options, workers int) (up, down int64) {
	t.Helper()
	var images [2]*ngff.Image
	var reports [2]string
	var done [2]int64
	beforeUp, beforeDown, _ := d.Traffic()
	for i, dev := range []*gpu.Device{nil, d} {
		res := oct.Resources{Workers: workers, Mem: 64 << 20, Device: dev, Meter: new(meter.Meter)}
		if workers == 1 {
			res.Progress = func(n int64) { done[i] += n }
		}
		var st *Result
		var err error
		if images[i], st, err = Run(octtest.Ctx, in, store.Memory(), layout, opt, res); err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := WriteStitching(&b, st); err != nil {
			t.Fatal(err)
		}
		reports[i] = b.String()
	}
	for k := range images[0].Levels {
		a, b := images[1].Levels[k].Array, images[0].Levels[k].Array
		got, want := stitchBytesOf(t, a), stitchBytesOf(t, b)
		if !bytes.Equal(plainNaN(b.DType(), got), plainNaN(b.DType(), want)) {
			t.Errorf("level %d differs from the CPU's: %+v", k, opt)
		}
	}
	if reports[0] != reports[1] {
		t.Errorf("the reports differ:\n%s\n%s", reports[1], reports[0])
	}
	if done[0] != done[1] {
		t.Errorf("progress of %d bytes, the CPU's is %d", done[1], done[0])
	}
	up, down, _ = d.Traffic()
	return up - beforeUp, down - beforeDown - octtest.Stored(images[0].Levels[0].Array)
}

// plainNaN writes all NaN alike: they are NaN on both, which of its bits are set is the
// processor's.
func plainNaN(kind dtype.Type, b []byte) []byte {
	switch kind {
	case dtype.Float32:
		for i, v := range dtype.Slice[float32](b) {
			if v != v {
				dtype.Slice[float32](b)[i] = float32(math.NaN())
			}
		}
	case dtype.Float64:
		for i, v := range dtype.Slice[float64](b) {
			if v != v {
				dtype.Slice[float64](b)[i] = math.NaN()
			}
		}
	}
	return b
}

// imperfect is a mosaic whose tiles disagree, with partial tiles and one that was left out.
func imperfect[T dtype.Element](t *testing.T, z int) *ngff.Image {
	in, _ := octtest.Made(t, []int{z, 45, 70}, []int{4, 20, 32}, nil, nil, func(i int) T {
		y, x := i/70%45, i%70
		switch {
		case y/20 == 1 && x/32 == 0, y/20 == 0 && x/32 == 1 && i/70/45 < 5:
			return 0
		case !dtype.Of[T]().IsFloat():
			return T(i * 7919 % 251)
		case i%901 == 77:
			nan := math.NaN()
			return T(nan)
		case i%701 == 5:
			inf := math.Inf(1)
			return T(inf)
		}
		return T(float64(i*7919%1013) / 3)
	})
	return in
}

func TestStitchOnDevice(t *testing.T) {
	d := octtest.Device(t, 64<<20)
	t.Run("uint8", func(t *testing.T) { stitchTypeOnDevice[uint8](t, d, 0) })
	t.Run("int8", func(t *testing.T) { stitchTypeOnDevice[int8](t, d, 1) })
	t.Run("uint16", func(t *testing.T) { stitchTypeOnDevice[uint16](t, d, 2) })
	t.Run("int16", func(t *testing.T) { stitchTypeOnDevice[int16](t, d, 3) })
	t.Run("uint32", func(t *testing.T) { stitchTypeOnDevice[uint32](t, d, 4) })
	t.Run("int32", func(t *testing.T) { stitchTypeOnDevice[int32](t, d, 5) })
	t.Run("uint64", func(t *testing.T) { stitchTypeOnDevice[uint64](t, d, 6) })
	t.Run("int64", func(t *testing.T) { stitchTypeOnDevice[int64](t, d, 7) })
	t.Run("float32", func(t *testing.T) { stitchTypeOnDevice[float32](t, d, 8) })
	t.Run("float64", func(t *testing.T) { stitchTypeOnDevice[float64](t, d, 9) })
}

// stitchTypeOnDevice stitches with two of the blendings, at voxels and between them.
func stitchTypeOnDevice[T dtype.Element](t *testing.T, d *gpu.Device, k int) {
	in := imperfect[T](t, 11)
	for i := range 2 {
		opt := Options{Overlap: 0.3, Transform: affine.Matrix{{1, 0.03}, {-0.02, 1.01}}, Blending: canvas.Blending(canvas.Blendings[(k+2*i)%4]), Interpolate: i == k/4%2, Seams: true}
		stitchOnBoth(t, d, in, oct.Layout{Chunks: []int{4, 16, 24}, Levels: 1}, opt, 1+2*i)
	}
}

// The way in which the mosaic is stored, and the slice, changes nothing: units that begin
// at odd places, shards, no codec, in which tiles leave the device as they are stored.
func TestStitchOnDeviceHoweverStored(t *testing.T) {
	d := octtest.Device(t, 64<<20)
	c := phantom.Default()
	c.Tiles, c.Tile, c.Crop, c.DType = [2]int{3, 2}, [3]int{13, 30, 34}, [2]int{9, 3}, dtype.Uint8
	opt := Options{Overlap: 0.23, Transform: affine.Matrix{{1, 0.03}, {-0.02, 1.01}}, Blending: canvas.BlendFeather, Seams: true}
	for _, v := range []struct {
		codec  string
		format int
		chunks []int
		shard  []int
		layout oct.Layout
	}{
		{"raw", 3, nil, nil, oct.Layout{Chunks: []int{3, 15, 17}, Levels: 1}},
		{"raw", 2, []int{5, 30, 34}, nil, oct.Layout{Chunks: []int{3, 15, 17}, Codec: "raw", Levels: 2}},
		{"zstd:1", 3, []int{13, 30, 34}, []int{13, 60, 68}, oct.Layout{Chunks: []int{3, 8, 8}, Shard: []int{6, 16, 24}, Levels: 1}},
		{"blosc-zstd:1", 3, []int{7, 30, 34}, nil, oct.Layout{Chunks: []int{4, 8, 8}, Shard: []int{8, 16, 16}, Codec: "raw"}},
		{"gzip:1", 2, nil, nil, oct.Layout{}},
	} {
		_, in := stitchSpecimen(t, c, phantom.Storage{Format: v.format, Codecs: stitchChain(t, v.codec, c.DType, v.format), Chunks: v.chunks, Shard: v.shard})
		stitchOnBoth(t, d, in, v.layout, opt, 2)
	}
}

// Placement that is measured is the CPU's to the last digit.
func TestEstimateOnDevice(t *testing.T) {
	d := octtest.Device(t, 64<<20)
	c := phantom.Default().Ideal()
	c.Tiles, c.Tile, c.Overlap, c.FillTissue, c.DType = [2]int{2, 3}, [3]int{16, 80, 80}, 0.25, true, dtype.Uint16
	c.Water = 0 // the middle plane shows tissue
	_, in := stitchSpecimen(t, c, phantom.Storage{})
	before, _, _ := d.Traffic()
	stitchOnBoth(t, d, in, oct.Layout{}, Options{Overlap: 0.2, Estimate: true, MaxRefinement: 4, Seams: true}, 2)
	if up, _, _ := d.Traffic(); up-before < 2*octtest.Stored(in.Levels[0].Array) {
		t.Errorf("%d bytes went up: tiles were not projected on the device", up-before)
	}
	for _, rules := range affine.AllRules {
		var matrices [2]affine.Transform
		for i, dev := range []*gpu.Device{nil, d} {
			before, down, _ := d.Traffic()
			var err error
			if matrices[i], err = EstimateTransform(octtest.Ctx, []*ngff.Image{in, in}, Options{Overlap: 0.2, Rules: affine.Rules(rules)}, oct.Resources{Workers: 2, Mem: 64 << 20, Device: dev}); err != nil {
				t.Fatal(err)
			}
			up, now, _ := d.Traffic()
			if want := int64(i) * 2 * octtest.Stored(in.Levels[0].Array); up-before != want {
				t.Errorf("%d bytes went up, want %d", up-before, want)
			}
			if want := int64(i) * 2 * 6 * (4*80*80 + 16); now-down != want {
				t.Errorf("%d bytes came down, want %d", now-down, want)
			}
		}
		if matrices[0] != matrices[1] || matrices[0].Pairs == 0 {
			t.Errorf("%s: %+v, of the CPU %+v", rules, matrices[1], matrices[0])
		}
	}
}

// Of four tiles in one column, which is one chunk, there are 9 regions: 4 of one tile, 4 of two, 1 of four, so
// that a tile does something to a region 16 times.
func TestStitchTraffic(t *testing.T) {
	in, _ := octtest.Made(t, []int{5, 32, 48}, []int{5, 16, 24}, nil, nil, func(i int) uint16 { return uint16(1 + i*7919%65521) })
	d := octtest.Device(t, 64<<20)
	const input, tables, weights = 2 * 5 * 32 * 48, 16 * 80, 4 * 16 * 24
	for _, c := range []struct {
		blending canvas.Blending
		seams    bool
		up, down int64
	}{
		{canvas.BlendAverage, false, input + tables, 4 * 8},
		{canvas.BlendFeather, false, input + tables + weights, 4 * 8},
		{canvas.BlendDiffusion, false, input + tables + 4*weights, 4 * 8},
		// four seams: their cells, a line of the table and their sums
		{canvas.BlendAverage, true, input + tables + 4*(80+16+64), 4*8 + 4*64},
	} {
		up, down := stitchOnBoth(t, d, in, oct.Layout{Chunks: []int{5, 24, 36}, Codec: "raw"}, Options{Overlap: 0.5, Blending: c.blending, Seams: c.seams}, 2)
		if up != c.up || down != c.down {
			t.Errorf("%s, seams %v: %d bytes went up, %d came down besides the output, want %d and %d", c.blending, c.seams, up, down, c.up, c.down)
		}
	}
}

// A device that holds fewer columns makes them in more passes, of which each reads the
// tiles on it again; one that holds none is an error that says what is needed.
func TestStitchInLittleDeviceMemory(t *testing.T) {
	in := imperfect[float32](t, 23)
	opt := Options{Overlap: 0.3, Transform: affine.Matrix{{1, 0.03}, {-0.02, 1.01}}, Blending: canvas.BlendFeather, Interpolate: true, Seams: true}
	all := octtest.Stored(in.Levels[0].Array)
	for _, memory := range []int64{160 << 10, 120 << 10} {
		up, _ := stitchOnBoth(t, octtest.Device(t, memory), in, oct.Layout{Chunks: []int{4, 16, 16}, Codec: "raw"}, opt, 2)
		if up < all*4/3 {
			t.Errorf("%d KiB: %d bytes went up, the input has %d: there was one pass", memory>>10, up, all)
		}
	}
	_, _, err := Run(octtest.Ctx, in, store.Memory(), oct.Layout{Chunks: []int{4, 16, 16}, Codec: "raw"}, opt, oct.Resources{Workers: 1, Mem: 64 << 20, Device: octtest.Device(t, 40<<10)})
	if !errors.Is(err, gpu.ErrMemory) {
		t.Errorf("stitched in 40 KiB: %v", err)
	}
}

// Tiles at recorded positions, of several channels, with a plane and without.
func TestStitchChannelsOnDevice(t *testing.T) {
	d := octtest.Device(t, 64<<20)
	s := newScan(t, 2, 3, 96, 2, [2]int{0, 1})
	for _, planes := range []int{0, 2} {
		scan := s.scan
		scan.Planes = planes
		in, p := s.write(t, scan)
		stitchOnBoth(t, d, in, oct.Layout{Levels: 1}, Options{Positions: p, Tolerance: 6, Channel: tissueChannel, Seams: true}, 2)
	}
}
