//go:build !nocuda

package aip

import (
	"bytes"
	"context"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"testing"

	"strata/pkg/dtype"
	"strata/pkg/gpu"
	"strata/pkg/meter"
	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/oct/resample"
	"strata/pkg/zarr"
	"strata/pkg/zarr/codec"
	"strata/pkg/zarr/store"
	"strata/pkg/zarr/zarrgpu"
	"strata/tests/golden"
	"strata/tests/octtest"
	"strata/tests/race"
)

// left is how many bytes of an image left the device: the chunks of level 0 as they are
// stored, in pieces of 16 bytes, 12 bytes for each stream of them that nvCOMP encoded, and what
// they give to level 1.
func left(t *testing.T, im *ngff.Image) (n int64) {
	t.Helper()
	a := im.Levels[0].Array
	spec := ngff.ImageSpec{Format: a.Format(), Shape: a.Shape(), Chunks: a.Chunks(), Shard: a.Shard(), DType: a.DType(),
		Codecs: a.Codecs(), Axes: im.Axes, Scale: im.Levels[0].Scale, Levels: len(im.Levels) - 1}
	w, err := ngff.Create(octtest.Ctx, store.Memory(), "", spec)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	elements := func(shape []int) int {
		n := a.DType().Size()
		for _, s := range shape {
			n *= s
		}
		return n
	}
	streams := 0
	if len(a.Codecs()) > 0 {
		p, err := a.Codecs().Packing(elements(a.Chunks()))
		if err != nil {
			t.Fatal(err)
		}
		streams = len(p.List)
	}
	up := func(n int) int64 { return int64(n+15) / 16 * 16 }
	err = a.Located(octtest.Ctx, a.Bounds(), func(_ *zarr.ChunkFile, list []zarr.Located) error {
		for _, c := range list {
			n += up(int(c.Size)) + 12*int64(streams)
			index := make([]int, len(c.Start))
			for d := range index {
				index[d] = c.Start[d] / a.Chunks()[d]
			}
			part := w.Part(index)
			if part.Made.Shape != nil {
				n += up(elements(part.Made.Shape))
			}
			for _, s := range part.Strips {
				n += up(elements(s.Shape))
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// onBoth runs a stage on the CPU and on the device and compares all that it makes. Of
// the device: the input goes up once, as it is stored where the device decodes it, with
// small parameters; and level 0 comes down once, with 8 bytes a tile and, for what was
// decoded on the device, the lengths and statuses of its streams.
func onBoth(t *testing.T, d *gpu.Device, in *ngff.Image, run func(store.Writer, io.Writer, oct.Resources) (*ngff.Image, error)) {
	t.Helper()
	var images [2]*ngff.Image
	var pictures [2]bytes.Buffer
	var bad [2]int64
	up, down, _ := d.Traffic()
	for i, dev := range []*gpu.Device{nil, d} {
		res := octtest.Small()
		res.Device, res.Meter = dev, new(meter.Meter)
		var err error
		if images[i], err = run(store.Memory(), &pictures[i], res); err != nil {
			t.Fatal(err)
		}
		bad[i] = res.Meter.NonFinite()
	}
	octtest.SameArrays(t, images[1], images[0])
	if !bytes.Equal(pictures[0].Bytes(), pictures[1].Bytes()) {
		t.Error("the pictures differ")
	}
	if bad[0] != bad[1] {
		t.Errorf("%d voxels are not finite, of the CPU %d", bad[1], bad[0])
	}
	nowUp, nowDown, _ := d.Traffic()
	m, err := oct.OpenMosaic(in)
	if err != nil {
		t.Fatal(err)
	}
	ny, nx := m.Tiles()
	want, chunks := octtest.Brought(t, d, in.Levels[0].Array)
	if got := nowUp - up; got < want || got > want+want/50+64<<10 {
		t.Errorf("%d bytes went to the device, the input has %d", got, want)
	}
	want = left(t, images[1]) + int64(8*ny*nx)
	if pictures[1].Len() > 0 { // the host needs level 0 itself
		want = octtest.Stored(images[0].Levels[0].Array) + int64(8*ny*nx)
	}
	if got := nowDown - down; got < want || got > want+int64(chunks)*12*64 || chunks == 0 && got != want {
		t.Errorf("%d bytes came from the device, want %d and those of %d chunks", got, want, chunks)
	}
}

func TestStagesOnDevice(t *testing.T) {
	d := octtest.Device(t, 256<<20)
	for _, c := range golden.Cases(t, "aip") {
		t.Run("aip/"+c.Name, func(t *testing.T) {
			in := octtest.Open(t, store.Folder(golden.Input(t, c)))
			onBoth(t, d, in, func(out store.Writer, png io.Writer, res oct.Resources) (*ngff.Image, error) {
				return Run(octtest.Ctx, in, out, oct.Layout{Levels: 3}, &Picture{To: png}, res)
			})
		})
	}
	for _, c := range golden.Cases(t, "resample") {
		t.Run("resample/"+c.Name, func(t *testing.T) {
			in := octtest.Open(t, store.Folder(golden.Input(t, c)))
			onBoth(t, d, in, func(out store.Writer, _ io.Writer, res oct.Resources) (*ngff.Image, error) {
				return resample.Run(octtest.Ctx, in, out, resample.Options{Resolution: [3]float64{10, 10, 10}, Prefetch: 8}, oct.Layout{Levels: 2}, res)
			})
		})
	}
}

func TestTypesOnDevice(t *testing.T) {
	d := octtest.Device(t, 256<<20)
	t.Run("uint8", func(t *testing.T) { onDevice[uint8](t, d) })
	t.Run("int16", func(t *testing.T) { onDevice[int16](t, d) })
	t.Run("uint32", func(t *testing.T) { onDevice[uint32](t, d) })
	t.Run("float32", func(t *testing.T) { onDevice[float32](t, d) })
	t.Run("float64", func(t *testing.T) { onDevice[float64](t, d) })
}

// onDevice runs stages on a mosaic with partial tiles, several chunks along z and,
// where the type has them, voxels that are not finite.
func onDevice[T dtype.Element](t *testing.T, d *gpu.Device) {
	in, _ := octtest.Made(t, []int{11, 45, 70}, []int{4, 20, 32}, nil, nil, func(i int) T {
		switch {
		case !dtype.Of[T]().IsFloat():
			return T(i * 7919 % 251)
		case i%9001 == 77:
			return T(math.NaN())
		case i%7001 == 5:
			return T(math.Inf(1))
		}
		return T(float64(i*7919%1013) / 3)
	})
	onBoth(t, d, in, func(out store.Writer, png io.Writer, res oct.Resources) (*ngff.Image, error) {
		return Run(octtest.Ctx, in, out, oct.Layout{Levels: 2}, &Picture{To: png}, res)
	})
	for _, layout := range []oct.Layout{{Levels: 2}, {Levels: 3, Codec: "raw", Chunks: []int{10, 16}}, {Levels: 1, Codec: "zstd", Format: 3, Chunks: []int{10, 32}, Shard: []int{20, 64}}} {
		onBoth(t, d, in, func(out store.Writer, _ io.Writer, res oct.Resources) (*ngff.Image, error) {
			return Run(octtest.Ctx, in, out, layout, nil, res)
		})
	}
	onBoth(t, d, in, func(out store.Writer, _ io.Writer, res oct.Resources) (*ngff.Image, error) {
		return resample.Run(octtest.Ctx, in, out, resample.Options{Resolution: [3]float64{10, 6.6, 5.4}}, oct.Layout{Levels: 1}, res)
	})
}

// A device that holds fewer tiles than there could be in flight makes the same; one
// that holds none is an error that says what is needed.
func TestLittleDeviceMemory(t *testing.T) {
	in, _ := octtest.Made(t, []int{11, 45, 70}, []int{11, 20, 32}, nil, nil, func(i int) uint16 { return uint16(i * 7919) })
	run := func(out store.Writer, _ io.Writer, res oct.Resources) (*ngff.Image, error) {
		return resample.Run(context.Background(), in, out, resample.Options{Resolution: [3]float64{10, 6.6, 5.4}}, oct.Layout{}, res)
	}
	onBoth(t, octtest.Device(t, 4<<20), in, run)
	res := octtest.Small()
	res.Device = octtest.Device(t, 64<<10)
	if _, err := run(store.Memory(), nil, res); err == nil {
		t.Error("a tile in 64 KiB")
	} else {
		t.Log(err)
	}
}

// On a device that has the memory for a tile, but not for decoding it, the host decodes.
func TestNoMemoryToDecode(t *testing.T) {
	race.Leave(t)
	in, _ := octtest.Made(t, []int{11, 45, 70}, []int{11, 20, 32}, nil, codec.Chain{codec.Zstd(1, false)}, func(i int) uint16 { return uint16(i * 7919) })
	want, err := resample.Run(octtest.Ctx, in, store.Memory(), resample.Options{Resolution: [3]float64{10, 10, 10}, Prefetch: 8}, oct.Layout{}, octtest.Small())
	if err != nil {
		t.Fatal(err)
	}
	voxels := octtest.Stored(in.Levels[0].Array)
	for memory := int64(4 << 20); ; memory -= 128 << 10 {
		res := octtest.Small()
		res.Device, res.Ways = octtest.Device(t, memory), new(zarrgpu.Counts)
		got, err := resample.Run(octtest.Ctx, in, store.Memory(), resample.Options{Resolution: [3]float64{10, 10, 10}, Prefetch: 8}, oct.Layout{}, res)
		if err != nil {
			t.Fatalf("%d bytes of device memory: %v", memory, err)
		}
		octtest.SameArrays(t, got, want)
		if res.Ways.Bytes(zarrgpu.Host) == voxels {
			return
		}
	}
}

// With the backend host the files are those of a run without a device, byte for byte.
func TestSameFilesByHost(t *testing.T) {
	in, _ := octtest.Made(t, []int{11, 45, 70}, []int{11, 20, 32}, nil, nil, func(i int) uint16 { return uint16(i * 7919 % 251) })
	d := octtest.Device(t, 64<<20)
	var files [2]map[string]string
	for i, dev := range []*gpu.Device{nil, d} {
		dir := t.TempDir()
		res := octtest.Small()
		res.Device, res.Backend = dev, "host"
		if _, err := resample.Run(octtest.Ctx, in, store.Folder(dir), resample.Options{Resolution: [3]float64{10, 6.6, 5.4}}, oct.Layout{Levels: 1}, res); err != nil {
			t.Fatal(err)
		}
		files[i] = map[string]string{}
		err := fs.WalkDir(os.DirFS(dir), ".", func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			b, err := os.ReadFile(filepath.Join(dir, path))
			files[i][path] = string(b)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(files[0]) < 9 || !maps.Equal(files[0], files[1]) {
		t.Errorf("%d files, without a device %d; they differ", len(files[1]), len(files[0]))
	}
}
