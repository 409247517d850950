// Package pack encodes chunks in device memory, so that they leave the device in stored form. It does for
// many chunks in one call what [codec.Chain]'s Encode does on the host.
//
//	e, err := pack.New(lib, chain, size)  // codec.ErrWhole: the host must encode them
//	out, err := e.Encode(s, chunks)       // waits for the stream
//	for i := range out.Chunks { … }       // each in stored form, in page-locked memory
//	out.Release()
//
// The device shuffles, compresses, and joins the streams of all chunks, which come down in one copy; the host
// adds headers and checksums. The result conforms to the chain's format but differs from the host's bytes,
// since nvCOMP has a level of its own.
package pack

import (
	"fmt"

	"strata/pkg/gpu"
	"strata/pkg/gpu/kernels"
	"strata/pkg/gpu/nvcomp"
	"strata/pkg/mem"
	"strata/pkg/zarr/codec"
)

// formats are nvCOMP's names of the formats of streams.
var formats = map[codec.StreamFormat]nvcomp.Format{codec.StreamZstd: nvcomp.Zstd, codec.StreamLZ4: nvcomp.LZ4}

// apart is the alignment of pieces of scratch memory.
const apart = 16

func up(n int64) int64 { return (n + apart - 1) / apart * apart }

// Encoder encodes chunks of one chain and size. It is safe for concurrent use if each goroutine has its own
// stream.
type Encoder struct {
	lib     *nvcomp.Library
	packing *codec.Packing
	format  nvcomp.Format
	bound   int64 // room for what a stream becomes, a multiple of apart
	aligned bool  // do all streams of a chunk lie where nvCOMP takes them?
}

// New returns an encoder of chunks of size bytes, or an error that wraps [codec.ErrWhole] if the host must
// encode them.
func New(lib *nvcomp.Library, c codec.Chain, size int) (*Encoder, error) {
	p, err := c.Packing(size)
	if err != nil {
		return nil, err
	}
	if lib == nil {
		return nil, fmt.Errorf("without nvCOMP a chunk %w", codec.ErrWhole)
	}
	e := &Encoder{lib: lib, packing: p, format: formats[p.Format], aligned: true}
	for _, k := range p.List {
		n, err := lib.Bound(e.format, int64(k.Size))
		if err != nil {
			return nil, fmt.Errorf("a chunk of %d bytes %w: %w", size, codec.ErrWhole, err)
		}
		e.bound = max(e.bound, up(n))
		e.aligned = e.aligned && int64(k.To)%lib.EncodeAlignment(e.format) == 0
	}
	return e, nil
}

// Memory returns about how much page-locked and device memory Encode needs for n chunks, until its result is
// released.
func (e *Encoder) Memory(d *gpu.Device, n int) (pinned, device int64, err error) {
	p := e.packing
	streams, size := n*len(p.List), int64(n)*up(int64(p.Size))
	table := nvcomp.Overhead(streams) + mem.Pooled(int64(24*2*streams))
	stored := mem.Pooled(e.storedBytes(n))
	temp, err := e.lib.EncodeTemp(d, e.format, streams, e.largest(), size)
	if err != nil {
		return 0, 0, err
	}
	device = table + stored + mem.Pooled(int64(streams)*e.bound) + mem.Pooled(temp)
	if p.Shuffle != codec.NoShuffle {
		device += mem.Pooled(size)
	}
	if !e.aligned {
		device += mem.Pooled(int64(n) * e.alignedBytes())
	}
	return table + stored, device, nil
}

// Warm sees to it that the encoder's kernels are loaded; see [nvcomp.Library.Warm].
func (e *Encoder) Warm(d *gpu.Device) error { return e.lib.Warm(d, e.format) }

// storedBytes returns the most that n chunks take as they are stored, each at a multiple of apart.
func (e *Encoder) storedBytes(n int) int64 {
	return int64(n) * up(int64(e.packing.Bound(func(int) int { return int(e.bound) })))
}

func (e *Encoder) largest() (n int64) {
	for _, k := range e.packing.List {
		n = max(n, int64(k.Size))
	}
	return n
}

// alignedBytes returns the size of the streams of a chunk if each is aligned.
func (e *Encoder) alignedBytes() (n int64) {
	for _, k := range e.packing.List {
		n += up(int64(k.Size))
	}
	return n
}

// Encoded holds encoded chunks in their stored form until it is released.
type Encoded struct {
	Chunks [][]byte // until Release
	host   *mem.Buffer
}

// Release frees the memory.
func (e *Encoded) Release() { e.host.Release() }

// Encode encodes chunks, which must lie at multiples of 16 bytes, after the work queued on the stream, and
// waits for it, even after an error. [gpu.ErrMemory] means that there is too little memory for this many
// chunks.
func (e *Encoder) Encode(s *gpu.Stream, chunks []gpu.Span) (*Encoded, error) {
	j := job{Encoder: e, stream: s, chunks: chunks}
	out, err := j.run()
	if e := s.Wait(); err == nil {
		err = e
	}
	j.release()
	if err != nil {
		out.release()
		return nil, err
	}
	return out.finish(&j), nil
}

// job is one call of Encode.
type job struct {
	*Encoder
	stream *gpu.Stream
	chunks []gpu.Span
	held   []*gpu.Buffer // until the stream has been waited for

	plain   []gpu.Span     // the chunks, shuffled
	streams []nvcomp.Piece // of all chunks, one after the other
	lengths []int64
	layouts []codec.Layout
	at      []int64 // of each stored chunk in the output
}

// get takes device memory for the job.
func (j *job) get(n int64) (gpu.Span, error) {
	b, err := j.stream.Device().Memory().Get(n)
	if err != nil {
		return gpu.Span{}, err
	}
	j.held = append(j.held, b)
	return b.Span, nil
}

func (j *job) release() {
	for _, b := range j.held {
		b.Release()
	}
}

func (j *job) run() (*output, error) {
	for i, c := range j.chunks {
		if c.Bytes() != int64(j.packing.Size) || c.Address()%16 != 0 {
			return nil, fmt.Errorf("chunk %d has %d bytes at %#x, want %d at a multiple of 16", i, c.Bytes(), c.Address(), j.packing.Size)
		}
	}
	if len(j.chunks) == 0 {
		return nil, nil
	}
	if err := j.shuffle(); err != nil {
		return nil, err
	}
	if err := j.compress(); err != nil {
		return nil, err
	}
	if err := j.stream.Wait(); err != nil {
		return nil, err
	}
	return j.collect()
}

// shuffle makes the shuffled chunks, of as many at once as lie at equal distances.
func (j *job) shuffle() error {
	p := j.packing
	if p.Shuffle == codec.NoShuffle {
		j.plain = j.chunks
		return nil
	}
	stride := up(int64(p.Size))
	all, err := j.get(stride * int64(len(j.chunks)))
	if err != nil {
		return err
	}
	for i := range j.chunks {
		j.plain = append(j.plain, all.From(int64(i)*stride, int64(p.Size)))
	}
	for i := 0; i < len(j.chunks); {
		n := 1
		for i+n < len(j.chunks) && j.chunks[i+n].Address() == j.chunks[i].Address()+uint64(int64(n)*stride) {
			n++
		}
		b := kernels.Blocks{Size: int64(p.Size), Block: int64(p.Block), Stride: stride, Count: n}
		if err := kernels.Shuffle(j.stream, j.plain[i], j.chunks[i], b, p.Typesize); err != nil {
			return err
		}
		i += n
	}
	return nil
}

// compress encodes the streams of all chunks.
func (j *job) compress() error {
	p := j.packing
	n := len(j.chunks) * len(p.List)
	room, err := j.get(int64(n) * j.bound)
	if err != nil {
		return err
	}
	var aligned gpu.Span
	if !j.aligned {
		if aligned, err = j.get(int64(len(j.chunks)) * j.alignedBytes()); err != nil {
			return err
		}
	}
	var moved []kernels.Range
	at := int64(0)
	j.streams = make([]nvcomp.Piece, 0, n)
	for i := range j.chunks {
		name := fmt.Sprintf("chunk %d", i)
		for _, k := range p.List {
			src := j.plain[i].From(int64(k.To), int64(k.Size))
			if !j.aligned {
				to := aligned.From(at, src.Bytes())
				at += up(src.Bytes())
				moved = append(moved, kernels.Range{Dst: to, Src: src})
				src = to
			}
			j.streams = append(j.streams, nvcomp.Piece{Src: src, Dst: room.From(int64(len(j.streams))*j.bound, j.bound), Name: name})
		}
	}
	if err := kernels.CopyPieces(j.stream, moved); err != nil {
		return err
	}
	j.lengths = make([]int64, n)
	return j.lib.Encode(j.stream, j.format, j.streams, j.lengths)
}

// output is the data that come down from the device.
type output struct{ host *mem.Buffer }

func (o *output) release() {
	if o != nil {
		o.host.Release()
	}
}

// collect puts the streams of all chunks where they are stored, and queues their way down.
func (j *job) collect() (*output, error) {
	p, total := j.packing, int64(0)
	j.layouts, j.at = make([]codec.Layout, len(j.chunks)), make([]int64, len(j.chunks))
	for i := range j.chunks {
		p.Lay(&j.layouts[i], j.of(i))
		j.at[i] = total
		total += up(int64(j.layouts[i].Bytes))
	}
	// As much as can be, not as it is: buffers of one size are used again, others would be freed and allocated,
	// which waits for the device.
	most := max(total, j.storedBytes(len(j.chunks)))
	stored, err := j.get(most)
	if err != nil {
		return nil, err
	}
	host, err := j.stream.Device().Host(int(most))
	if err != nil {
		return nil, err
	}
	var ranges []kernels.Range
	put := func(at int64, src gpu.Span) {
		ranges = append(ranges, kernels.Range{Dst: stored.From(at, src.Bytes()), Src: src})
	}
	for i, l := range j.layouts {
		if l.Whole {
			put(j.at[i]+int64(l.At[0]), j.chunks[i])
			continue
		}
		for k, at := range l.At {
			stream := j.streams[i*len(p.List)+k]
			src := stream.Src
			if !l.Plain[k] {
				src = stream.Dst.From(0, j.of(i)[k])
			}
			put(j.at[i]+int64(at), src)
		}
	}
	out := &output{host}
	if err := kernels.CopyPieces(j.stream, ranges); err != nil {
		return out, err
	}
	j.stream.Download(host.B[:total], stored)
	return out, nil
}

// of returns the lengths of chunk i's streams.
func (j *job) of(i int) []int64 { return j.lengths[i*len(j.packing.List) : (i+1)*len(j.packing.List)] }

// finish writes the parts of the stored chunks that do not come from the device.
func (o *output) finish(j *job) *Encoded {
	if o == nil {
		return &Encoded{}
	}
	e := &Encoded{host: o.host, Chunks: make([][]byte, len(j.chunks))}
	for i, l := range j.layouts {
		e.Chunks[i] = o.host.B[j.at[i]:][:l.Bytes:l.Bytes]
		j.packing.Finish(e.Chunks[i], &l, j.of(i))
	}
	return e
}
