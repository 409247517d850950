package zarr

import (
	"fmt"

	"strata/pkg/zarr/codec"
)

// What passes between the codecs of a chain is as large as a chunk: it lies in
// the worker's buffers, not on the heap.

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
	if err := chain[:1].Decode(&w.codec, dst, src); err != nil {
		return &FormatError{Err: err}
	}
	return nil
}

// decodeTail undoes the codecs of a chain from the last one to number first. It
// returns the bytes that went into that one, of which there were most if the
// chain began with most bytes.
func (w *worker) decodeTail(chain codec.Chain, first, most int, src []byte) ([]byte, error) {
	for i := len(chain) - 1; i >= first; i-- {
		_, hi := chain[:i].EncodedSize(most)
		buf, err := w.buffer(hi)
		if err != nil {
			return nil, err
		}
		n, err := chain[i].Decode(&w.codec, buf, src)
		if err != nil {
			return nil, &FormatError{Err: fmt.Errorf("%s: %w", chain[i].Name(), err)}
		}
		src = buf[:n]
	}
	return src, nil
}

// encodeChain returns the encoded form of src, in the worker's buffers.
func (w *worker) encodeChain(chain codec.Chain, src []byte) ([]byte, error) {
	for i := range chain {
		_, hi := chain[i].EncodedSize(len(src))
		buf, err := w.buffer(hi)
		if err != nil {
			return nil, err
		}
		if src, err = chain[i:i+1].Encode(&w.codec, buf, src); err != nil {
			return nil, &FormatError{Err: err}
		}
	}
	return src, nil
}
