package octtest

import (
	"fmt"
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

// Joined runs a stage on a mosaic, on the host, while a device is on its way, as [JoinedAfter] does: it comes at once,
// or when the first part of the work is done.
func Joined(t *testing.T, run func(in *ngff.Image, res oct.Resources) (*ngff.Image, any, error)) {
	t.Helper()
	JoinedOf[uint16](t, run)
}

// JoinedOf is [Joined] with voxels of a type.
func JoinedOf[T dtype.Element](t *testing.T, run func(in *ngff.Image, res oct.Resources) (*ngff.Image, any, error)) {
	t.Helper()
	in, _ := Made(t, []int{11, 150, 210}, []int{11, 20, 32}, nil, codec.Chain{codec.Zstd(1, false)}, Uneven[T])
	JoinedAfter(t, Small(), []int{1}, func(res oct.Resources) (*ngff.Image, any, error) { return run(in, res) })
}

// JoinedAfter runs a stage with some resources, on the host, while a device is on its way: one that is there at once,
// ones that come when a stage has reported progress so many times, one that never comes, one of which nothing is heard
// before the work ends, and one with too little memory. It compares what comes of it with what the host makes alone:
// the image, what was found, progress, voxels that are not finite, and warnings.
func JoinedAfter(t *testing.T, small oct.Resources, after []int, run func(res oct.Resources) (*ngff.Image, any, error)) {
	t.Helper()
	d, little := Device(t, 64<<20), Device(t, 4<<10)
	alone := joining{resources: small}.run(t, run)
	const never = 1 << 30
	cases := []joining{{"at once", d, 0, small}, {"none", nil, 1, small}, {"never", nil, never, small}, {"too little memory", little, 1, small}}
	for _, k := range after {
		cases = append(cases, joining{fmt.Sprintf("after %d", k), d, k, small})
	}
	for _, c := range cases {
		before, _, _ := d.Traffic()
		c.resources.Coming = oct.NewComing(0, 0, time.Minute)
		got := c.run(t, run)
		SameArrays(t, got.image, alone.image)
		if !reflect.DeepEqual(got.found, alone.found) {
			t.Errorf("%s: %+v, of the CPU %+v", c.name, got.found, alone.found)
		}
		const stays = "the GPU does not join the CPU: " // of each pass over the mosaic
		said := ""
		for line := range strings.Lines(got.said) {
			if !strings.HasPrefix(line, stays) {
				said += line
			}
		}
		short := strings.Contains(got.said, stays)
		if short != (c.device == little) || said != alone.said {
			t.Errorf("%s: said %q, the CPU %q", c.name, got.said, alone.said)
		}
		if got.done != alone.done || got.bad != alone.bad {
			t.Errorf("%s: progress of %d bytes, %d voxels not finite, of the CPU %d and %d", c.name, got.done, got.bad, alone.done, alone.bad)
		}
		after, _, _ := d.Traffic()
		if moved := after - before; (moved > 0) != (c.device == d) {
			t.Errorf("%s: %d bytes went to the device", c.name, moved)
		}
	}
}

// joining is a device on its way.
type joining struct {
	name      string
	device    *gpu.Device // nil: none comes
	after     int         // it is there, or known not to come, when progress has been reported so many times
	resources oct.Resources
}

// joined is what a stage makes while a device is on its way.
type joined struct {
	image     *ngff.Image
	found     any
	said      string
	done, bad int64
}

// run runs a stage. It waits with each progress for a device that has come and done nothing yet, so that it has time
// to.
func (c joining) run(t *testing.T, run func(res oct.Resources) (*ngff.Image, any, error)) (out joined) {
	t.Helper()
	res := c.resources
	res.Meter = new(meter.Meter)
	settle := sync.OnceFunc(func() {
		if c.device == nil {
			res.Coming.Settle(nil)
			return
		}
		res.Coming.Settle(func(res *oct.Resources) { res.Device = c.device })
	})
	if res.Coming != nil && c.after == 0 {
		settle()
	}
	var mu sync.Mutex
	times, moved := 0, func() (n int64) { return 0 }
	if c.device != nil {
		moved = func() (n int64) { n, _, _ = c.device.Traffic(); return n }
	}
	before := moved()
	res.Progress = func(n int64) {
		mu.Lock()
		out.done += n
		times++
		come, waits := res.Coming != nil && times >= c.after, times < c.after+20
		mu.Unlock()
		if come {
			settle()
			if c.device != nil && waits && moved() == before {
				time.Sleep(10 * time.Millisecond)
			}
		}
	}
	res.Warn = func(text string) {
		mu.Lock()
		defer mu.Unlock()
		out.said += text + "\n"
	}
	var err error
	if out.image, out.found, err = run(res); err != nil {
		t.Fatalf("%s: %v", c.name, err)
	}
	out.bad = res.Meter.NonFinite()
	return out
}
