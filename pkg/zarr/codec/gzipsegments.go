package codec

import (
	"encoding/binary"
	"errors"
	"hash"
	"hash/adler32"
	"hash/crc32"

	"github.com/klauspost/compress/flate"
)

const (
	deflateWindow = 32 << 10 // bytes that matches reach back
	// deflateMemory is the approximate maximum memory of an encoder, in bytes: tables, window and tokens.
	deflateMemory = 2 << 20
)

// encodeSegments encodes a long chunk as one stream in the memory of dst. It uses a goroutine, with its own encoder,
// for each idle processor.
func (d *deflateCodec) encodeSegments(s *Scratch, dst, src []byte) ([]byte, error) {
	empty, err := s.gzip.encode(*d, dst, nil)
	if err != nil {
		return nil, err
	}
	sum, header := hash.Hash32(crc32.NewIEEE()), 10
	if d.wrapper == "zlib" {
		sum, header = adler32.New(), 2
	}
	n := segments(len(src))
	p := parts{
		dst: empty[:header], n: n,
		bound: func(i int) int { // stored blocks have 5 bytes each
			from := min(i*segmentLength, len(src))
			return header + from + from>>7 + 64*i
		},
		encode: func(s *Scratch, dst []byte, i int) ([]byte, error) {
			return s.gzip.encodeSegment(dst, src, d.level, i)
		},
		placed: func(i, _, _ int) error {
			_, err := sum.Write(src[i*segmentLength : min((i+1)*segmentLength, len(src))])
			return err
		},
	}
	if err := p.join(s, deflateMemory); err != nil {
		return nil, err
	}
	if d.wrapper == "zlib" {
		return binary.BigEndian.AppendUint32(p.dst, sum.Sum32()), nil
	}
	return binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(p.dst, sum.Sum32()), uint32(len(src))), nil
}

// encodeSegment appends segment i of src to dst. Its matches may refer back into segment i−1. Every segment but the
// last ends with an empty stored block, so that it ends at a whole byte.
func (g *gzipScratch) encodeSegment(dst, src []byte, level, i int) ([]byte, error) {
	w := g.bare[level]
	if w == nil {
		var err error
		if w, err = flate.NewWriter(nil, level); err != nil {
			return nil, err
		}
		if g.bare == nil {
			g.bare = map[int]*flate.Writer{}
		}
		g.bare[level] = w
	}
	from, to := i*segmentLength, min((i+1)*segmentLength, len(src))
	g.out.b = dst
	w.ResetDict(&g.out, src[max(0, from-deflateWindow):from])
	_, err := w.Write(src[from:to])
	if to < len(src) {
		err = errors.Join(err, w.Flush())
	} else {
		err = errors.Join(err, w.Close())
	}
	out := g.out.b
	g.out.b = nil
	w.ResetDict(nil, nil) // it would keep src alive
	return out, err
}
