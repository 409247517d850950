// Package ngffgpu writes images whose level 0 is computed on a device.
//
// A [Writer] takes tiles of level 0 in device memory and does as much as possible there, so that a tile
// leaves the device once, in its stored form: its encoded chunks and its part of level 1, from which the host
// makes the levels below, with strips of its edges that neighbouring tiles need for theirs. If the host
// encodes the chunks, the tile's elements come down unencoded.
package ngffgpu

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"strata/pkg/filelayer"
	"strata/pkg/gpu"
	"strata/pkg/gpu/kernels"
	"strata/pkg/gpu/nvcomp"
	"strata/pkg/gpu/trial"
	"strata/pkg/mem"
	"strata/pkg/meter"
	"strata/pkg/ngff"
	"strata/pkg/zarr/zarrgpu/pack"
)

// Options configure a [Writer]. The zero value is useful.
type Options struct {
	Files *filelayer.Pool // writes files straight from the device where possible; may be nil
	Meter *meter.Meter    // may be nil
	// ByHost leaves encoding to the host, so that files have the same bytes as without a device.
	ByHost bool
	Trials *trial.Book          // compares encoding on device and host; nil: the device encodes what it can
	Debug  func(message string) // called with the reason why chunks take no better way; may be nil
}

// way names how chunks leave the device.
type way int

const (
	whole  way = iota // not: the host gets the elements of the tile
	raw               // as their elements, through the host
	direct            // as their elements, straight to their files
	packed            // encoded
)

// Writer writes level 0 of an image, and the levels below, from the memory of a device. Its methods are safe
// for concurrent use if each goroutine has its own streams.
type Writer struct {
	out     *ngff.Writer
	device  *gpu.Device
	options Options
	way     way
	encoder *pack.Encoder // of packed chunks
	trial   *trial.Trial  // of packed and whole
	layout

	cuFile atomic.Bool // it is there, for direct
	held   holding     // page-locked memory of tiles

	warm       atomic.Bool // the encoder's kernels are loaded, as far as a trial waits for that
	proving    sync.Mutex  // held while the host decodes what the device has encoded
	proved     atomic.Bool // that was right: chunks are written as the device encodes them
	unproved   sync.Once   // that could not be done yet
	mistrusted atomic.Bool // that was wrong: the host encodes
}

// NewWriter returns a writer of the image of out from the memory of d. The caller still creates, closes and
// aborts out.
func NewWriter(out *ngff.Writer, d *gpu.Device, o Options) *Writer {
	w := &Writer{out: out, device: d, options: o, layout: layoutOf(out)}
	if why := w.choose(); why != nil {
		w.byHost(why)
	}
	return w
}

// byHost says why the host encodes.
func (w *Writer) byHost(why error) {
	if w.options.Debug != nil {
		w.options.Debug(fmt.Sprintf("%s: chunks are encoded by the host: %v", w.out.Array(0).Location(), why))
	}
}

// choose takes the best way, or returns why chunks do not leave the device in stored form.
func (w *Writer) choose() error {
	switch {
	case !w.inOrder:
		return errors.New("elements are stored in another order than they have in memory")
	case !w.halves():
		return fmt.Errorf("no kernel halves %v", w.kind)
	case !w.encoded && w.straight():
		w.way = direct
	case !w.encoded:
		w.way = raw
	case w.options.ByHost:
		return errors.New("it was asked for")
	case w.chunkBytes > mem.Unplanned():
		return fmt.Errorf("one of %d bytes is too large for the host to prove that nvCOMP encodes it right", w.chunkBytes)
	default:
		lib, err := nvcomp.Open(w.device)
		if err == nil {
			w.encoder, err = pack.New(lib, w.out.Array(0).Codecs(), int(w.chunkBytes))
		}
		if err == nil {
			// what it takes can be asked for
			_, _, err = w.encoder.Memory(w.device, 1)
		}
		if err != nil {
			return err
		}
		w.way = packed
		if w.trial = w.options.Trials.Of("write", w.out.Array(0).Location(), "", "nvcomp", "host"); w.trial != nil {
			w.device.Beside(w.warmUp)
		}
	}
	return nil
}

// warmUp loads the encoder's kernels, so that no tile of a trial waits for them. If they fail, the host
// encodes.
func (w *Writer) warmUp() {
	if err := w.encoder.Warm(w.device); err == nil || errors.Is(err, gpu.ErrMemory) { // tiles find out whether there is memory
		w.warm.Store(true)
	} else if w.device.Lost() == nil {
		w.byHost(err)
	}
}

// Memory returns the maximum of [gpu.Device.Pinned] and of [gpu.Device.Memory] memory that a [Tile] of the
// given shape holds, not counting the caller's src. If the device has less, the tile comes down unencoded,
// which needs none.
func (w *Writer) Memory(shape []int) (pinned, device int64) {
	tile := w.clipped(shape)
	pinned = mem.Pooled(w.bytes(tile[:]))
	if w.way == whole {
		return pinned, 0
	}
	n := int64(w.grid(tile).volume())
	parts, tables := w.partBytes()
	tables += kernels.ScatterTable(1 + rank)
	device += mem.Pooled(w.gatheredBytes(n)) + mem.Pooled(n*parts) + mem.Pooled(n*tables)
	leaves := mem.Pooled(n*parts) + mem.Pooled(n*tables)
	switch w.now() {
	case raw:
		leaves += mem.Pooled(n * w.chunkBytes)
	case packed:
		p, d, err := w.encoder.Memory(w.device, int(n))
		if err == nil { // else chunks are encoded one by one, or by the host
			leaves, device = leaves+p, device+d
		}
	}
	return max(pinned, leaves), device
}

// WriteTile stores a tile that lies at the beginning of src like [ngff.Writer.WriteTile]; see [Writer.Begin].
// It waits for the stream; afterwards the stream is idle and the caller may reuse src.
func (w *Writer) WriteTile(ctx context.Context, s *gpu.Stream, start, shape []int, src gpu.Span) error {
	t, err := w.Begin(s, start, shape, src)
	begun := time.Now()
	own := s.Wait()
	w.options.Meter.Since(meter.Compute, begun)
	if err != nil {
		return w.first(own, err)
	}
	defer t.Release()
	if own != nil {
		return own
	}
	return t.Write(ctx, s)
}

// first returns the first of two errors, of a stream and of a call after what is queued there.
func (w *Writer) first(stream, call error) error {
	if lost := w.device.Lost(); lost != nil {
		return lost
	}
	if stream != nil {
		return stream
	}
	return call
}

// Begin queues all work of the device on a tile, after the work already on the stream. The tile lies at the
// beginning of src, which is aligned to the element size, in C order and native byte order. Once the stream
// has been waited for, the caller may reuse src and calls [Tile.Write] to store the tile. Begin returns
// errors of allocating and queuing; failures of queued work come from the stream's Wait. If page-locked memory is
// short, the error is [gpu.ErrMemory], and [Writer.Await] waits for some.
func (w *Writer) Begin(s *gpu.Stream, start, shape []int, src gpu.Span) (*Tile, error) {
	if err := w.check(start, shape, src); err != nil {
		return nil, err
	}
	t := &Tile{Writer: w, way: w.now(), start: start, dims: shape, shape: padded(shape, 1), src: src}
	w.held.take(t)
	t.watched(s)
	err := error(nil)
	if t.way == whole {
		err = t.begin(s)
	} else if err = t.leave(s); errors.Is(err, gpu.ErrMemory) {
		err = t.begin(s)
	}
	if t.timed() {
		t.watch[0].End(s)
	}
	if err != nil {
		s.After(t.Release) // something may be queued
		return nil, err
	}
	return t, nil
}

func (w *Writer) check(start, shape []int, src gpu.Span) error {
	if err := w.out.CheckTile(start, shape); err != nil {
		return err
	}
	if n := w.bytes(shape); src.Bytes() < n || src.Address()%uint64(w.size) != 0 {
		return fmt.Errorf("%s: tile of shape %v in %d bytes of device memory at %#x, must be %d at a multiple of %d",
			w.out.Array(0).Location(), shape, src.Bytes(), src.Address(), n, w.size)
	}
	return nil
}
