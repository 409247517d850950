//go:build !nocuda

package aip

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"strata/pkg/meter"
	"strata/pkg/oct"
	"strata/pkg/zarr/store"
	"strata/tests/octtest"
)

// waiting is a store whose first chunk is stored once so much has been read.
type waiting struct {
	store.Writer
	meter *meter.Meter
	bytes int64
	began atomic.Bool
}

func (w *waiting) Put(ctx context.Context, key string, parts ...[]byte) error {
	if strings.Contains(key, "0/c/") && w.began.CompareAndSwap(false, true) {
		end := time.Now().Add(time.Minute)
		for w.meter.BytesRead() < w.bytes {
			if time.Now().After(end) {
				return errors.New("nothing is read while a tile is written")
			}
			time.Sleep(time.Millisecond)
		}
	}
	return w.Writer.Put(ctx, key, parts...)
}

// A worker on a device reads while it writes: the first tile is stored once the fourth has been read, two more than
// have been when it is done.
func TestReadsWhileItWrites(t *testing.T) {
	in, want := octtest.Made(t, []int{6, 16, 160}, []int{6, 16, 16}, nil, nil, func(i int) uint16 { return uint16(i * 7919) })
	res := oct.Resources{Workers: 1, Mem: 64 << 20, Device: octtest.Device(t, 64<<20), Meter: new(meter.Meter)}
	out := &waiting{Writer: store.Memory(), meter: res.Meter, bytes: 4 * 6 * 16 * 16 * 2}
	im, err := Run(octtest.Ctx, in, out, oct.Layout{Codec: "raw"}, nil, res)
	if err != nil {
		t.Fatal(err)
	}
	if !out.began.Load() {
		t.Error("no chunk was stored")
	}
	octtest.SameBits(t, octtest.Read(t, im.Levels[0].Array), want)
}
