package codec

import (
	"encoding/binary"
	"errors"
	"fmt"

	"strata/pkg/zarr/codec/inflate"
)

// ErrWhole is wrapped by errors about chunks and chains without [Pieces]: only [Chain.Decode] can decode
// them.
var ErrWhole = errors.New("is not decoded in pieces")

// Pieces describes how to decode a stored chunk elsewhere, as on a GPU: compressed streams, each of which
// decodes independently to a range of the chunk, followed by unshuffling of the whole. Headers and checksums
// of the stored bytes have been verified, the content of the streams has not.
type Pieces struct {
	Size int // bytes of the decoded chunk, which List covers, each byte once
	List []Stream

	Shuffle  BloscShuffle // how the elements of a block were reordered, never AutoShuffle
	Typesize int          // bytes of an element, of Shuffle
	Block    int          // bytes of a block, of which the last may be shorter, of Shuffle
}

// Stream is a range of stored bytes that is decoded independently.
type Stream struct {
	Format   StreamFormat
	At, Len  int // of the stored bytes
	To, Size int // of the decoded chunk

	Sum  SumKind // of the decoded bytes; decoders of streams do not check it
	Want uint32  // expected value of the sum
}

// StreamFormat names the compression of a stream.
type StreamFormat int

// Stream formats: uncompressed; a Zstandard frame (RFC 8878); an LZ4 block; a DEFLATE stream (RFC 1951)
// without wrapper.
const (
	StreamStored StreamFormat = iota
	StreamZstd
	StreamLZ4
	StreamDeflate
)

// SumKind names the checksum of decoded data in a stream's wrapper.
type SumKind int

// Checksums: none; the CRC-32 of gzip; the Adler-32 of zlib; the lower half of Zstandard's XXH64 with seed 0.
const (
	SumNone SumKind = iota
	SumCRC32
	SumAdler32
	SumXXH64
)

// leastStream is the mean number of decoded bytes per stream below which a chunk is decoded as a whole:
// describing a stream to a device would cost more than decoding it.
const leastStream = 512

// mostStreams returns the maximum number of streams of a chunk.
func mostStreams(size int) int { return 16 + size/leastStream }

// MostStreams returns the maximum number of streams in a chunk of size decoded bytes.
func (c Chain) MostStreams(size int) int {
	for _, k := range c {
		switch k.(type) {
		case *bloscCodec, *zstdCodec:
			return mostStreams(size)
		}
	}
	return 1
}

// Streams returns the expected streams of a chunk of size decoded bytes if it is encoded as the metadata say:
// the format of compressed ones, their number, and the decoded length of the largest.
func (c Chain) Streams(size int) (f StreamFormat, n, largest int) {
	for _, k := range c {
		switch k := k.(type) {
		case *zstdCodec:
			return StreamZstd, 1, size
		case *lz4Codec:
			return StreamLZ4, 1, size
		case *deflateCodec:
			return StreamDeflate, 1, size
		case *bloscCodec:
			f := map[byte]StreamFormat{bloscLZ4: StreamLZ4, bloscZlib: StreamDeflate, bloscZstd: StreamZstd}[k.format()]
			if size < 1 {
				return f, 1, size
			}
			block, split := k.sizeBlocks(size)
			n, largest = 1+(size-1)/block, block
			if split {
				n *= k.typesize
				largest = max(block/k.typesize, size%block) // the last block is whole if it is shorter
			}
			return f, n, largest
		}
	}
	return StreamStored, 1, size
}

// Pieces finds the pieces of the stored chunk src of size decoded bytes and puts them into *p, whose List is
// reused. Errors report a fault of src, or wrap [ErrWhole].
func (c Chain) Pieces(p *Pieces, src []byte, size int) error {
	*p = Pieces{Size: size, List: p.List[:0], Shuffle: NoShuffle, Typesize: 1, Block: max(1, size)}
	if err := c.InPieces(); err != nil {
		return err
	}
	c, data, err := c.Verify(src)
	if err != nil {
		return err
	}
	at := cap(src) - cap(data) // data is a part of src
	src = data
	if len(c) > 0 {
		if s, ok := c[0].(*shuffleCodec); ok {
			if err := s.check(size); err != nil {
				return fmt.Errorf("%s: %w", s.Name(), err)
			}
			if s.size > 1 {
				p.Shuffle, p.Typesize = ByteShuffle, s.size
			}
			c = c[1:]
		}
	}
	if err := c.streams(p, src); err != nil {
		return err
	}
	for i := range p.List {
		p.List[i].At += at
	}
	return nil
}

// streams lists the streams of a chunk that is encoded by one compressor, or not at all.
func (c Chain) streams(p *Pieces, src []byte) error {
	if len(c) == 0 {
		if len(src) != p.Size {
			return fmt.Errorf("%d bytes, want %d", len(src), p.Size)
		}
		p.stored(0, 0, p.Size)
		return nil
	}
	err := c[0].(streamer).streams(p, src)
	if err != nil {
		return fmt.Errorf("%s: %w", c[0].Name(), err)
	}
	return nil
}

// streamer is a compressor whose output consists of streams.
type streamer interface {
	Codec
	streams(p *Pieces, src []byte) error
}

// InPieces returns nil if the chain's chunks can in general be decoded in pieces, and otherwise an error that
// wraps [ErrWhole]. Such a chain consists of numcodecs' shuffle, a compressor, and checksums, each optional.
func (c Chain) InPieces() error {
	c = c.Bare()
	if len(c) > 0 {
		if _, ok := c[0].(*shuffleCodec); ok {
			c = c[1:]
		}
	}
	for i, k := range c {
		if _, ok := k.(streamer); !ok || i < len(c)-1 {
			return fmt.Errorf("a chunk with codec %q %w", k.Name(), ErrWhole)
		}
	}
	if len(c) == 1 {
		if b, ok := c[0].(*bloscCodec); ok && b.cname == "blosclz" {
			return fmt.Errorf("a chunk of blosclz %w", ErrWhole)
		}
	}
	return nil
}

func (p *Pieces) add(s Stream) error {
	if s.Size == 0 {
		return fmt.Errorf("a stream of no bytes %w", ErrWhole)
	}
	if len(p.List) == mostStreams(p.Size) {
		return fmt.Errorf("a chunk of %d bytes in more than %d streams %w", p.Size, len(p.List), ErrWhole)
	}
	p.List = append(p.List, s)
	return nil
}

// stored adds n uncompressed bytes, which need no stream.
func (p *Pieces) stored(at, to, n int) {
	if n > 0 {
		p.List = append(p.List, Stream{At: at, Len: n, To: to, Size: n})
	}
}

func (z *zstdCodec) streams(p *Pieces, src []byte) error { return zstdStreams(p, src, 0, 0, p.Size) }

const zstdSkipMagic = 0x184d2a50 // of skippable frames, to …5f

// zstdStreams adds the frames of src, which lies at a place of the stored bytes and decodes
// to size bytes of the chunk.
func zstdStreams(p *Pieces, src []byte, at, to, size int) error {
	end, unknown := to+size, false
	for i := 0; i < len(src); {
		rest := src[i:]
		if len(rest) < 4 {
			return fmt.Errorf("%d bytes at byte %d are too few for a frame", len(rest), at+i)
		}
		switch m := binary.LittleEndian.Uint32(rest); {
		case m&^0xf == zstdSkipMagic:
			if len(rest) < 8 || int64(binary.LittleEndian.Uint32(rest[4:])) > int64(len(rest)-8) {
				return fmt.Errorf("skippable frame at byte %d is longer than the data", at+i)
			}
			i += 8 + int(binary.LittleEndian.Uint32(rest[4:]))
			continue
		case string(rest[:4]) != zstdMagic:
			return fmt.Errorf("magic number at byte %d is %08x, must be fd2fb528", at+i, m)
		}
		f, err := zstdFrameOf(rest)
		if err != nil {
			return fmt.Errorf("frame at byte %d: %w", at+i, err)
		}
		if unknown {
			return fmt.Errorf("a chunk of several frames, of which one does not say its size, %w", ErrWhole)
		}
		n := end - to
		if f.known {
			if f.size > uint64(n) {
				return fmt.Errorf("frame at byte %d: %w", at+i, errTooLong(size))
			}
			n = int(f.size)
		}
		unknown = !f.known
		s := Stream{Format: StreamZstd, At: at + i, Len: f.length, To: to, Size: n}
		if f.sum {
			s.Sum, s.Want = SumXXH64, binary.LittleEndian.Uint32(rest[f.length-4:])
		}
		if err := p.add(s); err != nil {
			return err
		}
		i += f.length
		to += n
	}
	if to != end {
		return fmt.Errorf("decodes to %d bytes, want %d", size-(end-to), size)
	}
	return nil
}

// zstdFrame holds the headers of a frame and of its blocks (RFC 8878, section 3.1.1).
type zstdFrame struct {
	length int    // with headers and checksum
	size   uint64 // decoded, if known
	known  bool
	sum    bool
}

func zstdFrameOf(src []byte) (f zstdFrame, err error) {
	if len(src) < 5 {
		return f, errShort(len(src))
	}
	flags := src[4]
	single, at := flags&0x20 != 0, 5
	f.sum = flags&4 != 0
	switch {
	case flags&8 != 0:
		return f, errors.New("a reserved bit of its header is set")
	case flags&3 != 0:
		return f, fmt.Errorf("a frame that needs a dictionary %w", ErrWhole)
	}
	window := uint64(0)
	if !single {
		if at == len(src) {
			return f, errShort(at)
		}
		window = 1 << (10 + src[at]>>3)
		window += window / 8 * uint64(src[at]&7)
		at++
	}
	n := [...]int{0, 2, 4, 8}[flags>>6]
	if single && n == 0 {
		n = 1
	}
	if len(src)-at < n {
		return f, errShort(len(src))
	}
	for i := n - 1; i >= 0; i-- {
		f.size = f.size<<8 | uint64(src[at+i])
	}
	if n == 2 {
		f.size += 256
	}
	f.known = n > 0
	at += n
	if single {
		window = f.size
	}
	if window > zstdMaxWindow {
		return f, fmt.Errorf("window of %d bytes (at most %d are accepted)", window, zstdMaxWindow)
	}
	limit := int(min(max(window, 1<<10), zstdBlockMax))
	most := uint64(0) // that the blocks can decode to
	for last := false; !last; {
		if len(src)-at < 3 {
			return f, errShort(len(src))
		}
		header := int(src[at]) | int(src[at+1])<<8 | int(src[at+2])<<16
		last = header&1 != 0
		length, content := header>>3, header>>3
		if length > limit {
			return f, fmt.Errorf("block of %d bytes at byte %d (at most %d)", length, at, limit)
		}
		switch header >> 1 & 3 {
		case 1: // one byte, repeated
			length = 1
		case 2:
			content = limit
		case 3:
			return f, fmt.Errorf("reserved type of block at byte %d", at)
		}
		at += 3
		if length > len(src)-at {
			return f, errShort(len(src))
		}
		at += length
		most += uint64(content)
	}
	if f.known && f.size > most {
		return f, fmt.Errorf("it says that it has %d bytes, its blocks have at most %d", f.size, most)
	}
	if f.sum {
		if at += 4; at > len(src) {
			return f, errShort(len(src))
		}
	}
	f.length = at
	return f, nil
}

func (l *lz4Codec) streams(p *Pieces, src []byte) error {
	if len(src) < 5 {
		return errShort(len(src))
	}
	if n := int(int32(binary.LittleEndian.Uint32(src))); n != p.Size {
		return fmt.Errorf("size %d at byte 0, want %d", n, p.Size)
	}
	return p.add(Stream{Format: StreamLZ4, At: 4, Len: len(src) - 4, Size: p.Size})
}

func (d *deflateCodec) streams(p *Pieces, src []byte) error {
	if d.wrapper == "zlib" {
		if len(src) > 0 && src[len(src)-1] == 0 { // zeros behind the stream, or a checksum that ends with one: the decoder knows
			return fmt.Errorf("zlib data that end with a zero byte %w", ErrWhole)
		}
		return zlibStream(p, src, 0, 0, p.Size)
	}
	at, err := inflate.GzipHeader(src)
	if err != nil {
		return err
	}
	n := len(src) - at - 8
	if n < 1 {
		return errShort(len(src))
	}
	tail := src[at+n:]
	if got := binary.LittleEndian.Uint32(tail[4:]); int64(got) != int64(p.Size) {
		// The last member's size: there are several, or damage, which the decoder names.
		return fmt.Errorf("a chunk of %d bytes whose last member has %d %w", p.Size, got, ErrWhole)
	}
	return p.add(Stream{Format: StreamDeflate, At: at, Len: n, Size: p.Size, Sum: SumCRC32, Want: binary.LittleEndian.Uint32(tail)})
}

// zlibStream adds the zlib stream src, which lies at a place of the stored bytes.
func zlibStream(p *Pieces, src []byte, at, to, size int) error {
	head, err := inflate.ZlibHeader(src)
	if err != nil {
		return err
	}
	n := len(src) - head - 4
	if n < 1 {
		return errShort(at + len(src))
	}
	return p.add(Stream{Format: StreamDeflate, At: at + head, Len: n, To: to, Size: size, Sum: SumAdler32, Want: binary.BigEndian.Uint32(src[head+n:])})
}

func (b *bloscCodec) streams(p *Pieces, src []byte) error {
	f, err := openBlosc(src, p.Size)
	if err != nil {
		return err
	}
	if f.size == 0 {
		return nil
	}
	if f.flags&bloscStored != 0 {
		p.stored(bloscHeader, 0, f.size)
		return nil
	}
	if how := f.shuffled(f.blocksize); how != NoShuffle {
		if p.Shuffle != NoShuffle {
			return fmt.Errorf("a chunk that is shuffled twice %w", ErrWhole)
		}
		p.Shuffle, p.Typesize, p.Block = how, f.typesize, f.blocksize
	}
	if f.format() == bloscBloscLZ {
		return fmt.Errorf("a chunk of blosclz %w", ErrWhole)
	}
	if f.blocks > mostStreams(f.size) {
		return fmt.Errorf("a chunk of %d bytes in %d blocks %w", f.size, f.blocks, ErrWhole)
	}
	for j := range f.blocks {
		from, to := f.block(j)
		err := f.eachStream(j, to-from, func(i, streams, at, length int) error {
			n := (to - from) / streams
			out := from + i*n
			switch stream := f.src[at : at+length]; {
			case length == n:
				return p.add(Stream{At: at, Len: n, To: out, Size: n})
			case f.format() == bloscZstd:
				return zstdStreams(p, stream, at, out, n)
			case f.format() == bloscZlib:
				return zlibStream(p, stream, at, out, n)
			case length == 0:
				return errShort(at)
			}
			return p.add(Stream{Format: StreamLZ4, At: at, Len: length, To: out, Size: n})
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Check compares a checksum of the decoded stream, computed elsewhere, with the stored one.
func (s Stream) Check(got uint32) error {
	if s.Sum != SumNone && got != s.Want {
		return fmt.Errorf("checksum of the data is %08x, of the stream at byte %d %08x", got, s.At, s.Want)
	}
	return nil
}
