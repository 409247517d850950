package ngffgpu

import (
	"context"
	"errors"
	"time"

	"strata/pkg/gpu"
	"strata/pkg/gpu/nvcomp"
	"strata/pkg/meter"
	"strata/pkg/zarr"
	"strata/pkg/zarr/codec"
	"strata/pkg/zarr/zarrgpu/pack"
)

// pack encodes the chunks on the device: all of them at once, or as many as there is memory
// for. What cannot be encoded there the host encodes.
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
	for n := len(raw); len(chunks) < len(raw); {
		if err := ctx.Err(); err != nil {
			return nil, release, err
		}
		at := len(chunks)
		n = min(n, len(raw)-at)
		e, err := t.encoder.Encode(s, raw[at:at+n])
		switch {
		case err == nil:
			held = append(held, e)
			for _, b := range e.Chunks {
				chunks = append(chunks, zarr.Stored{Bytes: b})
			}
		case !onHost(err):
			return nil, release, err
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

// onHost reports whether an error lets the host encode: where the device has not the
// memory, or nvCOMP fails. After one of waiting nobody knows what has run.
func onHost(err error) bool {
	var call *gpu.Error
	if errors.As(err, &call) && call.Call == "cuStreamSynchronize" {
		return false
	}
	var piece *nvcomp.PieceError
	return errors.Is(err, gpu.ErrMemory) || errors.As(err, &piece)
}

// encode brings a chunk down and encodes it.
func (t *Tile) encode(s *gpu.Stream, chunk gpu.Span) ([]byte, error) {
	host, err := t.Writer.device.Host(int(chunk.Bytes()))
	if err != nil {
		return nil, err
	}
	defer host.Release()
	s.Download(host.B, chunk)
	if err := s.Wait(); err != nil {
		return nil, err
	}
	return t.out.Array(0).Codecs().Encode(new(codec.Scratch), nil, host.B)
}
