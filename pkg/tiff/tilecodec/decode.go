package tilecodec

import (
	"context"
	"errors"
	"fmt"

	"strata/pkg/zarr/codec/inflate"
	"strata/pkg/zarr/codec/unxz"
	"strata/pkg/zarr/codec/unzstd"
)

// Scratch holds the working memory of decoders and encoders. It grows as needed and is reused. The zero value
// is ready; only one goroutine at a time may use it.
type Scratch struct {
	dec    decoders
	enc    encoders
	masks  sumMasks
	buffer []byte // of a tile as it is stored, but not compressed, where that cannot lie in the tile decoded
	line   []byte // of a row
	turned []byte // a stored tile with its bits in order
}

// decoders are allocated when they are first used.
type decoders struct {
	lzw  *lzwDecoder
	zstd *unzstd.Decoder
	jpeg jpegDecoder
}

// room returns the first n bytes of *b, which is made larger when it must be.
func room(b *[]byte, n int) []byte {
	if cap(*b) < n {
		*b = make([]byte, n)
	}
	return (*b)[:n]
}

// made returns *p, allocating it if necessary.
func made[T any](p **T) *T {
	if *p == nil {
		*p = new(T)
	}
	return *p
}

// decodePiece is the number of bytes converted between two checks of the context.
const decodePiece = 256 << 10

// Decode fills dst, of [Format.Bytes], with the samples of the stored tile src, in native byte order. If src
// ends early but has at least minRows rows, the others become 0; with fewer rows it is an error. Data behind
// a complete tile are ignored. It returns the error of ctx when that ends. With an error, dst may be partly
// filled.
func (f *Format) Decode(ctx context.Context, s *Scratch, dst, src []byte, minRows int) error {
	if err := f.Check(); err != nil {
		return err
	}
	if len(dst) != f.Bytes() {
		return fmt.Errorf("%d bytes of memory for a tile of %d", len(dst), f.Bytes())
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	rows, err := f.decode(ctx, s, dst, src)
	if err != nil {
		return err
	}
	if rows < min(minRows, f.rows()) {
		return fmt.Errorf("the data end after %d of %d rows (%d bytes stored)", rows, min(minRows, f.rows()), len(src))
	}
	clear(dst[rows*f.row():])
	return nil
}

// decode returns how many rows of dst it has filled.
func (f *Format) decode(ctx context.Context, s *Scratch, dst, src []byte) (rows int, err error) {
	switch f.family() {
	case JPEG:
		return f.decodeJPEG(ctx, s, dst, src)
	case JPEG2000:
		return f.decodeJPEG2000(dst, src)
	}
	if f.FillOrder == fillOrderLowest {
		turned := room(&s.turned, len(src))
		reverseBits(turned, src)
		src = turned
	}
	ycc := f.ycc()
	if f.family() != None {
		// The samples are decompressed to their place, or, if they are smaller then, to the end of it.
		into := dst[max(0, len(dst)-f.storedRow()*f.rows()):]
		if ycc {
			into = room(&s.buffer, f.yccBytes())
		}
		n, err := f.decompress(ctx, s, into, src)
		if err != nil {
			return 0, err
		}
		src = into[:n]
	}
	if !ycc {
		return f.convert(ctx, s, dst, src)
	}
	if f.predictor() != PredictorNone { // without subsampling
		if rows, err = f.convert(ctx, s, dst, src); err == nil {
			rgb(dst[:rows*f.row()])
		}
		return rows, err
	}
	return f.decodeYCC(ctx, dst, src)
}

// decompress undoes the compression and returns the number of bytes in dst.
func (f *Format) decompress(ctx context.Context, s *Scratch, dst, src []byte) (n int, err error) {
	switch f.family() {
	case LZW:
		return made(&s.dec.lzw).decode(ctx, dst, src)
	case PackBits:
		return decodePackBits(ctx, dst, src)
	case Deflate:
		return inflate.ZlibPrefix(ctx, dst, src)
	case LZMA:
		if n, err = unxz.XZ(ctx, dst, src); err != nil && !errors.Is(err, ctx.Err()) {
			err = fmt.Errorf("LZMA: %w", err)
		}
		return n, err
	default: // Zstd
		d := made(&s.dec.zstd)
		d.Bind(ctx)
		return d.Prefix(dst, src, len(dst))
	}
}

// convert converts the bytes of src to rows of samples and returns their number. src may be dst or, if its
// rows are shorter, lie at its end.
func (f *Format) convert(ctx context.Context, s *Scratch, dst, src []byte) (rows int, err error) {
	row, stored, predictor := f.row(), f.storedRow(), f.predictor()
	rows = min(len(src)/stored, f.rows())
	if predictor == PredictorNone && !f.packed() {
		return rows, f.copy(ctx, dst[:rows*row], src[:rows*row])
	}
	size := f.Type.Size()
	switch predictor {
	case PredictorHorizontal:
		s.masks.set(size, f.samples()*size, f.swap())
	case PredictorFloat:
		s.masks.set(1, f.samples(), false)
	}
	line, look := room(&s.line, row), 0
	for i := range rows {
		if i*row >= look {
			if err := ctx.Err(); err != nil {
				return 0, err
			}
			look += decodePiece
		}
		to, from := dst[i*row:(i+1)*row], src[i*stored:(i+1)*stored]
		switch predictor {
		case PredictorHorizontal:
			sumRow(to, from, &s.masks)
		case PredictorFloat:
			joinRow(to, from, line, size, &s.masks)
		default:
			packed := line[:copy(line, from)]
			if f.Bits == 24 {
				widenRow(to, packed, f.Type, f.BigEndian)
			} else {
				unpackRow(to, packed, f.Bits)
			}
		}
	}
	return rows, nil
}

// copy brings samples that need at most their bytes swapped to dst, which may be src.
func (f *Format) copy(ctx context.Context, dst, src []byte) error {
	if len(src) == 0 || !f.swap() && &dst[0] == &src[0] {
		return nil
	}
	for len(src) > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		n := min(len(src), decodePiece)
		toNative(dst[:n], src[:n], f.Type.SwapSize(), f.swap())
		dst, src = dst[n:], src[n:]
	}
	return nil
}
