package octtest

import (
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"strata/pkg/gpu"
	"strata/pkg/meter"
	"strata/pkg/ngff"
	"strata/pkg/oct"
)

// Joined runs a stage that begins on the host while a device is on its way: one that is there at once, one that comes when a part of
// the work is done, one that never comes, one of which nothing is heard before the work ends, and one with too little memory. It compares what
// comes of it with what the host makes alone, and returns the bytes that went to the device that came later.
func Joined(t *testing.T, d, little *gpu.Device, run func(res oct.Resources) (*ngff.Image, any, error)) (up int64) {
	t.Helper()
	image, found, err := run(Small())
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
		res.Coming = oct.NewComing(0)
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
		got, also, err := run(res)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		SameArrays(t, got, image)
		if !reflect.DeepEqual(also, found) {
			t.Errorf("%s: %+v, of the CPU %+v", c.name, also, found)
		}
		if short := strings.Contains(said, "the GPU does not join the CPU: "); short != (c.device == little && little != nil) {
			t.Errorf("%s: said %q", c.name, said)
		}
		after, _, _ := d.Traffic()
		if moved := after - before; (moved > 0) != (c.device == d) {
			t.Errorf("%s: %d bytes went to the device", c.name, moved)
		} else if c.name == "later" {
			up = moved
		}
	}
	return up
}
