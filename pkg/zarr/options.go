package zarr

import (
	"runtime"

	"strata/pkg/mem"
	"strata/pkg/meter"
)

// Option sets how an array or group is read and written.
type Option func(*options)

type options struct {
	workers  int
	budget   int64
	meter    *meter.Meter
	omitFill bool
	hold     *mem.Pool
	missing  *Missing
}

func (o *options) apply(opts []Option) {
	for _, f := range opts {
		f(o)
	}
}

func newOptions(opts []Option) options {
	o := options{workers: runtime.GOMAXPROCS(0)}
	o.apply(opts)
	return o
}

// Workers sets how many chunks one call works on at a time; the default is GOMAXPROCS. With 1 a call starts
// no goroutine.
func Workers(n int) Option { return func(o *options) { o.workers = max(n, 1) } }

// Budget limits the scratch memory of all workers of one call to n bytes. The default, also for n ≤ 0, is the
// limit of [mem.SetLimit], if any. A call that would exceed it runs fewer workers; a chunk that alone needs
// more fails with [ErrBudget]. The caller's own buffers do not count.
func Budget(n int64) Option { return func(o *options) { o.budget = n } }

// Meter adds busy time and bytes to m: reading and writing of stored bytes, and decoding and encoding
// including the copies between chunk and region.
func Meter(m *meter.Meter) Option { return func(o *options) { o.meter = m } }

// OmitFill leaves out chunks that hold only the fill value and removes those stored before. Without it they
// are written like all others, so that a missing file always means lost data.
func OmitFill() Option { return func(o *options) { o.omitFill = true } }

// Hold lets a [ShardWriter] keep chunks in memory from p while they wait for chunks that precede them in the
// shard. Without it, or when p is exhausted, they wait in a hidden file.
func Hold(p *mem.Pool) Option { return func(o *options) { o.hold = p } }
