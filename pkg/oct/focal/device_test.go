//go:build !nocuda

package focal

import (
	"bytes"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"strata/pkg/dtype"
	"strata/pkg/filter"
	"strata/pkg/gpu"
	"strata/pkg/gpu/kernels"
	"strata/pkg/meter"
	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/zarr/codec"
	"strata/pkg/zarr/store"
	"strata/tests/golden"
	"strata/tests/octtest"
	"strata/tests/race"
)

// focalOnBoth takes the curvature out of a mosaic on the CPU and on the device, and compares
// all outputs and maps, and the bytes that were copied to the device and back: exactly, if the
// host decodes and encodes.
func focalOnBoth(t *testing.T, d *gpu.Device, in *ngff.Image, c Options) {
	t.Helper()
	up, down := sameFocal(t, d, in, c, "host", "gzip:1")
	m, err := oct.OpenMosaic(in)
	if err != nil {
		t.Fatal(err)
	}
	tile, lines := int64(m.Chunk[1]*m.Chunk[2]), int64(m.Shape[1]*m.Shape[2])
	wantUp, wantDown := octtest.Stored(in.Levels[0].Array)+4*tile, octtest.Stored(in.Levels[0].Array)
	if c.Correction == nil { // searched before: voxels and weights there, depths back
		wantUp += octtest.Stored(in.Levels[0].Array) + kernels.SearcherBytes(filter.InterfaceSearch{SigmaZ: c.SigmaZ})
		wantDown += 8 * lines // depths and gradients
	}
	if ny, nx := m.Tiles(); m.DType.IsFloat() {
		wantDown += 8 * int64(ny*nx)
	}
	if up != wantUp || down != wantDown {
		t.Errorf("%d bytes went to the device and %d came back, want %d and %d", up, down, wantUp, wantDown)
	}
	small, chunks := octtest.Brought(t, d, in.Levels[0].Array)
	if chunks == 0 {
		return
	}
	// what is decoded on the device goes there as it is stored, with small tables, and what is
	// encoded there comes back so, with its part of the next level
	passes := (wantUp - 4*tile) / octtest.Stored(in.Levels[0].Array)
	up, down = sameFocal(t, d, in, c, "", "zstd:1")
	if least := passes*small + 4*tile; up < least || up > least+least/50+64<<10 {
		t.Errorf("%d bytes went to the device, the input has %d", up, small)
	}
	if most := wantDown*9/8 + wantDown/50 + passes*int64(chunks)*12*64; down > most {
		t.Errorf("%d bytes came back, want at most %d", down, most)
	}
}

// sameFocal compares what the CPU makes and what the device makes, to which chunks come as
// the backend says, with a codec for the output.
func sameFocal(t *testing.T, d *gpu.Device, in *ngff.Image, c Options, backend, codec string) (up, down int64) {
	t.Helper()
	var images [2]*ngff.Image
	var maps [2]savedMaps
	var bad [2]int64
	var done [2]atomic.Int64
	up, down, _ = d.Traffic()
	for i, dev := range []*gpu.Device{nil, d} {
		res := octtest.Small()
		res.Device, res.Backend, res.Meter = dev, backend, new(meter.Meter)
		res.Progress = func(n int64) { done[i].Add(n) }
		c.Maps = maps[i].targets()
		var err error
		if images[i], err = Run(octtest.Ctx, in, store.Memory(), c, oct.Layout{Codec: codec, Levels: 2}, res); err != nil {
			t.Fatal(err)
		}
		bad[i] = res.Meter.NonFinite()
	}
	octtest.SameArrays(t, images[1], images[0])
	for k, name := range []string{"depth", "flat-field", "correction"} {
		if c.Correction != nil && k < 2 {
			continue
		}
		octtest.SameArrays(t, octtest.Open(t, maps[1].stores[k]), octtest.Open(t, maps[0].stores[k]))
		if !bytes.Equal(maps[0].pictures[k].Bytes(), maps[1].pictures[k].Bytes()) {
			t.Errorf("the pictures of the %s differ", name)
		}
	}
	if bad[0] != bad[1] || done[0].Load() != done[1].Load() {
		t.Errorf("%d voxels are not finite, of the CPU %d; progress of %d bytes, of the CPU %d", bad[1], bad[0], done[1].Load(), done[0].Load())
	}
	nowUp, nowDown, _ := d.Traffic()
	return nowUp - up, nowDown - down
}

// TestFocalOnDevice: the golden mosaics.
func TestFocalOnDevice(t *testing.T) {
	d := octtest.Device(t, 256<<20)
	for _, c := range golden.Cases(t, "focal") {
		t.Run(c.Name, func(t *testing.T) {
			focalOnBoth(t, d, octtest.Open(t, store.Folder(golden.Input(t, c))), Options{SigmaXY: 3, SigmaZ: 2, Log: strings.Contains(c.Name, "log")})
		})
	}
}

// Every type, mosaics with partial tiles and several chunks along z, every kind of window.
func TestFocalTypesOnDevice(t *testing.T) {
	race.Leave(t)
	d := octtest.Device(t, 256<<20)
	t.Run("uint8", func(t *testing.T) { focalOnDevice[uint8](t, d, Options{SigmaXY: 3, SigmaZ: 1}, nil) })
	t.Run("int8", func(t *testing.T) { focalOnDevice[int8](t, d, Options{SigmaXY: 4, SigmaZ: 1}, nil) })
	t.Run("uint16", func(t *testing.T) {
		focalOnDevice[uint16](t, d, Options{SigmaXY: 5, SigmaZ: 2, Log: true}, codec.Chain{codec.Zstd(1, false)})
	})
	t.Run("int16", func(t *testing.T) { focalOnDevice[int16](t, d, Options{SigmaXY: 0, SigmaZ: 3}, nil) })
	t.Run("uint32", func(t *testing.T) { focalOnDevice[uint32](t, d, Options{SigmaXY: 2, SigmaZ: 0.1}, nil) })
	t.Run("int32", func(t *testing.T) { focalOnDevice[int32](t, d, Options{SigmaXY: 1, SigmaZ: 2}, nil) })
	t.Run("uint64", func(t *testing.T) { focalOnDevice[uint64](t, d, Options{SigmaXY: 3, SigmaZ: 2}, nil) })
	t.Run("int64", func(t *testing.T) { focalOnDevice[int64](t, d, Options{SigmaXY: 3, SigmaZ: 2}, nil) })
	t.Run("float32", func(t *testing.T) { focalOnDevice[float32](t, d, Options{SigmaXY: 17, SigmaZ: 2}, nil) })
	t.Run("float64", func(t *testing.T) {
		focalOnDevice[float64](t, d, Options{SigmaXY: 3, SigmaZ: 2, Log: true}, nil)
	})
}

func focalOnDevice[T dtype.Element](t *testing.T, d *gpu.Device, c Options, chain codec.Chain) {
	in, _ := octtest.Made(t, []int{11, 45, 70}, []int{4, 20, 16}, nil, chain, octtest.Uneven[T])
	focalOnBoth(t, d, in, c)
	if size := dtype.Of[T]().Size(); size == 4 || size == 1 {
		return
	}
	m, err := oct.OpenMosaic(in)
	if err != nil {
		t.Fatal(err)
	}
	corr := make([]float32, m.Chunk[1]*m.Chunk[2])
	for i := range corr {
		corr[i] = float32(i%100)*0.37 - 15
	}
	c.Correction = octtest.Plane(t, corr, m.Chunk[1], m.Chunk[2])
	focalOnBoth(t, d, in, c)
}

// A device that does not hold a tile, or not its seams, makes the same of parts; one that does
// not hold a part is an error that says what is needed.
func TestFocalInLittleDeviceMemory(t *testing.T) {
	race.Leave(t)
	in, _ := octtest.Made(t, []int{11, 45, 70}, []int{11, 20, 32}, nil, nil, octtest.Uneven[uint16])
	for _, c := range []struct {
		sigma  float64
		memory int64
		again  bool // some voxels go there again
	}{{3, 120 << 10, false}, {3, 56 << 10, true}, {8, 48 << 10, true}} {
		d := octtest.Device(t, c.memory)
		up, _ := sameFocal(t, d, in, Options{SigmaXY: c.sigma, SigmaZ: 1}, "host", "gzip:1")
		if peak := d.Memory().Peak(); peak > c.memory {
			t.Errorf("%d bytes of %d", peak, c.memory)
		}
		if all := 2*octtest.Stored(in.Levels[0].Array) + 4*20*32 + 32; (up > all) != c.again || up < all {
			t.Errorf("sigma %v, %d KiB: %d bytes went to the device, the least is %d", c.sigma, c.memory>>10, up, all)
		}
	}
	// what the device has no memory to decode the host decodes
	packed, _ := octtest.Made(t, []int{11, 45, 70}, []int{11, 20, 32}, nil, codec.Chain{codec.Zstd(1, false)}, octtest.Uneven[uint16])
	if up, _ := sameFocal(t, octtest.Device(t, 60<<10), packed, Options{SigmaXY: 3, SigmaZ: 1}, "", "gzip:1"); up < 2*octtest.Stored(in.Levels[0].Array) {
		t.Errorf("%d bytes went to the device: it decoded in 60 KiB", up)
	}
	res := octtest.Small()
	res.Device = octtest.Device(t, 20<<10)
	_, err := Run(octtest.Ctx, in, store.Memory(), Options{SigmaXY: 3, SigmaZ: 1}, oct.Layout{}, res)
	if !errors.Is(err, gpu.ErrMemory) || !strings.Contains(err.Error(), "searching tiles of [11 20 32] voxels in pieces of [11 1 32] takes 1 MiB of device memory") {
		t.Errorf("an A-line in 20 KiB: %v", err)
	}
}
