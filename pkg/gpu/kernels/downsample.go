package kernels

import (
	"encoding/binary"
	"fmt"
	"math"

	"strata/pkg/dtype"
	"strata/pkg/filter"
	"strata/pkg/gpu"
)

// Halving computes a box of the next pyramid level from a volume (z, y, x) in device memory, with the same
// bits as ngff.Downsample. Y and X are halved, and Z if it has taps.
type Halving struct {
	Kind   dtype.Type
	Out    [3]int         // shape of the box
	In     [3]int         // shape of the volume
	Origin [3]int         // sample of the level that the volume begins with
	Taps   [3]filter.Taps // of the box, from samples of the level
}

// tapBytes is the size of a Tap in downsample.cu.
const tapBytes = 24

// even reports whether the box is made from the whole volume, each sample from two consecutive ones per axis,
// with sums of eight that do not overflow. Then no taps are needed.
func (h *Halving) even() bool {
	if h.Kind == dtype.Uint64 || h.Kind == dtype.Int64 {
		return false
	}
	for d, t := range h.Taps {
		if d == 0 && t.Lo == nil {
			continue
		}
		if !t.Even || d > 0 && h.In[d] != 2*h.Out[d] || len(t.Lo) > 0 && int(t.Lo[0]) != h.Origin[d] {
			return false
		}
	}
	return true
}

// TableBytes returns the length of the table that Run needs.
func (h *Halving) TableBytes() int64 {
	if h.even() {
		return 0
	}
	return tapBytes * int64(len(h.Taps[0].Lo)+len(h.Taps[1].Lo)+len(h.Taps[2].Lo))
}

// check reports taps that are not of the box or lie outside of the volume.
func (h *Halving) check() error {
	for d, t := range h.Taps {
		if d == 0 && t.Lo == nil {
			if h.Out[0] > h.In[0] {
				return fmt.Errorf("%d planes of %d", h.Out[0], h.In[0])
			}
			continue
		}
		if len(t.Lo) != h.Out[d] {
			return fmt.Errorf("%d taps for %d samples", len(t.Lo), h.Out[d])
		}
		if n := len(t.Lo); n > 0 && (int(t.Lo[0]) < h.Origin[d] || int(t.Hi[n-1]) >= h.Origin[d]+h.In[d]) {
			return fmt.Errorf("taps from %d to %d of %d samples from %d on", t.Lo[0], t.Hi[n-1], h.In[d], h.Origin[d])
		}
	}
	return nil
}

// Run queues the computation of dst from src. table, in page-locked memory, and onDevice have TableBytes
// bytes and are in use until the stream is waited for. If TableBytes is 0, dst and src must be aligned to 16
// bytes, as buffers are.
func (h *Halving) Run(s *gpu.Stream, dst, src gpu.Span, table []byte, onDevice gpu.Span) error {
	if err := h.check(); err != nil || h.Out[0] == 0 || h.Out[1] == 0 || h.Out[2] == 0 {
		return err
	}
	nz, ny, nx, planes := int32(h.Out[0]), int32(h.Out[1]), int32(h.Out[2]), int32(1)
	if h.Taps[0].Lo != nil {
		planes = 2
	}
	if h.even() {
		each := max(1, 8/h.Kind.Size()) // outputs of a thread
		return queueTyped(s, "downsample", "downsample_even", h.Kind, threads(h.Out[0], h.Out[1], (h.Out[2]+each-1)/each), src, dst, nz, ny, nx, planes)
	}
	n := h.TableBytes()
	if int64(len(table)) < n || onDevice.Bytes() < n {
		return fmt.Errorf("a table of %d bytes for taps, of %d on the device: want %d", len(table), onDevice.Bytes(), n)
	}
	scale, taps := 1.0, [3]gpu.Span{}
	at := int64(0)
	for d, t := range h.Taps {
		if t.Even {
			scale /= 2
		}
		from := at
		for i := range t.Lo {
			b := table[at:]
			binary.LittleEndian.PutUint64(b, math.Float64bits(t.W0[i]))
			binary.LittleEndian.PutUint64(b[8:], math.Float64bits(t.W1[i]))
			binary.LittleEndian.PutUint32(b[16:], uint32(int(t.Lo[i])-h.Origin[d]))
			binary.LittleEndian.PutUint32(b[20:], uint32(int(t.Hi[i])-h.Origin[d]))
			at += tapBytes
		}
		taps[d] = onDevice.From(from, at-from)
	}
	s.Upload(onDevice, table[:n])
	return queueTyped(s, "downsample", "downsample_odd", h.Kind, threads(h.Out[0], h.Out[1], h.Out[2]), src, dst,
		nz, ny, nx, int32(h.In[1]), int32(h.In[2]), planes, scale, taps[0], taps[1], taps[2])
}

// HalvingOf returns the halving of a whole level of the given shape along y and x, and with z along that axis
// too.
func HalvingOf(shape [3]int, z bool, kind dtype.Type) (Halving, error) {
	h := Halving{Kind: kind, In: shape, Out: shape}
	for d, n := range shape {
		if d == 0 && !z {
			continue
		}
		h.Taps[d] = filter.HalvingTaps(n)
		if h.Out[d] = len(h.Taps[d].Lo); h.Out[d] == 0 {
			return h, fmt.Errorf("shape %v cannot be halved", shape)
		}
	}
	return h, nil
}
