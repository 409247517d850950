package codec

import (
	"encoding/binary"
	"fmt"
)

// Packing describes how to encode chunks of one length elsewhere, as on a GPU: how the chunk's blocks are
// shuffled, and which parts of the shuffled chunk become separately encoded streams. [Packing.Lay] and
// [Packing.Finish] assemble the stored chunk. It conforms to the chain's format but differs from the bytes
// that [Chain.Encode] makes.
type Packing struct {
	Size   int          // bytes of a chunk
	Format StreamFormat // of all streams: StreamZstd or StreamLZ4
	List   []Stream     // Format, and To and Size: the range of the shuffled chunk

	Shuffle  BloscShuffle // ByteShuffle or NoShuffle
	Typesize int          // bytes of an element, of Shuffle
	Block    int          // bytes of a block, of which the last may be shorter, of Shuffle

	blosc *bloscFrame // of a Blosc container
	sums  []*checksumCodec
	ahead int // bytes before the stream of numcodecs' LZ4
}

// Packing returns how to encode chunks of size bytes as streams, or an error that wraps [ErrWhole]. Supported
// are zstd, lz4, and Blosc of these two without shuffle or with byte shuffle, optionally preceded by
// numcodecs' shuffle and followed by checksums. The encoder of the streams decides about levels.
func (c Chain) Packing(size int) (*Packing, error) {
	p := &Packing{Size: size, Shuffle: NoShuffle, Typesize: 1, Block: max(1, size)}
	rest := c.Bare()
	for _, k := range c[len(rest):] {
		p.sums = append(p.sums, k.(*checksumCodec))
	}
	if len(rest) > 0 {
		if s, ok := rest[0].(*shuffleCodec); ok {
			if err := s.check(size); err != nil {
				return nil, fmt.Errorf("%s: %w", s.Name(), err)
			}
			if s.size > 1 {
				p.Shuffle, p.Typesize = ByteShuffle, s.size
			}
			rest = rest[1:]
		}
	}
	if len(rest) != 1 || size < 1 {
		return nil, fmt.Errorf("a chunk of %d bytes with %d codecs %w", size, len(c), ErrWhole)
	}
	p.List = []Stream{{Size: size}}
	switch k := rest[0].(type) {
	case *zstdCodec:
		if k.checksum {
			return nil, fmt.Errorf("zstd with a checksum %w", ErrWhole)
		}
		p.Format = StreamZstd
	case *lz4Codec:
		if size > lz4MaxSize {
			return nil, fmt.Errorf("chunk of %d bytes (LZ4 holds at most %d)", size, lz4MaxSize)
		}
		p.Format, p.ahead = StreamLZ4, 4
	case *bloscCodec:
		if err := k.packing(p); err != nil {
			return nil, err
		}
	default:
		return nil, fmt.Errorf("codec %q %w", k.Name(), ErrWhole)
	}
	for i := range p.List {
		p.List[i].Format = p.Format
	}
	return p, nil
}

// packing cuts a chunk like Encode.
func (b *bloscCodec) packing(p *Packing) error {
	switch b.cname {
	case "lz4":
		p.Format = StreamLZ4
	case "zstd":
		p.Format = StreamZstd
	default:
		return fmt.Errorf("blosc of %s %w", b.cname, ErrWhole)
	}
	switch {
	case b.clevel == 0 || p.Size < bloscMinSplit:
		return fmt.Errorf("blosc that does not compress %w", ErrWhole)
	case b.resolved() == BitShuffle:
		return fmt.Errorf("blosc with bit shuffle %w", ErrWhole)
	case p.Shuffle != NoShuffle:
		return fmt.Errorf("a chunk that is shuffled twice %w", ErrWhole)
	case p.Size > bloscMaxSize:
		return fmt.Errorf("chunk of %d bytes (Blosc holds at most %d)", p.Size, bloscMaxSize)
	}
	blocksize, split := b.sizeBlocks(p.Size)
	f := &bloscFrame{typesize: b.typesize, size: p.Size, blocksize: blocksize, flags: b.format() << bloscFormatShift, blocks: 1 + (p.Size-1)/blocksize}
	if b.resolved() == ByteShuffle {
		f.flags |= bloscByteShuffled
	}
	if !split {
		f.flags |= bloscDontSplit
	}
	p.blosc, p.List = f, p.List[:0]
	if p.Shuffle = f.shuffled(blocksize); p.Shuffle != NoShuffle {
		p.Typesize, p.Block = f.typesize, f.blocksize
	}
	for j := range f.blocks {
		from, to := f.block(j)
		streams := f.streams(to - from)
		n := (to - from) / streams
		for i := range streams {
			p.List = append(p.List, Stream{To: from + i*n, Size: n})
		}
	}
	if len(p.List) > mostStreams(p.Size) {
		return fmt.Errorf("a chunk of %d bytes in %d streams %w", p.Size, len(p.List), ErrWhole)
	}
	return nil
}

// Layout lists the parts of a stored chunk.
type Layout struct {
	Bytes int   // of the stored chunk
	At    []int // where the content of each stream goes
	// Plain marks the streams that are stored uncompressed, from the shuffled chunk, because they do not
	// shrink. Whole means that the container holds the unshuffled chunk itself, at At[0].
	Plain []bool
	Whole bool
}

// Bound returns the maximum size in bytes of a stored chunk. stream returns the maximum length of a stream of n decoded
// bytes.
func (p *Packing) Bound(stream func(n int) int) int {
	n := p.ahead + 4*len(p.sums)
	if p.blosc != nil {
		return n + bloscHeader + p.Size
	}
	for _, s := range p.List {
		n += stream(s.Size)
	}
	return n
}

// Lay computes the layout of a stored chunk whose streams have the given lengths.
func (p *Packing) Lay(l *Layout, lengths []int64) {
	before := 0
	for _, k := range p.sums {
		if k.atStart {
			before += 4
		}
	}
	*l = Layout{At: l.At[:0], Plain: l.Plain[:0]}
	at := before + p.ahead
	if p.blosc != nil {
		at += bloscHeader + 4*p.blosc.blocks
	}
	for i, s := range p.List {
		n := int(lengths[i])
		plain := p.blosc != nil && n >= s.Size
		if plain {
			n = s.Size
		}
		if p.blosc != nil {
			at += 4
		}
		l.At, l.Plain = append(l.At, at), append(l.Plain, plain)
		at += n
	}
	if p.blosc != nil && at-before >= bloscHeader+p.Size {
		l.Whole, l.At = true, append(l.At[:0], before+bloscHeader)
		at = before + bloscHeader + p.Size
	}
	l.Bytes = at + 4*len(p.sums) - before
}

// Finish writes the headers and checksums of the stored chunk b. l is the layout that Lay has computed, lengths the
// lengths given to Lay.
func (p *Packing) Finish(b []byte, l *Layout, lengths []int64) {
	from, to := 0, len(b)
	for _, k := range p.sums {
		if k.atStart {
			from += 4
		} else {
			to -= 4
		}
	}
	if p.ahead > 0 {
		binary.LittleEndian.PutUint32(b[from:], uint32(p.Size))
	}
	if p.blosc != nil {
		p.finishBlosc(b[from:to], from, l, lengths)
	}
	for _, k := range p.sums {
		sum := k.sum(b[from:to])
		if k.atStart {
			from -= 4
			binary.LittleEndian.PutUint32(b[from:], sum)
		} else {
			binary.LittleEndian.PutUint32(b[to:], sum)
			to += 4
		}
	}
}

// finishBlosc writes the header of the container, which begins at the given byte of the stored chunk, the
// offsets of its blocks and the lengths of its streams.
func (p *Packing) finishBlosc(data []byte, begin int, l *Layout, lengths []int64) {
	f := *p.blosc
	if l.Whole {
		f.flags |= bloscStored
		f.putHeader(data)
		return
	}
	f.putHeader(data)
	i := 0
	for j := range f.blocks {
		from, to := f.block(j)
		binary.LittleEndian.PutUint32(data[bloscHeader+4*j:], uint32(l.At[i]-4-begin))
		for range f.streams(to - from) {
			n := int(lengths[i])
			if l.Plain[i] {
				n = p.List[i].Size
			}
			binary.LittleEndian.PutUint32(data[l.At[i]-4-begin:], uint32(n))
			i++
		}
	}
}
