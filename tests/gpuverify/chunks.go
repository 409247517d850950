package main

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"strata/pkg/dtype"
	"strata/pkg/gpu"
	"strata/pkg/gpu/kernels"
	"strata/pkg/gpu/nvcomp"
	"strata/pkg/zarr/codec"
	"strata/pkg/zarr/zarrgpu/pack"
	"strata/pkg/zarr/zarrgpu/unpack"
)

// chunks is what a device makes of the chunks of a codec.
type chunks struct {
	Codec  string  `json:"codec"`
	Ratio  float64 `json:"ratio"`               // stored bytes to bytes, of the host's encoder
	Decode float64 `json:"decode"`              // decoded bytes a second, without copies to the device
	Encode float64 `json:"encode,omitempty"`    // bytes a second, with the copy to the host; 0: the host encodes
	Own    float64 `json:"own_ratio,omitempty"` // stored bytes to bytes, of the device's encoder
	Same   bool    `json:"same"`                // both ways give the host's bytes
	Error  string  `json:"error,omitempty"`
}

const chunkBytes = 1 << 20

// measureChunks decodes and encodes chunks of noisy uint16 with each codec, and compares
// the bytes with the host's.
func measureChunks(d *gpu.Device, r *record, most int64, repeat int) (err error) {
	lib, err := nvcomp.Open(d)
	if err != nil {
		r.NVCOMP = err.Error()
		return nil
	}
	r.NVCOMP = lib.Version()
	s, err := d.Stream()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	t := &timer{stream: s, repeat: repeat}
	for _, e := range []**gpu.Event{&t.from, &t.to} {
		if *e, err = d.TimedEvent(); err != nil {
			return err
		}
		defer (*e).Close()
	}
	n := int(max(1, min(16, most/chunkBytes/8)))
	data := make([]byte, n*chunkBytes)
	rng := rand.New(rand.NewPCG(3, 4))
	for i, v := range dtype.Slice[uint16](data) {
		dtype.Slice[uint16](data)[i] = uint16(float64(1000+i%1024) + rng.NormFloat64()*20 + float64(v))
	}
	for _, name := range []string{"raw", "zstd", "lz4", "gzip", "blosc-zstd", "blosc-lz4"} {
		c, err := codec.FromFlag(name, dtype.Uint16, 3)
		if err != nil {
			return err
		}
		k := chunks{Codec: name}
		if err := k.measure(lib, t, c, data); err != nil {
			k.Same, k.Error = false, err.Error()
		}
		r.Chunks = append(r.Chunks, k)
		if lost := d.Lost(); lost != nil {
			return lost
		}
	}
	return nil
}

func (k *chunks) measure(lib *nvcomp.Library, t *timer, c codec.Chain, data []byte) error {
	s, host := t.stream, codec.NewScratch()
	n := len(data) / chunkBytes
	var stored []byte
	list := make([]unpack.Chunk, n)
	at := make([]int, n+1)
	for i := range n {
		b, err := c.Encode(host, nil, data[i*chunkBytes:(i+1)*chunkBytes])
		if err != nil {
			return err
		}
		list[i].Name = fmt.Sprintf("chunk %d", i)
		if err := c.Pieces(&list[i].Pieces, b, chunkBytes); err != nil {
			return err
		}
		stored = append(stored, b...)
		at[i+1] = len(stored)
	}
	k.Ratio = float64(len(stored)) / float64(len(data))
	memory := s.Device().Memory()
	src, err := memory.Get(int64(len(stored)))
	if err != nil {
		return err
	}
	defer src.Release()
	dst, err := memory.Get(int64(len(data)))
	if err != nil {
		return err
	}
	defer dst.Release()
	pinned, err := s.Device().Host(max(len(stored), len(data)))
	if err != nil {
		return err
	}
	defer pinned.Release()
	copy(pinned.B, stored)
	s.Upload(src.Span, pinned.B[:len(stored)])
	if err := s.Wait(); err != nil {
		return err
	}
	var spans []gpu.Span
	for i := range list {
		list[i].Stored = src.From(int64(at[i]), int64(at[i+1]-at[i]))
		list[i].Dst = dst.From(int64(i)*chunkBytes, chunkBytes)
		spans = append(spans, list[i].Dst)
	}
	seconds, err := t.median(func() error { return unpack.Queue(lib, s, list) })
	if err != nil {
		return errors.Join(err, s.Wait())
	}
	k.Decode = float64(len(data)) / seconds
	s.Download(pinned.B[:len(data)], dst.Span)
	if err := s.Wait(); err != nil {
		return err
	}
	k.Same = bytes.Equal(pinned.B[:len(data)], data)
	e, err := pack.New(lib, c, chunkBytes)
	if err != nil || !k.Same {
		return nil // the host encodes these
	}
	var took []float64
	own := 0
	for i := range t.repeat + 1 {
		begun := time.Now()
		out, err := e.Encode(s, spans)
		if err != nil {
			return err
		}
		if i > 0 {
			took = append(took, time.Since(begun).Seconds())
		}
		if i == t.repeat {
			got := make([]byte, chunkBytes)
			for j, b := range out.Chunks {
				own += len(b)
				if err := c.Decode(host, got, b); err != nil || !bytes.Equal(got, data[j*chunkBytes:(j+1)*chunkBytes]) {
					k.Same = false
				}
			}
		}
		out.Release()
	}
	slices.Sort(took)
	k.Encode, k.Own = float64(len(data))/took[len(took)/2], float64(own)/float64(len(data))
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
