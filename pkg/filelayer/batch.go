package filelayer

import (
	"context"
	"errors"
	"fmt"

	"strata/pkg/gpu"
)

// Op is one read or write of a batch, of host or device memory.
type Op struct {
	File   *File
	Off    int64 // in the file
	Write  bool
	Host   []byte
	Device gpu.Span // where Host is nil
}

// Batch is a set of reads and writes begun together.
type Batch struct{ pending []*Pending }

// Begin begins reads and writes, which the threads of the file's pool process in order. The memory must not
// be used before [Batch.Wait].
func Begin(ctx context.Context, ops ...Op) *Batch {
	b := &Batch{pending: make([]*Pending, len(ops))}
	for i, o := range ops {
		r := &request{ctx: ctx, file: o.File, write: o.Write, host: o.Host, dev: o.Device, off: o.Off, n: int64(len(o.Host))}
		if o.Host == nil {
			r.n = o.Device.Bytes()
		}
		b.pending[i] = o.File.begin(r)
	}
	return b
}

// Len returns the number of operations.
func (b *Batch) Len() int { return len(b.pending) }

// Done returns how many operations have ended.
func (b *Batch) Done() int {
	n := 0
	for _, p := range b.pending {
		select {
		case <-p.request.done:
			n++
		default:
		}
	}
	return n
}

// Cancel cancels the tasks of the batch that have not begun. [Batch.Wait] waits for the others, and returns
// [context.Canceled] for the cancelled ones.
func (b *Batch) Cancel() {
	for _, p := range b.pending {
		p.request.file.pool.cancel(p.request, context.Canceled)
	}
}

// Wait waits for all operations and joins their errors, each with its number in the batch.
func (b *Batch) Wait() error {
	var failed []error
	for i, p := range b.pending {
		if err := p.Wait(); err != nil {
			failed = append(failed, fmt.Errorf("operation %d of %d: %w", i, len(b.pending), err))
		}
	}
	return errors.Join(failed...)
}
