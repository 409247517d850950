package ngffgpu

import (
	"bytes"
	"context"
	"errors"
	"time"

	"strata/pkg/gpu"
	"strata/pkg/gpu/nvcomp"
	"strata/pkg/mem"
	"strata/pkg/meter"
	"strata/pkg/zarr"
	"strata/pkg/zarr/codec"
	"strata/pkg/zarr/zarrgpu/pack"
)

// pack encodes the chunks on the device, all at once or as many as memory allows. The host encodes what the
// device cannot.
func (t *Tile) pack(ctx context.Context, s *gpu.Stream) (chunks []zarr.Stored, release func(), err error) {
	begun := time.Now()
	defer t.options.Meter.Since(meter.Encode, begun)
	var held []*pack.Encoded
	release = func() {
		for _, e := range held {
			e.Release()
		}
	}
	raw := make([]gpu.Span, len(t.list))
	for i := range raw {
		raw[i] = t.list[i].raw
	}
	unproved := false
	for n := len(raw); len(chunks) < len(raw); {
		if err := ctx.Err(); err != nil {
			return nil, release, err
		}
		at := len(chunks)
		n = min(n, len(raw)-at)
		if unproved || t.mistrusted.Load() {
			n = 1
		}
		var e *pack.Encoded
		err := errUnproved
		if !unproved {
			e, err = t.encoded(s, raw[at:at+n])
		}
		switch {
		case err == nil:
			held = append(held, e)
			for _, b := range e.Chunks {
				chunks = append(chunks, zarr.Stored{Bytes: b})
			}
		case !onHost(err):
			return nil, release, err
		case errors.Is(err, errUnproved) && !unproved:
			unproved = true
		case n > 1:
			n = (n + 1) / 2
		default:
			b, err := t.encode(s, raw[at])
			if err != nil {
				return nil, release, err
			}
			chunks = append(chunks, zarr.Stored{Bytes: b})
		}
	}
	return chunks, release, nil
}

// These let the host encode: for good, and until there is memory.
var (
	errMistrusted = errors.New("nvCOMP encodes chunks that the host decodes to others")
	errUnproved   = errors.New("the host has no memory to decode the first chunk that nvCOMP encodes")
)

// encoded encodes chunks on the device. Until the host has decoded one of the image, and found the elements
// that are on the device, none are used.
func (t *Tile) encoded(s *gpu.Stream, raw []gpu.Span) (*pack.Encoded, error) {
	if t.mistrusted.Load() {
		return nil, errMistrusted
	}
	e, err := t.encoder.Encode(s, raw)
	if err != nil {
		return nil, err
	}
	if err := t.prove(s, e.Chunks[0], raw[0]); err != nil {
		e.Release()
		return nil, err
	}
	return e, nil
}

// prove returns nil if the device's encoder has been found to be right, by this chunk or an earlier one.
func (t *Tile) prove(s *gpu.Stream, stored []byte, chunk gpu.Span) error {
	if !t.proved.Load() {
		t.proving.Lock()
		defer t.proving.Unlock()
	}
	if t.proved.Load() {
		return nil
	}
	if t.mistrusted.Load() {
		return errMistrusted
	}
	err := t.decodes(s, stored, chunk)
	switch err {
	case nil:
		t.proved.Store(true)
	case errMistrusted:
		t.mistrusted.Store(true)
		t.byHost(err)
	case errUnproved:
		t.unproved.Do(func() { t.byHost(err) })
	}
	return err
}

// mostCompared is the part of a chunk that comes down at a time to be compared.
const mostCompared = 1 << 20

// decodes returns nil if the host decodes a stored chunk to the data on the device, else errMistrusted;
// errUnproved if there is no memory to find out.
func (t *Tile) decodes(s *gpu.Stream, stored []byte, chunk gpu.Span) error {
	n := chunk.Bytes()
	host, err := t.Writer.device.Host(int(min(n, mostCompared)))
	if err != nil {
		return errUnproved
	}
	defer host.Release()
	got, err := mem.Alloc(int(n))
	if err != nil {
		return errUnproved
	}
	defer mem.Free(got)
	if err := t.out.Array(0).Codecs().Decode(codec.NewScratch(), got, stored); err != nil {
		return errMistrusted
	}
	s.Uncounted(true)
	defer s.Uncounted(false)
	for at := int64(0); at < n; at += mostCompared {
		part := host.B[:min(n-at, mostCompared)]
		s.Download(part, chunk.From(at, int64(len(part))))
		if err := s.Wait(); err != nil {
			return err
		}
		if !bytes.Equal(part, got[at:at+int64(len(part))]) {
			return errMistrusted
		}
	}
	return nil
}

// onHost reports whether the host may encode after an error: the device lacks memory, or nvCOMP fails. After
// an error of waiting nobody knows what has run.
func onHost(err error) bool {
	var call *gpu.Error
	if errors.As(err, &call) && call.Call == "cuStreamSynchronize" {
		return false
	}
	var piece *nvcomp.PieceError
	return errors.Is(err, gpu.ErrMemory) || errors.Is(err, errMistrusted) || errors.Is(err, errUnproved) || errors.As(err, &piece)
}

// encode brings a chunk down and encodes it, in pieces if page-locked memory is short.
func (t *Tile) encode(s *gpu.Stream, chunk gpu.Span) ([]byte, error) {
	host, err := t.Writer.device.Host(int(chunk.Bytes()))
	switch {
	case errors.Is(err, gpu.ErrMemory):
		return t.encodePieces(s, chunk)
	case err != nil:
		return nil, err
	}
	defer host.Release()
	s.Download(host.B, chunk)
	if err := s.Wait(); err != nil {
		return nil, err
	}
	return t.out.Array(0).Codecs().Encode(new(codec.Scratch), nil, host.B)
}

// leastPiece is the smallest piece of a chunk that comes down at a time.
const leastPiece = 4096

// encodePieces brings a chunk down in pieces and encodes it.
func (t *Tile) encodePieces(s *gpu.Stream, chunk gpu.Span) ([]byte, error) {
	raw, err := mem.Alloc(int(chunk.Bytes()))
	if err != nil {
		return nil, err
	}
	defer mem.Free(raw)
	n := chunk.Bytes() / 2
	host, err := t.Writer.device.Host(int(n))
	for ; errors.Is(err, gpu.ErrMemory) && n > leastPiece; host, err = t.Writer.device.Host(int(n)) {
		n = max(leastPiece, n/2)
	}
	if err != nil {
		return nil, err
	}
	defer host.Release()
	for at := int64(0); at < chunk.Bytes(); at += int64(len(host.B)) {
		part := host.B[:min(int64(len(host.B)), chunk.Bytes()-at)]
		s.Download(part, chunk.From(at, int64(len(part))))
		if err := s.Wait(); err != nil {
			return nil, err
		}
		copy(raw[at:], part)
	}
	return t.out.Array(0).Codecs().Encode(new(codec.Scratch), nil, raw)
}
