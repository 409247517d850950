package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"strata/pkg/dtype"
	"strata/pkg/gpu"
	"strata/pkg/gpu/kernels"
	"strata/pkg/gpu/nvcomp"
	"strata/pkg/work"
	"strata/pkg/zarr/codec"
	"strata/pkg/zarr/zarrgpu/pack"
	"strata/pkg/zarr/zarrgpu/unpack"
)

// chunks holds a device's results for a number of chunks of one codec and size.
type chunks struct {
	Codec   string  `json:"codec"`
	Size    int     `json:"size"` // bytes of a chunk
	Count   int     `json:"count"`
	Ratio   float64 `json:"ratio"`               // stored bytes to bytes, of the host's encoder
	Decode  float64 `json:"decode"`              // decoded bytes a second, without copies to the device
	Scratch int64   `json:"scratch"`             // bytes of the device that decoding takes besides
	Encode  float64 `json:"encode,omitempty"`    // bytes a second, with the copy to the host; 0: the host encodes
	Own     float64 `json:"own_ratio,omitempty"` // stored bytes to bytes, of the device's encoder
	Host    float64 `json:"host"`                // decoded bytes a second of 16 threads of the host
	Same    bool    `json:"same"`                // both ways give the host's bytes
	Error   string  `json:"error,omitempty"`
}

const chunkBytes = 1 << 20

// hostThreads is the number of threads that decode on the host for comparison.
const hostThreads = 16

// measureGrid measures decoding and encoding for several sizes and numbers of chunks and several codecs, as far as
// memory allows.
func measureGrid(s *settings, d *gpu.Device, r *record) error {
	lib, err := nvcomp.Open(d)
	if err != nil {
		r.NVCOMP = err.Error()
		return err
	}
	r.NVCOMP, r.Chunks = lib.Version(), nil
	return withTimer(d, max(1, s.repeat/4), func(t *timer) error {
		for _, size := range []int{64 << 10, 1 << 20, 8 << 20, 52 << 20} {
			data := noisy(size)
			for _, name := range []string{"zstd", "lz4", "gzip", "blosc-zstd", "blosc-lz4", "raw"} {
				c, err := codec.FromFlag(name, dtype.Uint16, 3)
				if err != nil {
					return err
				}
				for _, n := range []int{1, 16, 256, 4096} {
					if int64(n)*int64(size) > s.bytes {
						continue
					}
					k := chunks{Codec: name, Size: size, Count: n}
					if err := k.measure(lib, t, c, data); err != nil {
						k.Same, k.Error = errors.Is(err, gpu.ErrMemory), err.Error() // what does not fit is not wrong
					}
					if lost := d.Lost(); lost != nil {
						return lost
					}
					r.Chunks = append(r.Chunks, k)
					if err := r.save(s.out); err != nil {
						return err
					}
				}
			}
		}
		r.chunkFigures()
		return nil
	})
}

// chunkFigures records the figures for the model: of one stream of 8 MiB, or of less if that did not fit, and the
// best.
func (r *record) chunkFigures() {
	for codec, name := range map[string]string{"zstd": "zstd", "lz4": "lz4", "gzip": "deflate"} {
		for _, c := range r.Chunks {
			if c.Codec != codec || c.Error != "" {
				continue
			}
			for way, v := range map[string]float64{"decode": c.Decode, "encode": c.Encode} {
				figure := name + "_" + way
				if v > r.Figures[figure] {
					r.figure(figure, v)
				}
				if c.Count == 1 && c.Size <= 8<<20 && v > 0 {
					r.figure(figure+"_stream", v)
				}
			}
		}
	}
}

// noisy returns a chunk of noisy uint16.
func noisy(size int) []byte {
	data := make([]byte, size)
	rng := rand.New(rand.NewPCG(3, 4))
	for i, v := range dtype.Slice[uint16](data) {
		dtype.Slice[uint16](data)[i] = uint16(float64(1000+i%1024) + rng.NormFloat64()*20 + float64(v))
	}
	return data
}

// hostSpeed returns the speed at which threads of the host decode a chunk.
func hostSpeed(c codec.Chain, stored []byte, size int) (float64, error) {
	n := max(hostThreads, 64<<20/size/hostThreads*hostThreads)
	begun := time.Now()
	err := work.Each(context.Background(), hostThreads, n, func(int, int) error {
		return c.Decode(codec.NewScratch(), make([]byte, size), stored)
	})
	return float64(n) * float64(size) / time.Since(begun).Seconds(), err
}

// measure measures a number of identical chunks.
func (k *chunks) measure(lib *nvcomp.Library, t *timer, c codec.Chain, data []byte) error {
	s, host, size, n := t.stream, codec.NewScratch(), int64(k.Size), k.Count
	one, err := c.Encode(host, nil, data)
	if err != nil {
		return err
	}
	one = bytes.Clone(one)
	k.Ratio = float64(len(one)) / float64(size)
	if k.Host, err = hostSpeed(c, one, k.Size); err != nil {
		return err
	}
	if _, k.Scratch, err = unpack.Memory(lib, s.Device(), c, k.Size, n); err != nil {
		return err
	}
	memory := s.Device().Memory()
	src, err := memory.Get(int64(len(one)))
	if err != nil {
		return err
	}
	defer src.Release()
	dst, err := memory.Get(size * int64(n))
	if err != nil {
		return err
	}
	defer dst.Release()
	pinned, err := s.Device().Host(max(len(one), k.Size))
	if err != nil {
		return err
	}
	defer pinned.Release()
	s.Upload(src.Span, pinned.B[:copy(pinned.B, one)])
	if err := s.Wait(); err != nil {
		return err
	}
	list, spans := make([]unpack.Chunk, n), make([]gpu.Span, n)
	for i := range list {
		spans[i] = dst.From(int64(i)*size, size)
		list[i] = unpack.Chunk{Name: fmt.Sprintf("chunk %d", i), Stored: src.Span, Dst: spans[i]}
		if err := c.Pieces(&list[i].Pieces, one, k.Size); err != nil {
			return err
		}
	}
	seconds, err := t.median(func() error { return unpack.Queue(lib, s, list) })
	if err != nil {
		return errors.Join(err, s.Wait())
	}
	k.Decode = float64(size) * float64(n) / seconds
	for _, span := range spans {
		s.Download(pinned.B[:size], span)
		if err := s.Wait(); err != nil {
			return err
		}
		if k.Same = bytes.Equal(pinned.B[:size], data); !k.Same {
			return nil
		}
	}
	return k.encode(lib, t, c, data, spans)
}

// encode measures the encoding of chunks, if the device encodes them.
func (k *chunks) encode(lib *nvcomp.Library, t *timer, c codec.Chain, data []byte, spans []gpu.Span) error {
	e, err := pack.New(lib, c, k.Size)
	if err != nil {
		return nil // the host encodes these
	}
	host, got := codec.NewScratch(), make([]byte, k.Size)
	var took []float64
	own := 0
	for i := range t.repeat + 1 {
		begun := time.Now()
		out, err := e.Encode(t.stream, spans)
		if err != nil {
			return err
		}
		if i > 0 {
			took = append(took, time.Since(begun).Seconds())
		}
		for _, b := range out.Chunks {
			if i < t.repeat {
				break
			}
			own += len(b)
			if err := c.Decode(host, got, b); err != nil || !bytes.Equal(got, data) {
				k.Same = false
			}
		}
		out.Release()
	}
	slices.Sort(took)
	total := float64(k.Size) * float64(k.Count)
	k.Encode, k.Own = total/took[len(took)/2], float64(own)/total
	return nil
}

// measureBytes measures the kernels that decoded and encoded chunks pass: a to b, of the
// same size.
func measureBytes(s *gpu.Stream, run func(name string, moved int64, f func() error) error, a, b gpu.Span) error {
	n := min(a.Bytes(), b.Bytes()) / chunkBytes
	if n < 1 {
		return nil
	}
	blocks := kernels.Blocks{Size: chunkBytes, Block: 256 << 10, Stride: chunkBytes, Count: int(n)}
	var aligned, odd []kernels.Range
	var all []gpu.Span
	for i := range n {
		from := a.From(i*chunkBytes, chunkBytes)
		all = append(all, from)
		aligned = append(aligned, kernels.Range{Dst: b.From(i*chunkBytes, chunkBytes), Src: from})
		odd = append(odd, kernels.Range{Dst: b.From(i*chunkBytes, chunkBytes-5), Src: from.From(5, chunkBytes-5)})
	}
	sum := func(kind kernels.Checksum) func() error {
		return func() error {
			return kernels.Checksums(s, kind, all, func(int, uint64) error { return nil })
		}
	}
	for _, k := range []struct {
		name  string
		moved int64
		f     func() error
	}{
		{"unshuffle_2", 2, func() error { return kernels.Unshuffle(s, b, a, blocks, 2) }},
		{"unshuffle_4", 2, func() error { return kernels.Unshuffle(s, b, a, blocks, 4) }},
		{"bit_unshuffle_2", 2, func() error { return kernels.BitUnshuffle(s, b, a, blocks, 2) }},
		{"shuffle_2", 2, func() error { return kernels.Shuffle(s, b, a, blocks, 2) }},
		{"shuffle_4", 2, func() error { return kernels.Shuffle(s, b, a, blocks, 4) }},
		{"copy_pieces", 2, func() error { return kernels.CopyPieces(s, aligned) }},
		{"copy_pieces, misaligned", 2, func() error { return kernels.CopyPieces(s, odd) }},
		{"crc32", 1, sum(kernels.CRC32)},
		{"adler32", 1, sum(kernels.Adler32)},
		{"xxh64", 1, sum(kernels.XXH64)},
	} {
		if err := run(k.name, k.moved*n*chunkBytes, k.f); err != nil {
			return err
		}
	}
	return nil
}
