package codec

import (
	"encoding/binary"
	"errors"
	"fmt"

	"strata/pkg/mem"
	"strata/pkg/zarr/codec/enzstd"
	"strata/pkg/zarr/codec/shuffle"
)

// format returns the number of the compressor.
func (b *bloscCodec) format() byte {
	switch b.cname {
	case "lz4", "lz4hc":
		return bloscLZ4
	case "zlib":
		return bloscZlib
	case "zstd":
		return bloscZstd
	}
	return bloscBloscLZ
}

// readOnly: BloscLZ exists to be read; LZ4 is better in every respect.
func (b *bloscCodec) readOnly() error {
	if b.cname == "blosclz" && b.clevel > 0 {
		return fmt.Errorf("blosclz %w (lz4 is as fast and smaller)", ErrReadOnly)
	}
	return nil
}

// splits reports whether blocks of a length are divided into streams, one per byte of an element. c-blosc
// never does that with zstd (but reads it); with byte planes it makes our encoder fast.
func (b *bloscCodec) splits(blocksize int) bool {
	planes := b.cname != "zstd" || b.resolved() == ByteShuffle && b.typesize > 1
	return planes && b.typesize <= bloscMaxSplits && blocksize/b.typesize >= bloscMinSplit
}

// sizeBlocks returns the block length for n bytes. It is chosen as c-blosc does: fitting the caches for the
// fast levels, larger for the strong ones, and a multiple of the element size.
func (b *bloscCodec) sizeBlocks(n int) (blocksize int, split bool) {
	const l1 = 32 << 10
	if n < b.typesize {
		return 1, false
	}
	blocksize = n
	if b.blocksize > 0 {
		blocksize = max(b.blocksize, bloscMinSplit)
	} else if n >= l1 {
		blocksize = l1 * [...]int{1, 2, 4, 8, 16, 16, 32, 32, 32, 32}[b.clevel] / 4
		if b.cname != "blosclz" && b.cname != "lz4" {
			blocksize *= 2
			if b.clevel == 9 {
				blocksize *= 2
			}
		}
	}
	if b.clevel > 0 && b.splits(blocksize) {
		if b.cname == "zstd" {
			blocksize = b.evenBlocks(n, blocksize)
		} else {
			// each stream up to 256 KiB, the block 64 KiB to 1 MiB
			blocksize = min(max(min(blocksize, 256<<10)*b.typesize, 64<<10), 1<<20)
		}
	}
	blocksize = min(blocksize, n)
	if blocksize > b.typesize {
		blocksize -= blocksize % b.typesize
	}
	return blocksize, b.splits(blocksize)
}

// evenBlocks returns a block length at which each byte plane fits a Zstandard block and the whole block fits the cache.
// If possible it divides n, so that no shorter block remains at the end, since a shorter block would not be split into
// byte planes.
func (b *bloscCodec) evenBlocks(n, blocksize int) int {
	if b.blocksize > 0 {
		return blocksize
	}
	most := min(zstdBlockMax*b.typesize, 1<<20)
	for blocks := 1 + (n-1)/most; blocks <= 2*(1+n/most); blocks++ {
		if n%(blocks*b.typesize) == 0 {
			return n / blocks
		}
	}
	return most
}

// EncodedSize returns the limits of the encoded size of n bytes. Data that do not shrink are stored behind the header;
// while they are compressed, the lengths of their streams need room too.
func (b *bloscCodec) EncodedSize(n int) (lo, hi int) {
	if n == 0 {
		return bloscHeader, bloscHeader
	}
	if n > bloscMaxSize { // nothing encodes it: any bound will do
		return bloscHeader, mem.Sum(n, n, bloscHeader)
	}
	f := b.frame(n)
	groups, _ := f.groups()
	return bloscHeader, f.bound(groups)
}

// frame returns the container of n bytes that Encode makes, without any content.
func (b *bloscCodec) frame(n int) bloscFrame {
	blocksize, split := b.sizeBlocks(n)
	f := bloscFrame{typesize: b.typesize, size: n, blocksize: blocksize, flags: b.format() << bloscFormatShift}
	if n > 0 {
		f.blocks = 1 + (n-1)/blocksize
	}
	switch b.resolved() {
	case ByteShuffle:
		f.flags |= bloscByteShuffled
	case BitShuffle:
		f.flags |= bloscBitShuffled
	}
	if !split {
		f.flags |= bloscDontSplit
	}
	return f
}

// groups returns the number of groups of blocks that are encoded independently, and how many blocks there are in each
// but the last.
func (f *bloscFrame) groups() (n, blocks int) {
	if segments(f.size) == 1 {
		return 1, f.blocks
	}
	blocks = max(1, segmentLength/f.blocksize)
	return 1 + (f.blocks-1)/blocks, blocks
}

// bound returns the maximum number of bytes in front of group i, including room for compressing the blocks in front of
// it.
func (f *bloscFrame) bound(i int) int {
	_, blocks := f.groups()
	before := min(i*blocks, f.blocks)
	streams := f.streams(f.blocksize)
	return bloscHeader + 4*f.blocks + min(before*f.blocksize, f.size) + 4*before*streams + i*streamBound(f.blocksize/streams)
}

// streamBound returns the additional room needed for trying to compress n bytes.
func streamBound(n int) int { return n>>6 + 1024 }

func (b *bloscCodec) Encode(s *Scratch, dst, src []byte) ([]byte, error) {
	if err := b.readOnly(); err != nil {
		return nil, err
	}
	if len(src) > bloscMaxSize {
		return nil, fmt.Errorf("chunk of %d bytes (Blosc holds at most %d)", len(src), bloscMaxSize)
	}
	_, hi := b.EncodedSize(len(src))
	if cap(dst) < hi {
		dst = make([]byte, hi)
	}
	f := b.frame(len(src))
	if b.clevel > 0 && len(src) >= bloscMinSplit {
		out, err := b.encodeGroups(s, dst[:bloscHeader+4*f.blocks], src, f)
		if err == nil {
			f.putHeader(out)
			return out, nil
		}
		if !errors.Is(err, errStored) {
			return nil, err
		}
	}
	f.flags |= bloscStored
	out := append(dst[:bloscHeader], src...)
	f.putHeader(out)
	return out, nil
}

// errStored says that a chunk is better stored as it is.
var errStored = errors.New("does not shrink")

// putHeader writes the header of the finished container out.
func (f *bloscFrame) putHeader(out []byte) {
	out[0], out[1], out[2], out[3] = bloscVersion, 1, f.flags, byte(f.typesize)
	binary.LittleEndian.PutUint32(out[4:], uint32(f.size))
	binary.LittleEndian.PutUint32(out[8:], uint32(f.blocksize))
	binary.LittleEndian.PutUint32(out[12:], uint32(len(out)))
}

// encodeGroups appends all blocks to out, which is the header and the table of their offsets, in the same memory.
func (b *bloscCodec) encodeGroups(s *Scratch, out, src []byte, f bloscFrame) ([]byte, error) {
	if n, _ := f.groups(); n > 1 {
		return b.joinGroups(s, out, src, f)
	}
	from := len(out)
	part, err := b.encodeBlocks(s, out[from:from], src, &f, out[bloscHeader:], 0, f.blocks)
	if err != nil {
		return nil, err
	}
	out = out[:from+len(part)]
	return out, f.place(out, 0, f.blocks, from, len(out))
}

// joinGroups is encodeGroups for several groups, which whoever is idle encodes.
func (b *bloscCodec) joinGroups(s *Scratch, out, src []byte, f bloscFrame) ([]byte, error) {
	n, each := f.groups()
	p := parts{
		dst: out, n: n, bound: f.bound,
		encode: func(s *Scratch, dst []byte, i int) ([]byte, error) {
			return b.encodeBlocks(s, dst, src, &f, out[bloscHeader:], i*each, min((i+1)*each, f.blocks))
		},
		placed: func(i, from, to int) error {
			return f.place(out, i*each, min((i+1)*each, f.blocks), from, to)
		},
	}
	err := p.join(s, b.memory(&f))
	return p.dst, err
}

// place completes the offsets of blocks j to end−1, which lie in bytes from to to of the container. It fails with
// errStored if these end behind where stored data would.
func (f *bloscFrame) place(container []byte, j, end, from, to int) error {
	for ; j < end; j++ {
		offset := container[bloscHeader+4*j:]
		binary.LittleEndian.PutUint32(offset, binary.LittleEndian.Uint32(offset)+uint32(from))
	}
	if to >= bloscHeader+f.size {
		return errStored
	}
	return nil
}

// memory returns about the most bytes that a goroutine holds that encodes blocks.
func (b *bloscCodec) memory(f *bloscFrame) int64 {
	stream := f.blocksize / f.streams(f.blocksize)
	n := f.blocksize // reordered
	switch b.cname {
	case "zlib":
		n += deflateMemory
	case "zstd":
		n += enzstd.Memory(b.zstdLevel(), stream)
	default:
		n += 1 << 20
	}
	return int64(n)
}

// encodeBlocks appends blocks j to end−1 to out, which is empty, in the same memory, and puts where they begin in out
// in the table of offsets. It fails with errStored when they alone are no shorter than src.
func (b *bloscCodec) encodeBlocks(s *Scratch, out, src []byte, f *bloscFrame, offsets []byte, j, end int) ([]byte, error) {
	s.zstd.planes = [bloscMaxSplits]enzstd.Trend{}
	for ; j < end; j++ {
		binary.LittleEndian.PutUint32(offsets[4*j:], uint32(len(out)))
		from, to := f.block(j)
		block := src[from:to]
		if how := f.shuffled(len(block)); how != NoShuffle {
			plain := room(&s.blosc.block, len(block))
			if how == ByteShuffle {
				shuffle.Shuffle(plain, block, f.typesize)
			} else {
				shuffle.BitShuffle(plain, block, f.typesize)
			}
			block = plain
		}
		streams := f.streams(len(block))
		n := len(block) / streams
		for i := range streams {
			stream := block[i*n : (i+1)*n]
			at := len(out)
			if at+4 > len(src) || at+4+n > cap(out) {
				return nil, errStored
			}
			out = out[:at+4]
			length, err := b.encodeStream(s, out[at+4:at+4:cap(out)], stream, i, streams > 1)
			if err != nil {
				return nil, err
			}
			if length == 0 || length >= n {
				// a stream of full length is a stored one
				length = copy(out[at+4:at+4+n], stream)
			}
			out = out[:at+4+length]
			binary.LittleEndian.PutUint32(out[at:], uint32(length))
		}
	}
	return out, nil
}

// encodeStream compresses src, stream i of its block, to the capacity of dst and
// returns the length, 0 if it does not shrink.
func (b *bloscCodec) encodeStream(s *Scratch, dst, src []byte, i int, split bool) (int, error) {
	switch b.cname {
	case "lz4":
		return s.lz4.fast.Encode(dst[:min(cap(dst), len(src))], src, 10-b.clevel), nil // as c-blosc has it
	case "lz4hc":
		return s.lz4.encodeHC(dst[:min(cap(dst), len(src))], src, b.clevel)
	case "zlib":
		out, err := s.gzip.encode(deflateCodec{"zlib", b.clevel}, dst, src)
		return kept(dst, out), err
	}
	trend := new(enzstd.Trend)
	if split {
		trend = &s.zstd.planes[i]
		trend.Bytes = true
	}
	return kept(dst, s.zstd.encoder().EncodeLike(trend, dst, src, b.zstdLevel(), false)), nil
}

// zstdLevel returns the level of Zstandard that c-blosc takes.
func (b *bloscCodec) zstdLevel() int {
	if b.clevel == 9 {
		return zstdMaxLevel
	}
	return 2*b.clevel - 1
}

// kept returns the length of out if it is in dst's memory, and 0 if it was reallocated because it did not
// fit.
func kept(dst, out []byte) int {
	if len(out) > cap(dst) || cap(out) == 0 || cap(dst) == 0 || &out[:1][0] != &dst[:1][0] {
		return 0
	}
	return len(out)
}
