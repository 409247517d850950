package zarr

import (
	"context"
	"fmt"

	"strata/pkg/zarr/box"
)

// InBlocks reports whether [Array.ReadPlanes] can read the array, that is, whether its chunks are decoded
// block by block, as Blosc's are.
func (a *Array) InBlocks() bool {
	p := a.meta.Pipeline
	for ; p.Shard != nil; p = p.Shard.Inner {
		if p.Perm != nil {
			return false
		}
	}
	return p.InBlocks()
}

// ReadPlanes reads a region that lies in one chunk without holding all of it. It calls take with the region's
// planes along the first dimension, in order and one or more at a time, while they are still in the
// processor's cache; first is the number of the first plane in the region. Planes have the layout of
// [Array.Read] and are reused after take returns. An error of take ends the reading and is returned
// unchanged. buf has room for at least one plane.
//
// It runs in the caller's goroutine and needs an array for which [Array.InBlocks] is true.
func (a *Array) ReadPlanes(ctx context.Context, r Region, buf []byte, take func(first int, planes []byte) error) error {
	n, err := a.regionBytes(r)
	if err != nil || n == 0 {
		return err
	}
	if !a.InBlocks() {
		return fmt.Errorf("%s: chunks are not decoded in blocks", a.Location())
	}
	for d, unit := range a.Chunks() {
		if r.Start[d]/unit != (r.Start[d]+r.Shape[d]-1)/unit {
			return fmt.Errorf("%s: region %v lies in more than one chunk", a.Location(), r)
		}
	}
	s := &planes{buf: buf, plane: n / r.Shape[0], count: r.Shape[0], take: take}
	if len(buf) < s.plane {
		return fmt.Errorf("%s: a buffer of %d bytes does not hold a plane of region %v, %d bytes", a.Location(), len(buf), r, s.plane)
	}
	w := takeWorker()
	defer w.giveBack()
	w.planes = s
	strides := box.Strides(w.vector(len(r.Shape)), r.Shape, a.meta.Pipeline.Size)
	err = a.run(ctx, w, w.newCursor(r, a.meta.Chunks, a.unit), func(w *worker, t *task) error {
		return a.readTask(ctx, w, t, buf, strides)
	})
	if s.failed != nil {
		return s.failed
	}
	return err
}

// ScratchBytes returns the maximum memory that one goroutine needs for reading besides the destination:
// encoded chunks, intermediate results between codecs, and decoded chunks that cannot be decoded in place.
// whole promises that only whole chunks are read; it has no effect if the array's edge cuts chunks.
func (a *Array) ScratchBytes(whole bool) int64 {
	for d, n := range a.unit {
		whole = whole && a.meta.Shape[d]%n == 0
	}
	return a.meta.Pipeline.ScratchBytes(whole)
}

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
		return fmt.Errorf("%s: region %v of %s has %d bytes, the buffer %d", a.Location(), r, a.meta.DType, n, len(buf))
	}
	w := takeWorker()
	defer w.giveBack()
	w.front = true
	strides := box.Strides(w.vector(len(r.Shape)), r.Shape, a.meta.Pipeline.Size)
	return a.run(ctx, w, w.readCursor(r, a), func(w *worker, t *task) error {
		return a.readTask(ctx, w, t, buf, strides)
	})
}
