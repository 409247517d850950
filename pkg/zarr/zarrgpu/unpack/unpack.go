// Package unpack decodes stored chunks in device memory. It does for many chunks in one call what
// [codec.Chain]'s Decode does on the host.
//
// The host parses a chunk's headers ([codec.Chain.Pieces]) while the stored bytes are in its memory. The
// bytes go to the device unchanged, to any address, and [Queue] decodes them with nvCOMP and undoes their
// shuffle:
//
//	err = chain.Pieces(&chunk.Pieces, stored, size) // codec.ErrWhole: the host must decode it
//	s.Upload(chunk.Stored, stored)
//	err = unpack.Queue(lib, s, chunks)
//	err = s.Wait() // names the chunk that could not be decoded, as a *nvcomp.PieceError
//
// It decodes Zstandard, LZ4, gzip, zlib and Blosc of these, undoes byte and bit shuffle, and verifies
// checksums of the decoded data. The host must decode other codecs, filters except numcodecs' shuffle,
// BloscLZ, gzip of several members, and chunks of very many tiny streams; [codec.Chain.InPieces] reports that
// for a chain.
package unpack

import (
	"errors"
	"slices"

	"strata/pkg/gpu"
	"strata/pkg/gpu/kernels"
	"strata/pkg/gpu/nvcomp"
	"strata/pkg/mem"
	"strata/pkg/zarr/codec"
)

// Chunk is a chunk to decode.
type Chunk struct {
	Name   string // in errors
	Pieces codec.Pieces
	Stored gpu.Span // the stored bytes, at any address
	Dst    gpu.Span // the decoded chunk: Pieces.Size bytes, at any address; fastest at multiples of 16
}

// formats are nvCOMP's names of the formats of streams.
var formats = map[codec.StreamFormat]nvcomp.Format{
	codec.StreamZstd:    nvcomp.Zstd,
	codec.StreamLZ4:     nvcomp.LZ4,
	codec.StreamDeflate: nvcomp.Deflate,
}

// apart is the alignment of a batch's pieces of scratch memory.
const apart = 16

func up(n int64) int64 { return (n + apart - 1) / apart * apart }

// Queue queues the decoding of chunks. Their Stored and Dst must not overlap and must stay valid until the
// stream has been waited for; until then it holds scratch memory from the device's pools (see [Memory]).
// [gpu.ErrMemory] means that there is too little; then the chunks are not decoded. lib may be nil if no
// stream is compressed.
func Queue(lib *nvcomp.Library, s *gpu.Stream, chunks []Chunk) error {
	b := batch{lib: lib, stream: s, pieces: map[codec.StreamFormat][]nvcomp.Piece{}, sums: map[codec.SumKind]*sums{}}
	if err := b.takeScratch(chunks); err != nil {
		return err
	}
	for i := range chunks {
		b.add(&chunks[i])
	}
	if err := kernels.CopyPieces(s, b.copies); err != nil {
		return err
	}
	for _, f := range []codec.StreamFormat{codec.StreamZstd, codec.StreamLZ4, codec.StreamDeflate} {
		if err := lib.Decode(s, formats[f], b.pieces[f]); err != nil {
			return err
		}
	}
	if err := b.check(); err != nil {
		return err
	}
	return b.unshuffle()
}

// batch is the plan that Queue computes.
type batch struct {
	lib     *nvcomp.Library
	stream  *gpu.Stream
	plain   gpu.Span // decoded chunks that are shuffled still
	aligned gpu.Span // streams that nvCOMP does not take where they lie
	pieces  map[codec.StreamFormat][]nvcomp.Piece
	copies  []kernels.Range
	shuffle []shuffled
	sums    map[codec.SumKind]*sums
}

// sums are the streams that have a checksum of one kind.
type sums struct {
	spans   []gpu.Span
	streams []codec.Stream
	names   []string
}

// kinds are the kernels' names of checksums.
var kinds = map[codec.SumKind]kernels.Checksum{codec.SumCRC32: kernels.CRC32, codec.SumAdler32: kernels.Adler32, codec.SumXXH64: kernels.XXH64}

type shuffled struct {
	chunk *Chunk
	plain gpu.Span
}

var errNoLibrary = errors.New("there is no nvCOMP to decode it")

func (b *batch) takeScratch(chunks []Chunk) error {
	var plain, aligned int64
	most := int64(0) // of aligned
	for i := range chunks {
		c := &chunks[i]
		most += alignedBytes(c.Pieces.Size, len(c.Pieces.List))
		if c.Pieces.Shuffle != codec.NoShuffle {
			plain += up(int64(c.Pieces.Size))
		}
		for _, p := range c.Pieces.List {
			if f, ok := formats[p.Format]; ok {
				if b.lib == nil {
					return &nvcomp.PieceError{Name: c.Name, Format: f, Err: errNoLibrary}
				}
				if b.misaligned(c, p) {
					aligned += up(int64(p.Len))
				}
			}
		}
	}
	if aligned > 0 {
		aligned = max(aligned, most)
	}
	for _, t := range []struct {
		bytes int64
		span  *gpu.Span
	}{{plain, &b.plain}, {aligned, &b.aligned}} {
		if t.bytes == 0 {
			continue
		}
		m, err := b.stream.Device().Memory().Get(t.bytes)
		if err != nil {
			return err
		}
		b.stream.Release(m)
		*t.span = m.Span
	}
	return nil
}

// alignedBytes returns the room that streams of a chunk of size bytes get where they are moved: as if they
// were not compressed, so that buffers of one size serve all chunks. Others would be freed and allocated,
// which waits for the device.
func alignedBytes(size, streams int) int64 { return int64(size) + int64(streams)*apart }

func (b *batch) misaligned(c *Chunk, p codec.Stream) bool {
	return (int64(c.Stored.Address())+int64(p.At))%b.lib.DecodeAlignment(formats[p.Format]) != 0
}

// take cuts n bytes off scratch memory.
func take(s *gpu.Span, n int64) gpu.Span {
	t := s.From(0, n)
	*s = s.From(min(up(n), s.Bytes()), max(0, s.Bytes()-up(n)))
	return t
}

func (b *batch) add(c *Chunk) {
	dst := c.Dst.From(0, int64(c.Pieces.Size))
	if c.Pieces.Shuffle != codec.NoShuffle {
		dst = take(&b.plain, dst.Bytes())
		b.shuffle = append(b.shuffle, shuffled{c, dst})
	}
	for _, p := range c.Pieces.List {
		src, to := c.Stored.From(int64(p.At), int64(p.Len)), dst.From(int64(p.To), int64(p.Size))
		if p.Format == codec.StreamStored {
			b.copies = append(b.copies, kernels.Range{Dst: to, Src: src})
			continue
		}
		if b.misaligned(c, p) {
			moved := take(&b.aligned, src.Bytes())
			b.copies = append(b.copies, kernels.Range{Dst: moved, Src: src})
			src = moved
		}
		b.pieces[p.Format] = append(b.pieces[p.Format], nvcomp.Piece{Src: src, Dst: to, Name: c.Name})
		if p.Sum == codec.SumNone {
			continue
		}
		k := b.sums[p.Sum]
		if k == nil {
			k = new(sums)
			b.sums[p.Sum] = k
		}
		k.spans, k.streams, k.names = append(k.spans, to), append(k.streams, p), append(k.names, c.Name)
	}
}

// check queues what compares the checksums.
func (b *batch) check() error {
	for _, kind := range []codec.SumKind{codec.SumCRC32, codec.SumAdler32, codec.SumXXH64} {
		k := b.sums[kind]
		if k == nil {
			continue
		}
		err := kernels.Checksums(b.stream, kinds[kind], k.spans, func(i int, sum uint64) error {
			if err := k.streams[i].Check(uint32(sum)); err != nil {
				return &nvcomp.PieceError{Name: k.names[i], Format: formats[k.streams[i].Format], Err: err}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// unshuffle undoes the shuffle of chunks, of as many at once as lie at equal distances.
func (b *batch) unshuffle() error {
	for i := 0; i < len(b.shuffle); {
		first, n := b.shuffle[i], 1
		p := &first.chunk.Pieces
		stride := up(int64(p.Size))
		for ; i+n < len(b.shuffle); n++ {
			q := &b.shuffle[i+n].chunk.Pieces
			if q.Size != p.Size || q.Shuffle != p.Shuffle || q.Typesize != p.Typesize || q.Block != p.Block ||
				b.shuffle[i+n].chunk.Dst.Address() != first.chunk.Dst.Address()+uint64(int64(n)*stride) {
				break
			}
		}
		undo := kernels.Unshuffle
		if p.Shuffle == codec.BitShuffle {
			undo = kernels.BitUnshuffle
		}
		err := undo(b.stream, first.chunk.Dst, first.plain, kernels.Blocks{Size: int64(p.Size), Block: int64(p.Block), Stride: stride, Count: n}, p.Typesize)
		if err != nil {
			return err
		}
		i += n
	}
	return nil
}

// Memory returns about how much page-locked and device memory Queue needs for n chunks of a chain, of size
// decoded bytes each, until the stream has been waited for, if they are encoded as their metadata say. If
// less device memory is free, nvCOMP's part can be smaller, down to that of one stream.
func Memory(lib *nvcomp.Library, d *gpu.Device, c codec.Chain, size, n int) (pinned, device int64, err error) {
	chunks := mem.Pooled(int64(n) * up(int64(size)))
	format, streams, largest := c.Streams(size)
	most := n * c.MostStreams(size)
	pinned = nvcomp.Overhead(most) + mem.Pooled(int64(24*most))
	if format == codec.StreamZstd || format == codec.StreamDeflate { // which may have checksums
		pinned += mem.Pooled(int64(32*most) + int64(n)*int64(size)/512)
	}
	device = pinned
	if slices.ContainsFunc(c, func(k codec.Codec) bool { return k.Name() == "blosc" || k.Name() == "shuffle" }) {
		device += chunks
	}
	if format == codec.StreamDeflate { // copied to where nvCOMP takes it
		device += mem.Pooled(int64(n) * alignedBytes(size, streams))
	}
	if format == codec.StreamZstd && lib != nil {
		var temp int64
		for _, of := range [][2]int{{n, size}, {n * streams, largest}} {
			t, err := lib.DecodeTemp(d, nvcomp.Zstd, of[0], int64(of[1]), int64(n)*int64(size))
			if err != nil {
				return 0, 0, err
			}
			temp = max(temp, t)
		}
		device += mem.Pooled(temp)
	}
	return pinned, device, nil
}
