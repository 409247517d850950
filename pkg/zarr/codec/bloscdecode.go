package codec

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"sync"

	"strata/pkg/mem"
	"strata/pkg/work"
	"strata/pkg/zarr/codec/inflate"
	"strata/pkg/zarr/codec/shuffle"
)

// flags in byte 2 of the header
const (
	bloscByteShuffled = 1 << 0
	bloscStored       = 1 << 1 // the data follow the header as they are
	bloscBitShuffled  = 1 << 2
	bloscReserved     = 1 << 3
	bloscDontSplit    = 1 << 4
	bloscFormatShift  = 5 // the compressor's format is in the upper three bits
)

// compressor formats; LZ4 HC writes format LZ4
const (
	bloscBloscLZ = 0
	bloscLZ4     = 1
	bloscSnappy  = 2
	bloscZlib    = 3
	bloscZstd    = 4
)

const (
	bloscVersion   = 2
	bloscMaxSplits = 16  // elements larger than this are never split
	bloscMinSplit  = 128 // streams shorter than this are never split
)

// bloscFrame is a container with a verified header.
type bloscFrame struct {
	src       []byte // the container, without what may follow it
	flags     byte
	typesize  int
	size      int // of the decoded data
	blocksize int
	blocks    int
}

// openBlosc checks the header against the length of the data and the size that
// is expected.
func openBlosc(src []byte, size int) (f bloscFrame, err error) {
	if len(src) < bloscHeader {
		return f, fmt.Errorf("%w (the header has %d bytes)", errShort(len(src)), bloscHeader)
	}
	if v := src[0]; v != bloscVersion {
		return f, fmt.Errorf("format version %d at byte 0 (must be %d)", v, bloscVersion)
	}
	encoded := signed(src[12:])
	f = bloscFrame{flags: src[2], typesize: int(src[3]), size: signed(src[4:]), blocksize: signed(src[8:])}
	switch {
	case f.flags&bloscReserved != 0:
		return f, fmt.Errorf("flags %#02x at byte 2 have a reserved bit set", f.flags)
	case f.typesize == 0:
		return f, errors.New("element size 0 at byte 3")
	case f.size != size:
		return f, fmt.Errorf("decoded size %d at byte 4, want %d", f.size, size)
	case encoded < bloscHeader || encoded > len(src):
		return f, fmt.Errorf("encoded size %d at byte 12, there are %d bytes", encoded, len(src))
	}
	f.src = src[:encoded]
	if size == 0 {
		return f, nil
	}
	if f.blocksize < 1 || f.blocksize > size {
		return f, fmt.Errorf("block size %d at byte 8 (must be 1 to %d)", f.blocksize, size)
	}
	f.blocks = 1 + (size-1)/f.blocksize
	if f.flags&bloscStored != 0 {
		if encoded != bloscHeader+size {
			return f, fmt.Errorf("encoded size %d at byte 12, want %d for stored data", encoded, bloscHeader+size)
		}
		return f, nil
	}
	switch format := f.format(); format {
	case bloscBloscLZ, bloscLZ4, bloscZlib, bloscZstd:
	case bloscSnappy:
		return f, errors.New("compressed with snappy, which is not supported")
	default:
		return f, fmt.Errorf("unknown compressor number %d at byte 2", format)
	}
	if f.blocks > (encoded-bloscHeader)/4 {
		return f, fmt.Errorf("%w (the offsets of %d blocks)", errShort(encoded), f.blocks)
	}
	return f, nil
}

func signed(b []byte) int { return int(int32(binary.LittleEndian.Uint32(b))) }

func (f *bloscFrame) format() byte { return f.flags >> bloscFormatShift }

// block returns the range of block j in the decoded data.
func (f *bloscFrame) block(j int) (from, to int) {
	return j * f.blocksize, min((j+1)*f.blocksize, f.size)
}

// shuffled returns how the elements of a block of n bytes were reordered.
func (f *bloscFrame) shuffled(n int) BloscShuffle {
	switch {
	case f.flags&bloscByteShuffled != 0:
		if f.typesize > 1 {
			return ByteShuffle
		}
	case f.flags&bloscBitShuffled != 0 && n >= f.typesize:
		return BitShuffle
	}
	return NoShuffle
}

// streams returns the number of streams in a block of n bytes. The last block, if it is shorter, is never
// split; the sizes matter for files that are older than the flag.
func (f *bloscFrame) streams(n int) int {
	if f.flags&bloscDontSplit != 0 || n != f.blocksize || f.typesize > bloscMaxSplits || n/f.typesize < bloscMinSplit {
		return 1
	}
	return f.typesize
}

// zstdSlack is the room behind its output that lets the Zstandard decoder copy whole words.
const zstdSlack = 16

// eachStream calls f for the streams of block j, of n decoded bytes, in order, with the offset and length of
// stream i in the container. All decode to the same length; one that already has that length is stored
// uncompressed.
func (f *bloscFrame) eachStream(j, n int, use func(i, streams, at, length int) error) error {
	at := signed(f.src[bloscHeader+4*j:])
	if at < bloscHeader+4*f.blocks || at > len(f.src) {
		return fmt.Errorf("block %d: offset %d at byte %d (must be %d to %d)", j, at, bloscHeader+4*j, bloscHeader+4*f.blocks, len(f.src))
	}
	streams := f.streams(n)
	if n%streams != 0 {
		return fmt.Errorf("block %d: %d bytes cannot be split in %d streams", j, n, streams)
	}
	for i := range streams {
		if len(f.src)-at < 4 {
			return fmt.Errorf("block %d, stream %d: %w", j, i, errShort(at))
		}
		length := signed(f.src[at:])
		if length < 0 || length > len(f.src)-at-4 {
			return fmt.Errorf("block %d, stream %d: length %d at byte %d, there are %d bytes", j, i, length, at, len(f.src)-at-4)
		}
		if err := use(i, streams, at+4, length); err != nil {
			return fmt.Errorf("block %d, stream %d at byte %d: %w", j, i, at+4, err)
		}
		at += 4 + length
	}
	return nil
}

// decodeBlock decodes block j to dst, which has its length. It does not use the capacity of dst beyond that.
func (f *bloscFrame) decodeBlock(s *Scratch, dst []byte, j int) error {
	if err := s.context().Err(); err != nil {
		return err
	}
	how := f.shuffled(len(dst))
	plain := dst[:len(dst):len(dst)]
	if how != NoShuffle {
		plain = room(&s.blosc.block, len(dst)+zstdSlack)[:len(dst)]
	}
	err := f.eachStream(j, len(dst), func(i, streams, at, length int) error {
		n := len(dst) / streams
		stream := f.src[at : at+length]
		out := plain[i*n : (i+1)*n : min((i+1)*n+zstdSlack, cap(plain))]
		if length == n {
			copy(out, stream)
			return nil
		}
		return f.decodeStream(s, out, stream)
	})
	if err != nil {
		return err
	}
	switch how {
	case ByteShuffle:
		shuffle.Unshuffle(dst, plain, f.typesize)
	case BitShuffle:
		shuffle.BitUnshuffle(dst, plain, f.typesize)
	}
	return nil
}

// decodeStream fills out exactly; its capacity may be overwritten.
func (f *bloscFrame) decodeStream(s *Scratch, out, stream []byte) (err error) {
	n := 0
	switch f.format() {
	case bloscLZ4:
		return lz4Block(s.context(), out[:len(out):len(out)], stream)
	case bloscZstd:
		n, err = s.decodeZstd(out[:cap(out)], stream, math.MaxInt)
	case bloscZlib:
		n, err = inflate.Zlib(s.context(), out, stream)
	case bloscBloscLZ:
		n, err = decodeBloscLZ(s.context(), out, stream)
	}
	if err == nil && n != len(out) {
		err = fmt.Errorf("decodes to %d bytes, want %d", n, len(out))
	}
	return err
}

// Decode fills dst: the container must hold exactly len(dst) bytes.
func (b *bloscCodec) Decode(s *Scratch, dst, src []byte) (int, error) {
	return len(dst), b.DecodeRange(s, dst, src, 0, len(dst))
}

// DecodeRange decodes the blocks that cover bytes [off, off+len(dst)) of the
// size bytes that the container must hold.
func (b *bloscCodec) DecodeRange(s *Scratch, dst, src []byte, off, size int) error {
	f, err := openBlosc(src, size)
	if err != nil {
		return err
	}
	end := off + len(dst)
	if off < 0 || end > size {
		return fmt.Errorf("range [%d, %d) of %d bytes", off, end, size)
	}
	if f.flags&bloscStored != 0 {
		copy(dst, f.src[bloscHeader+off:])
		return nil
	}
	if len(dst) == 0 {
		return nil
	}
	j, blocks := off/f.blocksize, 1+(end-1)/f.blocksize
	if blocks-j <= f.piece() {
		return f.decodeBlocks(s, dst, off, j, blocks)
	}
	return f.split(s, dst, off, f.piece())
}

// piece returns the number of blocks that one goroutine decodes at a time, which takes some tenths of a millisecond.
func (f *bloscFrame) piece() int { return max(1, segmentLength/4/f.blocksize) }

// split decodes the blocks that cover dst, from byte off, so many at a time, by as many goroutines as there are idle
// hands.
func (f bloscFrame) split(s *Scratch, dst []byte, off, each int) error {
	first, end := off/f.blocksize, 1+(off+len(dst)-1)/f.blocksize
	const decoder = 512 << 10
	return s.split(1+(end-first-1)/each, int64(decoder+2*min(f.blocksize, BlockRoom)), func(s *Scratch, i int) error {
		j := first + i*each
		return f.decodeBlocks(s, dst, off, j, min(j+each, end))
	})
}

// decodeBlocks decodes blocks j to last−1 to their parts of dst, which begins at byte off of the chunk.
func (f *bloscFrame) decodeBlocks(s *Scratch, dst []byte, off, j, last int) error {
	end := off + len(dst)
	first, _ := f.block(j)
	_, behind := f.block(last - 1)
	done, err := f.lend(s, first < off || behind > end)
	if err != nil {
		return err
	}
	defer done()
	for ; j < last; j++ {
		from, to := f.block(j)
		if off <= from && to <= end {
			if err := f.decodeBlock(s, dst[from-off:to-off], j); err != nil {
				return err
			}
			continue
		}
		whole := room(&s.blosc.whole, to-from)
		if err := f.decodeBlock(s, whole, j); err != nil {
			return err
		}
		first := max(from, off)
		copy(dst[first-off:], whole[first-from:min(to, end)-from])
	}
	return nil
}

// DecodeBlocks hands out block after block, or several that idle hands help to decode; of stored data, the data itself.
func (b *bloscCodec) DecodeBlocks(s *Scratch, src []byte, size int, emit func(off int, piece []byte) error) error {
	f, err := openBlosc(src, size)
	if err != nil {
		return err
	}
	done, err := f.lend(s, true)
	if err != nil {
		return err
	}
	defer done()
	var batch *mem.Buffer
	defer func() { batch.Release() }()
	for from := 0; from < size; {
		var piece []byte
		_, to := f.block(from / f.blocksize)
		if batch == nil {
			batch = f.batch(s, size-from)
		}
		switch {
		case f.flags&bloscStored != 0:
			piece = f.src[bloscHeader+from : bloscHeader+to]
		case batch != nil:
			piece = batch.B[:min(len(batch.B), size-from)]
			err = f.split(s, piece, from, f.piece())
		default:
			piece = room(&s.blosc.whole, to-from)
			err = f.decodeBlock(s, piece, from/f.blocksize)
		}
		if err != nil {
			return err
		}
		if err := emit(from, piece); err != nil {
			return err
		}
		from += len(piece)
	}
	return nil
}

// batch returns memory in which all goroutines that would decode the last left bytes can decode a piece each. It
// returns nil if only one goroutine would, or if there is no memory.
func (f *bloscFrame) batch(s *Scratch, left int) *mem.Buffer {
	const most = 16 << 20
	each := f.piece() * f.blocksize
	n := min((1+work.Idle(s.context()))*each, most, left) / each
	if n < 2 || f.blocksize > BlockRoom || f.flags&bloscStored != 0 {
		return nil
	}
	b, err := large().TryGet(n * each)
	if err != nil {
		return nil
	}
	return b
}

// large is the memory of all goroutines for blocks that are longer than BlockRoom.
var large = sync.OnceValue(func() *mem.Pool { return mem.NewPool(mem.Unplanned() / 2) })

func nothing() {}

// lend gives s buffers for long blocks until done is called: one for a compressed block, one if its elements were
// shuffled, and one for a decoded block if whole is set.
func (f *bloscFrame) lend(s *Scratch, whole bool) (done func(), err error) {
	if f.blocksize <= BlockRoom || f.flags&bloscStored != 0 {
		return nothing, nil
	}
	var n [2]int
	if f.shuffled(f.blocksize) != NoShuffle {
		n[0] = f.blocksize + zstdSlack
	}
	if whole {
		n[1] = f.blocksize
	}
	if n[0]+n[1] == 0 {
		return nothing, nil
	}
	b, err := large().Get(s.context(), n[0]+n[1])
	if err != nil {
		return nil, fmt.Errorf("blocks of %d bytes: %w", f.blocksize, err)
	}
	own := s.blosc
	s.blosc = bloscScratch{block: b.B[:n[0]:n[0]], whole: b.B[n[0]:]}
	return func() {
		s.blosc = own
		b.Release()
	}, nil
}

// bloscScratch has room for one block before unshuffling and one decoded block.
type bloscScratch struct {
	block, whole []byte
}
