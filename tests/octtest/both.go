package octtest

import (
	"reflect"
	"sync/atomic"
	"testing"

	"strata/pkg/gpu"
	"strata/pkg/meter"
	"strata/pkg/ngff"
	"strata/pkg/oct"
)

// Traffic is what a run on a device made and moved.
type Traffic struct {
	Image    *ngff.Image
	Up, Down int64 // bytes to the device and from it
}

// OnBoth runs a stage on the host and on a device, to which chunks come as the backend says, and compares all that
// comes of it: the image, what was found, progress and warnings.
func OnBoth(t *testing.T, d *gpu.Device, backend string, run func(res oct.Resources) (*ngff.Image, any, error)) (c Traffic) {
	t.Helper()
	var images [2]*ngff.Image
	var found [2]any
	var done [2]atomic.Int64
	var said [2]string
	up, down, _ := d.Traffic()
	for i, dev := range []*gpu.Device{nil, d} {
		res := Small()
		res.Device, res.Backend, res.Meter = dev, backend, new(meter.Meter)
		res.Progress = func(n int64) { done[i].Add(n) }
		res.Warn = func(text string) { said[i] += text + "\n" }
		var err error
		if images[i], found[i], err = run(res); err != nil {
			t.Fatal(err)
		}
	}
	SameArrays(t, images[1], images[0])
	if !reflect.DeepEqual(found[0], found[1]) || said[0] != said[1] {
		t.Errorf("%+v, %q; of the CPU %+v, %q", found[1], said[1], found[0], said[0])
	}
	if done[0].Load() != done[1].Load() {
		t.Errorf("progress of %d bytes, of the CPU %d", done[1].Load(), done[0].Load())
	}
	c.Image = images[1]
	c.Up, c.Down, _ = d.Traffic()
	c.Up, c.Down = c.Up-up, c.Down-down
	return c
}
