package octtest

import (
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"strata/pkg/dtype"
	"strata/pkg/gpu"
	"strata/pkg/meter"
	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/zarr/codec"
)

// Joined runs a stage on a mosaic, on the host, while a device is on its way: one that is there at once, one that comes
// when a part of the work is done, one that never comes, one of which nothing is heard before the work ends, and one with
// too little memory. It compares what comes of it with what the host makes alone.
func Joined(t *testing.T, run func(in *ngff.Image, res oct.Resources) (*ngff.Image, any, error)) {
	t.Helper()
	JoinedOf[uint16](t, run)
}

// JoinedOf is [Joined] with voxels of a type.
func JoinedOf[T dtype.Element](t *testing.T, run func(in *ngff.Image, res oct.Resources) (*ngff.Image, any, error)) {
	t.Helper()
	in, _ := Made(t, []int{11, 150, 210}, []int{11, 20, 32}, nil, codec.Chain{codec.Zstd(1, false)}, Uneven[T])
	d, little := Device(t, 64<<20), Device(t, 4<<10)
	image, found, err := run(in, Small())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		device *gpu.Device
		begins bool // it comes once work has begun
		never  bool // nothing is heard
	}{{"at once", d, false, false}, {"later", d, true, false}, {"none", nil, true, false}, {"never", nil, false, true}, {"too little memory", little, true, false}} {
		res := Small()
		res.Meter = new(meter.Meter)
		res.Coming = oct.NewComing(0, time.Minute)
		settle := sync.OnceFunc(func() {
			if c.device == nil {
				res.Coming.Settle(nil)
				return
			}
			res.Coming.Settle(func(res *oct.Resources) { res.Device = c.device })
		})
		if !c.begins && !c.never {
			settle()
		}
		res.Progress = func(int64) {
			if c.begins {
				settle()
			}
			time.Sleep(10 * time.Millisecond) // the device has time to come
		}
		var mu sync.Mutex
		var said string
		res.Warn = func(text string) {
			mu.Lock()
			defer mu.Unlock()
			said += text + "\n"
		}
		before, _, _ := d.Traffic()
		got, also, err := run(in, res)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		SameArrays(t, got, image)
		if !reflect.DeepEqual(also, found) {
			t.Errorf("%s: %+v, of the CPU %+v", c.name, also, found)
		}
		if short := strings.Contains(said, "the GPU does not join the CPU: "); short != (c.device == little) {
			t.Errorf("%s: said %q", c.name, said)
		}
		after, _, _ := d.Traffic()
		if moved := after - before; (moved > 0) != (c.device == d) {
			t.Errorf("%s: %d bytes went to the device", c.name, moved)
		}
	}
}
