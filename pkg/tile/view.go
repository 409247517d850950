package tile

import (
	"errors"
	"fmt"
	"sync/atomic"
	"unsafe"

	"strata/pkg/dtype"
	"strata/pkg/mem"
)

// ErrReleased is returned by Release of a view that has been released already.
var ErrReleased = errors.New("view released more often than its release count")

// View is a tile with a halo around it, in C order. Pixels outside the image form the border. A view belongs
// to its receiver until Release; its pixels may be changed.
type View[T dtype.Element] struct {
	Geometry
	lv       *level[T]
	buf      *buffer[T]
	left     atomic.Int32 // releases until the buffer is used again
	plan     *schedule    // of the requests that it is one of
	position int          // in them
}

// buffer is the memory of one view.
type buffer[T dtype.Element] struct {
	mem      *mem.Buffer
	data     []T
	poisoned bool
}

// set gives a buffer other memory of the same size.
func (b *buffer[T]) set(m *mem.Buffer, pixels int) { b.mem, b.data = m, dtype.Slice[T](m.B)[:pixels] }

// Data returns all pixels of the view, of shape ViewShape; nil once the view has been released.
func (v *View[T]) Data() []T {
	if v.left.Load() <= 0 {
		return nil
	}
	return v.buf.data
}

// Center returns Data from the first pixel of the central tile on. With the view's strides it addresses the
// tile's pixels from position 0; it leaves out the halo before them.
func (v *View[T]) Center() []T {
	d := v.Data()
	if d == nil {
		return nil
	}
	off := 0
	for a, s := range v.lv.viewStrides {
		off += v.Radius[a] * s
	}
	return d[off:]
}

// Strides returns the distances, in elements, between neighbours on each axis.
func (v *View[T]) Strides() []int { return v.lv.viewStrides }

// Release releases the view once; after as many calls as the loader's release count its buffer is reused and
// Data is nil. Another call returns ErrReleased and has no effect. It is safe for concurrent use.
func (v *View[T]) Release() error {
	left := v.left.Add(-1)
	switch {
	case left > 0:
		return nil
	case left < 0:
		return fmt.Errorf("view %v of level %d: %w", v.Index, v.Level, ErrReleased)
	}
	v.lv.put(v.buf)
	return nil
}

// poison fills released views in checked mode: no plausible pixel, and a NaN of either float type.
const poison = 0xff

func (b *buffer[T]) poison() {
	raw := dtype.Bytes(b.data)
	for i := range raw {
		raw[i] = poison
	}
	b.poisoned = true
}

// intact reports whether nobody has written to the buffer since poison.
func (b *buffer[T]) intact() bool {
	if !b.poisoned {
		return true
	}
	b.poisoned = false
	for _, x := range dtype.Bytes(b.data) {
		if x != poison {
			return false
		}
	}
	return true
}

func sizeOf[T dtype.Element]() int {
	var v T
	return int(unsafe.Sizeof(v))
}
