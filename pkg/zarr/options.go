package zarr

import (
	"runtime"

	"strata/pkg/mem"
	"strata/pkg/meter"
)

// Option changes how an array or group is worked with.
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

// Workers sets how many chunks one call works on at a time (default:
// GOMAXPROCS). With 1 a call starts no goroutine.
func Workers(n int) Option { return func(o *options) { o.workers = max(n, 1) } }

// Budget limits the scratch memory that the workers of one call use together,
// in bytes (default, and for n ≤ 0: what the process was granted by [mem.SetLimit], else no
// limit). Fewer workers run when they would need more; a chunk that alone needs more is
// [ErrBudget]. The caller's own buffers are not counted.
func Budget(n int64) Option { return func(o *options) { o.budget = n } }

// Meter adds busy time and bytes to m: read and write as stored, decode and
// encode including the copying between chunk and region.
func Meter(m *meter.Meter) Option { return func(o *options) { o.meter = m } }

// OmitFill leaves chunks out that hold nothing but the fill value, and removes
// those stored before. Without it they are written like others, so that a
// missing file always means a missing file.
func OmitFill() Option { return func(o *options) { o.omitFill = true } }

// Hold gives memory to chunks of a [ShardWriter] that come before those in front of
// them in the shard. Without it, and when the pool is spent, they wait in a hidden file.
func Hold(p *mem.Pool) Option { return func(o *options) { o.hold = p } }
