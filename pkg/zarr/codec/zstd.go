package codec

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"strata/pkg/dtype"
	"strata/pkg/mem"
	"strata/pkg/zarr/codec/enzstd"
	"strata/pkg/zarr/codec/unzstd"
)

// zstdCodec writes and reads Zstandard frames (RFC 8878).
type zstdCodec struct {
	level    int
	checksum bool
}

const (
	zstdMinLevel = -131072
	zstdMaxLevel = 22
	// zstdMaxWindow is the greatest window that a frame may claim. libzstd's
	// strongest levels use 128 MiB.
	zstdMaxWindow = 512 << 20

	zstdBlockMax = 128 << 10 // the most that a block decodes to (RFC 8878, 3.1.1.2.4)
	zstdMagic    = "\x28\xb5\x2f\xfd"
)

// Zstd returns a Zstandard codec with a level of libzstd (-131072 to 22; 0 means 3; levels above 9 work as 9,
// see package enzstd). checksum adds a checksum to the frame.
func Zstd(level int, checksum bool) Codec { return &zstdCodec{level, checksum} }

func parseZstdV2(c *config, _ dtype.Type) Codec {
	return &zstdCodec{c.setting("level", zstdMinLevel, zstdMaxLevel, 1), c.flag("checksum")}
}

func parseZstdV3(c *config, _ dtype.Type) Codec {
	return &zstdCodec{c.setting("level", zstdMinLevel, zstdMaxLevel, 0), c.flag("checksum")}
}

func (z *zstdCodec) Name() string { return "zstd" }

func (z *zstdCodec) MetadataV2() (json.RawMessage, error) {
	// Frames say themselves whether they have a checksum, and tensorstore refuses to see it here.
	return metadataV2("zstd", map[string]any{"level": z.level})
}

func (z *zstdCodec) MetadataV3() (json.RawMessage, error) {
	return metadataV3("zstd", map[string]any{"level": z.level, "checksum": z.checksum})
}

// EncodedSize: a frame header of 6, a block header of 3, and per raw block of
// 128 KiB another 3.
func (z *zstdCodec) EncodedSize(n int) (lo, hi int) { return 9, mem.Sum(n, n>>8, 4096) }

// Decode reads one or several frames; checksums are verified where there are any.
func (z *zstdCodec) Decode(s *Scratch, dst, src []byte) (int, error) {
	if frames := z.frames(src, len(dst)); frames != nil {
		const decoder = 512 << 10
		err := s.split(len(frames), decoder, func(s *Scratch, i int) error {
			f := frames[i]
			n, err := s.decodeZstd(dst[f.To:f.To+f.Size:f.To+f.Size], src[f.At:f.At+f.Len], math.MaxInt)
			if err == nil && n != f.Size {
				err = fmt.Errorf("frame at byte %d decodes to %d bytes, want %d", f.At, n, f.Size)
			}
			return err
		})
		if err == nil {
			return len(dst), nil
		}
	}
	return s.decodeZstd(dst, src, math.MaxInt) // and say what is wrong
}

// frames returns the frames that src consists of if there are several worth decoding at the same time, and they say
// that they hold n bytes.
func (z *zstdCodec) frames(src []byte, n int) []Stream {
	if n < segmentLength/4 {
		return nil
	}
	if first, err := zstdFrameOf(src); err != nil || first.length == len(src) {
		return nil
	}
	p := Pieces{Size: n}
	if err := z.streams(&p, src); err != nil || len(p.List) < 2 {
		return nil
	}
	return p.List
}

// DecodePrefix decodes as many blocks as needed, or all of a frame with a checksum.
func (z *zstdCodec) DecodePrefix(s *Scratch, dst, src []byte, n int) error {
	got, err := s.decodeZstd(dst, src, n)
	if err == nil && got < n {
		err = fmt.Errorf("decodes to %d bytes, want %d", got, len(dst))
	}
	return err
}

func (z *zstdCodec) Encode(s *Scratch, dst, src []byte) ([]byte, error) {
	_, hi := z.EncodedSize(len(src))
	if cap(dst) < hi {
		dst = make([]byte, 0, hi)
	}
	if segments(len(src)) == 1 {
		return s.zstd.encoder().Encode(dst[:0], src, z.level, z.checksum), nil
	}
	return z.encodeSegments(s, dst, src)
}

// encodeSegments encodes a long chunk to one frame, in the memory of dst.
func (z *zstdCodec) encodeSegments(s *Scratch, dst, src []byte) ([]byte, error) {
	f := enzstd.Frame{Src: src, Level: z.level, Checksum: z.checksum, Length: segmentLength}
	p := parts{
		dst: f.AppendHeader(dst[:0]), n: f.Segments(), bound: f.Bound,
		encode: func(s *Scratch, dst []byte, i int) ([]byte, error) {
			return f.AppendSegment(s.zstd.encoder(), dst, i), nil
		},
		placed: func(i, _, _ int) error {
			f.Sum(i)
			return nil
		},
	}
	if err := p.join(s, int64(enzstd.Memory(z.level, len(src)))); err != nil {
		return nil, err
	}
	return f.AppendEnd(p.dst), nil
}

// zstdScratch keeps the decoder and the encoder.
type zstdScratch struct {
	decoder *unzstd.Decoder
	encode  *enzstd.Encoder
	planes  [bloscMaxSplits]enzstd.Trend // of the chunk that Blosc encodes
}

func (z *zstdScratch) encoder() *enzstd.Encoder {
	if z.encode == nil {
		z.encode = new(enzstd.Encoder)
	}
	return z.encode
}

// decodeZstd writes at most len(dst) bytes, whatever the frame header claims. It may end when need
// bytes are there.
func (s *Scratch) decodeZstd(dst, src []byte, need int) (int, error) {
	if s.zstd.decoder == nil {
		s.zstd.decoder = new(unzstd.Decoder)
	}
	s.zstd.decoder.Bind(s.context())
	n, err := s.zstd.decoder.Prefix(dst, src, need)
	if errors.Is(err, unzstd.ErrTooLong) {
		return 0, errTooLong(len(dst))
	}
	return n, err
}
