package zarr

import (
	"context"
	"fmt"
)

// ReadFront reads a region that begins at the first element of a chunk and lies inside it into the front of
// buf, as [Array.Read] would. If buf has room for the whole chunk, planes along the first dimension are
// decoded in place without a copy, and no more of them than the codec needs; the content of buf behind the
// region is then undefined.
//
// It runs in the caller's goroutine.
func (a *Array) ReadFront(ctx context.Context, r Region, buf []byte) error {
	n, err := a.regionBytes(r)
	if err != nil || n == 0 {
		return err
	}
	for d, unit := range a.Chunks() {
		if r.Start[d]%unit != 0 || r.Shape[d] > unit {
			return fmt.Errorf("%s: region %v is not the front of a chunk", a.Location(), r)
		}
	}
	if len(buf) < n {
		return fmt.Errorf("%s: region %v of %s has %d bytes, the buffer %d", a.Location(), r, a.meta.elem, n, len(buf))
	}
	w := takeWorker()
	defer w.giveBack()
	w.front = true
	strides := cStrides(w.vector(len(r.Shape)), r.Shape, a.meta.pipe.size)
	return a.run(ctx, w, w.readCursor(r, a), func(w *worker, t *task) error {
		return a.readTask(ctx, w, t, buf, strides)
	})
}

// front reports whether a box, in stored order, consists of leading planes of a chunk.
func (p *pipeline) front(start, shape []int) bool {
	for d := range shape {
		if start[d] != 0 || d > 0 && shape[d] != p.stored[d] {
			return false
		}
	}
	return true
}
