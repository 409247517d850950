package zarr

import (
	"context"
	"errors"

	"strata/pkg/zarr/codec"
)

// What passes between the codecs of a chain is as large as a chunk: it lies in
// two of the worker's buffers in turn, not on the heap.

// decodeChain fills dst with the decoded form of src.
func (w *worker) decodeChain(chain codec.Chain, dst, src []byte) error {
	if len(chain) > 1 {
		m := w.mark()
		defer w.release(m)
		var err error
		if src, err = w.decodeTail(chain, 1, len(dst), src); err != nil {
			return err
		}
	}
	return asFormatError(chain[:min(1, len(chain))].Decode(&w.codec, dst, src))
}

// decodeTail undoes the codecs of a chain from the last down to number first. It returns the input of that
// codec, which may lie in src and has at most as many bytes as it would have if the chain began with most bytes.
func (w *worker) decodeTail(chain codec.Chain, first, most int, src []byte) ([]byte, error) {
	var buffers [2][]byte
	for i, n := range chain.Between(first, most) {
		if n == 0 {
			continue
		}
		var err error
		if buffers[i], err = w.buffer(n); err != nil {
			return nil, err
		}
	}
	src, err := chain.DecodeTail(&w.codec, first, most, buffers, src)
	return src, asFormatError(err)
}

// encodeChain returns the encoded form of src, in the worker's buffers.
func (w *worker) encodeChain(chain codec.Chain, src []byte) ([]byte, error) {
	for len(chain) > 0 {
		step := chain.Step()
		_, hi := step.EncodedSize(len(src))
		buf, err := w.buffer(hi)
		if err != nil {
			return nil, err
		}
		if src, err = step.Encode(&w.codec, buf, src); err != nil {
			return nil, &FormatError{Err: err}
		}
		chain = chain[len(step):]
	}
	return src, nil
}

// asFormatError turns an error of stored bytes into a [*FormatError]. It passes nil through, and errors with
// another cause.
func asFormatError(err error) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	var fe *FormatError
	if errors.As(err, &fe) {
		return err
	}
	return &FormatError{Err: err}
}
