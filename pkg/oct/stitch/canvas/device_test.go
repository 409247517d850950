//go:build !nocuda

package canvas

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"strata/pkg/dtype"
	"strata/pkg/meter"
	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/zarr/store"
	"strata/tests/octtest"
)

const tileY, tileX, overlap = 64, 96, 48

// pair is a canvas of two overlapping tiles of 12 planes, with its seam sums wanted.
func pair(t *testing.T, res oct.Resources) Canvas {
	t.Helper()
	in, _ := octtest.Made(t, []int{12, tileY, 2 * tileX}, []int{4, tileY, tileX}, nil, nil, func(i int) float32 { return float32(i*7919%1013) / 3 })
	m, err := oct.OpenMosaic(in)
	if err != nil {
		t.Fatal(err)
	}
	const second = tileX - overlap
	places := []Place{{Rectangle: oct.Rect(0, tileY, 0, tileX)}, {Rectangle: oct.Rect(0, tileY, second, second+tileX)}}
	return Canvas{Mosaic: m, Places: places, Size: [2]int{tileY, second + tileX}, Blending: BlendAverage, Seams: SeamSums{}, Res: res}
}

// write makes the slice with an assembly that prepare may change, in units of 4 planes of the whole canvas.
func write(t *testing.T, c Canvas, prepare func(f *Assembly)) *ngff.Image {
	t.Helper()
	unit := [3]int{4, c.Size[0], c.Size[1]}
	shape := []int{c.Mosaic.Shape[0], c.Size[0], c.Size[1]}
	out := store.Memory()
	w, err := oct.Create(octtest.Ctx, out, oct.Layout{Codec: "raw"}, ngff.ImageSpec{Format: 3, Shape: shape, Chunks: unit[:], DType: dtype.Float32, Axes: c.Mosaic.Axes(), Scale: []float64{1, 1, 1}}, shape, c.Res)
	if err != nil {
		t.Fatal(err)
	}
	f := New(c, unit, c.Res.Mem)
	f.fusion.Output = w
	if err := f.makePlan(); err != nil {
		t.Fatal(err)
	}
	prepare(f)
	if err := f.Write(octtest.Ctx, w); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(octtest.Ctx); err != nil {
		t.Fatal(err)
	}
	return octtest.Open(t, out)
}

// sumsOf returns the sums of the canvas's seams, to the last bit.
func sumsOf(c Canvas) (sums []any) {
	for _, s := range c.Seams {
		sums = append(sums, *s)
	}
	return sums
}

// same compares a slice and its seam sums with those that the host makes alone.
func same(t *testing.T, c Canvas, got *ngff.Image) {
	t.Helper()
	alone := pair(t, oct.Resources{Workers: 1, Mem: 64 << 20, Meter: new(meter.Meter)})
	octtest.SameArrays(t, got, write(t, alone, func(*Assembly) {}))
	if a, b := sumsOf(c), sumsOf(alone); len(b) != 1 || !reflect.DeepEqual(a, b) {
		t.Errorf("seam sums %+v, of the host alone %+v", a, b)
	}
}

// A device that turns out to have less memory than planned makes a column in parts along z: all of them are written,
// and each continues the seam sums of the one before.
func TestColumnIsCutAlongZ(t *testing.T) {
	d := octtest.Device(t, 16<<20)
	made := func(held int64) (c Canvas, out *ngff.Image, up int64) {
		c = pair(t, oct.Resources{Workers: 1, Mem: 64 << 20, Device: d, Meter: new(meter.Meter)})
		before, _, _ := d.Traffic()
		out = write(t, c, func(f *Assembly) {
			if f.slab != 3 || f.across != 1 {
				t.Fatalf("%d units along z are planned at a time, of %d columns along x", f.slab, f.across)
			}
			const piece = 32 << 10
			for ; held > 0; held -= piece {
				b, err := d.Memory().Get(piece)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(b.Release)
			}
		})
		up, _, _ = d.Traffic()
		return c, out, up - before
	}
	_, _, whole := made(0)
	c, got, up := made(d.Memory().Limit() - d.Memory().Peak()*7/8)
	if up < whole*5/4 {
		t.Errorf("%d bytes went up, and %d without a cut", up, whole)
	}
	same(t, c, got)
}

// While the host completes the columns that it has in memory, a device that joins leaves the planes below them alone,
// since their seam sums continue those of the host.
func TestDeviceAwaitsSeamSums(t *testing.T) {
	d := octtest.Device(t, 64<<20)
	handed := make(chan struct{})
	res := oct.Resources{Workers: 1, Mem: 64 << 20, Meter: new(meter.Meter), Coming: oct.NewComing(0, 0, time.Minute)}
	res.Debug = func(text string) {
		if strings.Contains(text, "are left for the GPU") {
			close(handed)
		}
	}
	reports := 0
	res.Progress = func(int64) {
		if reports++; reports > 1 {
			return
		}
		before, _, _ := d.Traffic()
		res.Coming.Settle(func(r *oct.Resources) { r.Device, r.Progress = d, nil })
		select {
		case <-handed:
		case <-time.After(time.Minute):
			t.Error("the device does not join")
		}
		for range 30 {
			time.Sleep(10 * time.Millisecond)
			if after, _, _ := d.Traffic(); after != before {
				t.Errorf("%d bytes went to the device while the host was adding to the seam sums", after-before)
				return
			}
		}
	}
	c := pair(t, res)
	got := write(t, c, func(f *Assembly) { f.slab = 1 })
	same(t, c, got)
}
