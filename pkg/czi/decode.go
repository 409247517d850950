package czi

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"sync"

	"strata/pkg/dtype"
	"strata/pkg/jpeg"
	"strata/pkg/jpegxr"
	"strata/pkg/mem"
	"strata/pkg/tiff/tilecodec"
	"strata/pkg/zarr/codec/shuffle"
	"strata/pkg/zarr/codec/unzstd"
)

// tools holds what one goroutine needs for decoding.
type tools struct {
	zstd   unzstd.Decoder
	jpeg   jpeg.Decoder
	jpegxr jpegxr.Decoder
	tiff   tilecodec.Scratch
}

// borrow hands f's tools to a function.
func (f *File) borrow(use func(*tools) error) error {
	var t *tools
	select {
	case t = <-f.tools:
	default:
		t = new(tools)
	}
	err := use(t)
	select {
	case f.tools <- t:
	default:
	}
	return err
}

// idleScratch limits idle scratch memory: about a tile for each of a few goroutines.
const idleScratch = 24 << 20

// scratch is the process's memory for payloads and for tiles being decoded. Its limit is half of the memory that the
// process may use; the other half is for outputs.
var scratch = sync.OnceValue(func() *mem.Pool {
	limit := int64(1 << 30)
	if l := mem.Limit(); l > 0 {
		limit = max(128<<20, l/2)
	}
	return mem.NewPool(limit).Keep(idleScratch)
})

// room takes n bytes from scratch, and waits until they are free. To avoid deadlock, a caller must return its memory
// before it takes more.
func (t *tile) room(ctx context.Context, n int64) (*mem.Buffer, error) {
	if limit := scratch().Limit(); n > limit {
		return nil, t.errorf("%d bytes to decode %d × %d pixels: %w of %d", n, t.entry.sw, t.entry.sh, mem.ErrBudget, limit)
	}
	b, err := scratch().Get(ctx, int(min(coarse(n), scratch().Limit())))
	if err != nil {
		return nil, t.errorf("%w", err)
	}
	return b, nil
}

// coarse rounds a size up to a quarter of its power of two. Payloads differ a little from tile to tile;
// rounding lets the memory of one serve the next.
func coarse(n int64) int64 {
	step := int64(1) << max(0, bits.Len64(uint64(n))-3)
	return (n + step - 1) &^ (step - 1)
}

// payloadBytes returns how much of the payload to read: for raw pixels, no more than the pixels need.
func (t *tile) payloadBytes() (int64, error) {
	if t.kind.compression == None {
		return min(t.PayloadBytes, t.bytes), nil
	}
	if most := 2*t.bytes + 1<<20; t.PayloadBytes > most {
		return 0, t.errorf("claims %d bytes of %s for %d bytes of pixels (at most %d make sense)", t.PayloadBytes, t.kind.compression, t.bytes, most)
	}
	return t.PayloadBytes, nil
}

// readBytes returns the memory in bytes that reading a tile needs in addition to its pixels.
func (t *tile) readBytes() (int64, error) {
	n, err := t.payloadBytes()
	if err != nil || t.kind.compression == None {
		return 0, err
	}
	return n + t.workBytes(), nil
}

// load fills dst with all pixels.
func (t *tile) load(ctx context.Context, dst []byte) error {
	n, err := t.readBytes()
	if err != nil {
		return err
	}
	if n == 0 {
		return t.read(ctx, dst, 0, nil)
	}
	b, err := t.room(ctx, n)
	if err != nil {
		return err
	}
	defer b.Release()
	return t.read(ctx, dst, 0, b.B)
}

// read fills dst with the pixels from byte from on, using readBytes of other memory. It decodes the whole
// tile, unless it is stored uncompressed.
func (t *tile) read(ctx context.Context, dst []byte, from int64, work []byte) error {
	n, err := t.payloadBytes()
	if err != nil {
		return err
	}
	if t.kind.compression == None {
		have := dst[:max(0, min(int64(len(dst)), n-from))]
		if err := t.f.read(ctx, have, t.Payload+from); err != nil {
			return t.errorf("%w", err)
		}
		clear(dst[len(have):])
		return nil
	}
	payload := work[:n]
	if err := t.f.read(ctx, payload, t.Payload); err != nil {
		return t.errorf("%w", err)
	}
	return t.decode(ctx, dst, payload, work[n:])
}

// workBytes returns the memory in bytes that decoding needs in addition to payload and pixels, for samples whose high
// and low bytes are stored apart.
func (t *tile) workBytes() int64 {
	if t.kind.compression == Zstd1 && t.kind.pixel.Elem().Size() == 2 {
		return t.bytes
	}
	return 0
}

// decode fills dst with the pixels of a payload, which it decodes in work.
func (t *tile) decode(ctx context.Context, dst, payload, work []byte) error {
	n := 0
	err := t.f.borrow(func(o *tools) (err error) {
		switch t.kind.compression {
		case None:
			n = copy(dst, payload)
		case Zstd0:
			n, err = decodeZstd(ctx, o, dst, payload)
		case Zstd1:
			n, err = t.decodeZstd1(ctx, o, dst, payload, work)
		case JPEG:
			n, err = t.decodeJPEG(ctx, o, dst, payload)
		case LZW:
			n = len(dst)
			format := tilecodec.Format{Compression: tilecodec.LZW, Type: dtype.Uint8, Width: len(dst), Height: 1}
			err = format.Decode(ctx, &o.tiff, dst, payload, 0)
		case JPEGXR:
			n, err = t.decodeJPEGXR(ctx, o, dst, payload)
		default:
			err = errors.New("is not supported")
		}
		return err
	})
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return t.errorf("%s: %w", t.kind.compression, err)
	}
	clear(dst[n:])
	return nil
}

// surplus is the maximum number of bytes that a frame may hold beyond a tile. They are dropped.
const surplus = 256 << 10

// unpack decodes a Zstandard frame, to dst unless it holds more.
func (o *tools) unpack(ctx context.Context, dst, src []byte) ([]byte, error) {
	o.zstd.Bind(ctx)
	n, err := o.zstd.Prefix(dst, src, len(dst))
	if errors.Is(err, unzstd.ErrTooLong) {
		dst = make([]byte, len(dst)+surplus)
		n, err = o.zstd.Prefix(dst, src, len(dst))
	}
	return dst[:n], err
}

func decodeZstd(ctx context.Context, o *tools, dst, src []byte) (int, error) {
	out, err := o.unpack(ctx, dst, src)
	if err != nil || len(out) == 0 || &out[0] == &dst[0] {
		return len(out), err
	}
	return copy(dst, out), nil
}

// decodeZstd1 decodes a header, of which the first byte is its length, and a frame. With hi-lo packing that holds the
// low bytes of all samples, then the high ones.
func (t *tile) decodeZstd1(ctx context.Context, o *tools, dst, src, work []byte) (int, error) {
	switch {
	case len(src) >= 1 && src[0] == 1:
		return decodeZstd(ctx, o, dst, src[1:])
	case len(src) < 3 || src[0] != 3:
		return 0, fmt.Errorf("its header begins with % x (must be 01, or 03 01 and a byte)", src[:min(len(src), 1)])
	case src[1] != 1:
		return 0, fmt.Errorf("its header has a chunk of type %d (must be 1)", src[1])
	case src[2]&1 == 0:
		return decodeZstd(ctx, o, dst, src[3:])
	case t.kind.pixel.Elem().Size() != 2:
		return 0, fmt.Errorf("hi-lo packing of %s (must be of 16 bits)", t.kind.pixel)
	}
	planes, err := o.unpack(ctx, work[:len(dst)], src[3:])
	if err != nil {
		return 0, err
	}
	half := len(planes) / 2
	n := min(half, len(dst)/2)
	shuffle.Join(dst, planes, 2, n, half)
	return 2 * n, nil
}

func (t *tile) decodeJPEG(ctx context.Context, o *tools, dst, src []byte) (int, error) {
	if t.kind.pixel != Gray8 && t.kind.pixel != Bgr24 {
		return 0, fmt.Errorf("%s pixels (must be Gray8 or Bgr24)", t.kind.pixel)
	}
	samples := t.kind.pixel.Samples()
	rows, err := o.jpeg.Decode(ctx, dst, nil, src,
		jpeg.Config{Width: int(t.entry.sw), Height: int(t.entry.sh), Components: samples, Color: jpeg.ToRGB})
	n := rows * int(t.entry.sw) * samples
	if samples == 3 {
		for i := 0; i+2 < n; i += 3 {
			dst[i], dst[i+2] = dst[i+2], dst[i]
		}
	}
	return n, err
}
