package tilecodec

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/klauspost/compress/zlib"

	"strata/pkg/zarr/codec/enzstd"
)

// encoders are allocated when they are first used.
type encoders struct {
	lzw       *lzwEncoder
	zlib      *zlib.Writer
	zlibLevel int
	zlibOut   bytes.Buffer
	zstd      *enzstd.Encoder
	jpeg      jpegEncoder
}

// CheckEncode returns an error if tiles of the format cannot be encoded.
func (f *Format) CheckEncode() error {
	if err := f.Check(); err != nil {
		return err
	}
	family := f.family()
	switch {
	case family == LZMA || family == JPEG2000:
		return fmt.Errorf("compression %d can be read, not written", f.Compression)
	case f.packed():
		return fmt.Errorf("samples of %d bits can be read, not written (%s has %d)", f.Bits, f.Type, 8*f.Type.Size())
	case f.ycc():
		return fmt.Errorf("photometric interpretation 6 (YCbCr) with compression %d can be read, not written", f.Compression)
	case f.FillOrder == fillOrderLowest:
		return fmt.Errorf("fill order 2 can be read, not written")
	case family == Deflate && (f.Level < 0 || f.Level > 9):
		return fmt.Errorf("level %d of Deflate (must be 1 to 9, or 0 for %d)", f.Level, defaultZlib)
	case family == Zstd && f.Level > 22:
		return fmt.Errorf("level %d of Zstd (must be at most 22, or 0 for %d)", f.Level, defaultZstd)
	case family == JPEG && (f.Quality < 0 || f.Quality > 100):
		return fmt.Errorf("JPEG quality %d (must be 1 to 100, or 0 for %d)", f.Quality, defaultJPEG)
	}
	return nil
}

// Encode appends the stored form of the tile src to dst[:0] and returns it. src holds the samples in native
// byte order; it may have fewer rows than Height, as the last strip of an image does.
func (f *Format) Encode(s *Scratch, dst, src []byte) ([]byte, error) {
	if err := f.CheckEncode(); err != nil {
		return nil, err
	}
	row := f.row()
	if len(src) == 0 || len(src) > f.Bytes() || len(src)%row != 0 {
		return nil, fmt.Errorf("%d bytes of samples (must be rows of %d, at most %d)", len(src), row, f.rows())
	}
	dst = dst[:0]
	switch f.family() {
	case JPEG:
		return f.encodeJPEG(s, dst, src)
	case None:
		dst = slices.Grow(dst, len(src))[:len(src)]
		toNative(dst, src, f.Type.SwapSize(), f.swap())
		return dst, nil
	}
	src = f.prepare(s, src)
	switch f.family() {
	case LZW:
		return made(&s.enc.lzw).encode(dst, src), nil
	case PackBits:
		return appendPackBits(dst, src, row), nil
	case Deflate:
		return f.deflate(s, dst, src)
	default: // Zstd
		level := f.Level
		if level == 0 {
			level = defaultZstd
		}
		return made(&s.enc.zstd).Encode(dst, src, level, false), nil
	}
}

// prepare returns the samples of src as the compressor gets them: differences, and in the file's byte order. They may
// lie in s.
func (f *Format) prepare(s *Scratch, src []byte) []byte {
	size, row, predictor := f.Type.Size(), f.row(), f.predictor()
	if predictor == PredictorNone && !f.swap() {
		return src
	}
	out := room(&s.buffer, len(src))
	switch predictor {
	case PredictorNone:
		toNative(out, src, f.Type.SwapSize(), true)
	case PredictorHorizontal:
		s.masks.set(size, f.samples()*size, f.swap())
		for at := 0; at < len(src); at += row {
			differRow(out[at:at+row], src[at:at+row], &s.masks)
		}
	case PredictorFloat:
		s.masks.set(1, f.samples(), false)
		line := room(&s.line, row)
		for at := 0; at < len(src); at += row {
			splitRow(out[at:at+row], src[at:at+row], line, size, &s.masks)
		}
	}
	return out
}

func (f *Format) deflate(s *Scratch, dst, src []byte) ([]byte, error) {
	level := f.Level
	if level == 0 {
		level = defaultZlib
	}
	s.enc.zlibOut = *bytes.NewBuffer(dst)
	if s.enc.zlib == nil || s.enc.zlibLevel != level {
		w, err := zlib.NewWriterLevel(&s.enc.zlibOut, level)
		if err != nil {
			return nil, err
		}
		s.enc.zlib, s.enc.zlibLevel = w, level
	} else {
		s.enc.zlib.Reset(&s.enc.zlibOut)
	}
	_, err := s.enc.zlib.Write(src)
	if err == nil {
		err = s.enc.zlib.Close()
	}
	out := s.enc.zlibOut.Bytes()
	s.enc.zlibOut = bytes.Buffer{}
	return out, err
}
