//go:build !nocuda

package crop

import (
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
	"strata/tests/octtest"
)

// sameCrop crops an image on the CPU and on the device, to which chunks come as the backend
// says, and compares all that comes of it.
func sameCrop(t *testing.T, d *gpu.Device, in *ngff.Image, c Options, backend string) (up, down int64) {
	t.Helper()
	var images [2]*ngff.Image
	var metrics [2]Metrics
	var done [2]atomic.Int64
	var said [2]string
	up, down, _ = d.Traffic()
	for i, dev := range []*gpu.Device{nil, d} {
		res := octtest.Small()
		res.Device, res.Backend, res.Meter = dev, backend, new(meter.Meter)
		res.Progress = func(n int64) { done[i].Add(n) }
		res.Warn = func(text string) { said[i] += text + "\n" }
		var err error
		if images[i], metrics[i], err = Run(octtest.Ctx, in, store.Memory(), c, oct.Layout{Levels: 2}, res); err != nil {
			t.Fatal(err)
		}
	}
	octtest.SameArrays(t, images[1], images[0])
	if metrics[0] != metrics[1] || said[0] != said[1] {
		t.Errorf("%+v, %q; of the CPU %+v, %q", metrics[1], said[1], metrics[0], said[0])
	}
	if done[0].Load() != done[1].Load() {
		t.Errorf("progress of %d bytes, of the CPU %d", done[1].Load(), done[0].Load())
	}
	nowUp, nowDown, _ := d.Traffic()
	return nowUp - up, nowDown - down
}

// Every type, with and without a percentile: the same planes, the same metrics, and of the
// input only what is looked at on the device.
func TestCropOnDevice(t *testing.T) {
	d := octtest.Device(t, 64<<20)
	t.Run("uint8", func(t *testing.T) { cropOnDevice[uint8](t, d, Options{PercentileMax: 99.9, MaxFraction: 0.5}) })
	t.Run("int8", func(t *testing.T) { cropOnDevice[int8](t, d, Options{PercentileMax: 100, MaxFraction: 1}) })
	t.Run("uint16", func(t *testing.T) {
		cropOnDevice[uint16](t, d, Options{PercentileMax: 90, MaxFraction: 0.4, Log: true})
	})
	t.Run("int16", func(t *testing.T) { cropOnDevice[int16](t, d, Options{PercentileMax: 50, MaxFraction: 0.5}) })
	t.Run("uint32", func(t *testing.T) { cropOnDevice[uint32](t, d, Options{PercentileMax: 0, MaxFraction: 0.1}) })
	t.Run("int32", func(t *testing.T) { cropOnDevice[int32](t, d, Options{PercentileMax: 100, MaxFraction: 0.5}) })
	t.Run("uint64", func(t *testing.T) { cropOnDevice[uint64](t, d, Options{PercentileMax: 99, MaxFraction: 0.9}) })
	t.Run("int64", func(t *testing.T) { cropOnDevice[int64](t, d, Options{PercentileMax: 99, MaxFraction: 0.5}) })
	t.Run("float32", func(t *testing.T) { cropOnDevice[float32](t, d, Options{PercentileMax: 100, MaxFraction: 0.5}) })
	t.Run("float64", func(t *testing.T) { cropOnDevice[float64](t, d, Options{PercentileMax: 99.9, MaxFraction: 0.5}) })
}

func cropOnDevice[T dtype.Element](t *testing.T, d *gpu.Device, c Options) {
	c.Depth, c.BeforeInterface, c.SigmaXY, c.SigmaZ = 25, true, 3, 1
	for _, chunks := range [][]int{{4, 20, 32}, {23, 20, 32}} {
		in, _ := octtest.Made(t, []int{23, 45, 70}, chunks, nil, codec.Chain{codec.Zstd(1, false)}, octtest.Uneven[T])
		m, err := oct.OpenMosaic(in)
		if err != nil {
			t.Fatal(err)
		}
		up, down := sameCrop(t, d, in, c, "host")
		s := filter.InterfaceSearch{SigmaXY: c.SigmaXY, SigmaZ: c.SigmaZ, Planes: max(1, int(c.MaxFraction*float64(m.Shape[0])+1e-9))}
		plane := int64(m.Shape[1] * m.Shape[2] * m.DType.Size())
		wantUp := int64(s.Seen(m.Shape[0]))*plane + kernels.SearcherBytes(s)
		wantDown := 8 * int64(m.Shape[1]*m.Shape[2])
		ny, nx := m.Tiles()
		if c.PercentileMax == 100 {
			if m.DType.IsFloat() {
				wantDown += int64(8 * ny * nx)
			}
		} else { // all of it, once; of counters some for two order statistics, and sums
			wantUp += octtest.Stored(in.Levels[0].Array)
			wantDown += 2 * 8 * 4096
			if m.DType.Size() > 2 { // and the tile in the middle, of which one
				at := m.Extent(ny/2, nx/2)
				wantUp += int64(at.Area() * m.DType.Size() * m.Shape[0])
				wantDown += 2*(d.Memory().Limit()/32/4096+24) + 8*4096
			} else {
				wantDown += 8<<16/4096 + 24
			}
		}
		if up != wantUp || down != wantDown {
			t.Errorf("%v: %d bytes went to the device and %d came back, want %d and %d", chunks, up, down, wantUp, wantDown)
		}
		if _, decoded := octtest.Brought(t, d, in.Levels[0].Array); decoded > 0 && m.DType.Size() == 2 { // as they are stored
			if up, _ := sameCrop(t, d, in, c, ""); up >= wantUp {
				t.Errorf("%v: %d bytes went to the device, decoded by the host %d", chunks, up, wantUp)
			}
		}
	}
}

// A device with less memory makes the same; with less than that it is an error.
func TestCropInLittleDeviceMemory(t *testing.T) {
	in, _ := octtest.Made(t, []int{23, 45, 70}, []int{23, 20, 32}, nil, nil, octtest.Uneven[uint16])
	c := Options{Depth: 25, PercentileMax: 99, MaxFraction: 0.5, SigmaXY: 3, SigmaZ: 1}
	sameCrop(t, octtest.Device(t, 640<<10), in, c, "host")
	sameCrop(t, octtest.Device(t, 580<<10), in, c, "host") // tiles in pieces
	packed, _ := octtest.Made(t, []int{23, 45, 70}, []int{23, 20, 32}, nil, codec.Chain{codec.Zstd(1, false)}, octtest.Uneven[uint16])
	sameCrop(t, octtest.Device(t, 640<<10), packed, c, "") // decoded by the host
	for _, percentile := range []float64{99, 100} {
		res := octtest.Small()
		res.Device, c.PercentileMax = octtest.Device(t, 20<<10), percentile
		_, _, err := Run(octtest.Ctx, in, store.Memory(), c, oct.Layout{}, res)
		if !errors.Is(err, gpu.ErrMemory) || !strings.Contains(err.Error(), "tiles of [23 20 32] voxels") || !strings.Contains(err.Error(), "MiB of device memory") {
			t.Errorf("percentile %v in 20 KiB: %v", percentile, err)
		}
	}
}
