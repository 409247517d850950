package codec

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"

	"strata/pkg/dtype"
)

// Chain is the sequence of codecs that a chunk passes, in the order of
// encoding. The empty chain stores the bytes as they are.
type Chain []Codec

// ParseChainV2 reads the "filters" and the "compressor" of a .zarray; each is nil or JSON null if absent.
// elem is the array's element type; each codec gets the type that the previous one produces.
func ParseChainV2(filters []json.RawMessage, compressor json.RawMessage, elem dtype.Type) (Chain, error) {
	if err := CheckLength(len(filters)); err != nil {
		return nil, fmt.Errorf("filters: %w", err)
	}
	var chain Chain
	for i, object := range filters {
		c, err := ParseV2(object, elem)
		if err != nil {
			return nil, fmt.Errorf("filters[%d]: %w", i, err)
		}
		chain = append(chain, c)
		elem = Encoded(c, elem)
	}
	if len(compressor) > 0 && string(compressor) != "null" {
		c, err := ParseV2(compressor, elem)
		if err != nil {
			return nil, fmt.Errorf("compressor: %w", err)
		}
		chain = append(chain, c)
	}
	return chain, nil
}

// MaxChain is the maximum number of codecs in a chain read from metadata. Real arrays use a handful; each
// costs time for every chunk.
const MaxChain = 32

// CheckLength returns an error if a list of codecs, the value of a field, is longer than [MaxChain].
func CheckLength(n int) error {
	if n > MaxChain {
		return fmt.Errorf("has %d codecs, at most %d are supported", n, MaxChain)
	}
	return nil
}

// Encoded returns the element type of c's output for elements of type elem: a filter may change the type; codecs that
// work on bytes do not.
func Encoded(c Codec, elem dtype.Type) dtype.Type {
	if f, ok := c.(Filter); ok {
		_, elem = f.Types()
	}
	return elem
}

// Filters returns the codecs at the front of the chain that work on values of an array of type elem, as those that v3
// metadata have in front of "bytes". Filters that look at bytes in another order, or as another type, are not among
// them.
func (c Chain) Filters(elem dtype.Type) Chain {
	n := 0
	for n < len(c) {
		f, ok := c[n].(Filter)
		if !ok {
			break
		}
		from, to := f.Types()
		if s, ok := c[n].(interface{ swapped() bool }); ok && s.swapped() || from != elem {
			break
		}
		elem = to
		n++
	}
	return c[:n]
}

// Elementwise reports whether c encodes each element separately, so that the order of elements does not matter.
func Elementwise(c Codec) bool {
	switch c.(type) {
	case *deltaCodec, *packBits:
		return false
	}
	_, ok := c.(Filter)
	return ok
}

// EncodedSize returns bounds for the length of n encoded bytes.
func (c Chain) EncodedSize(n int) (lo, hi int) {
	lo, hi = n, n
	for _, k := range c {
		lo, _ = k.EncodedSize(lo)
		_, hi = k.EncodedSize(hi)
	}
	return lo, hi
}

// Between returns upper bounds for the intermediate results of a chain that decodes to n bytes, from codec
// first on: most[0] for inputs of codecs with even numbers, most[1] for odd ones, since decoding alternates
// between two buffers. Checksums need no room: they are verified where they lie.
func (c Chain) Between(first, n int) (most [2]int) {
	for i, k := range c {
		if _, sum := k.(*checksumCodec); i >= first && !sum {
			most[i&1] = max(most[i&1], n)
		}
		_, n = k.EncodedSize(n)
	}
	return most
}

// DecodeTail undoes the codecs of a chain from the last down to number first and returns the input of that
// codec, which lies in one of the buffers or in src. size is the length that the whole chain decodes to;
// buffers have the lengths that [Chain.Between] returns.
func (c Chain) DecodeTail(s *Scratch, first, size int, buffers [2][]byte, src []byte) ([]byte, error) {
	for i := len(c) - 1; i >= first; i-- {
		if err := s.context().Err(); err != nil {
			return nil, err
		}
		_, hi := c[:i].EncodedSize(size)
		if k, ok := c[i].(*checksumCodec); ok {
			var err error
			if src, err = k.verify(src); err == nil && len(src) > hi {
				err = errTooLong(hi)
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %w", k.name, err)
			}
			continue
		}
		buf := buffers[i&1][:hi]
		n, err := c[i].Decode(s, buf, src)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c[i].Name(), err)
		}
		src = buf[:n]
	}
	return src, nil
}

// Decode fills dst with the decoded form of src. A result that is shorter or longer than dst is an error. dst
// and src must not overlap. Intermediate buffers come from s; callers with buffers of their own call
// [Chain.DecodeTail] first.
func (c Chain) Decode(s *Scratch, dst, src []byte) error {
	if len(c) == 0 {
		if len(src) != len(dst) {
			return fmt.Errorf("%d bytes, want %d", len(src), len(dst))
		}
		copy(dst, src)
		return nil
	}
	if len(c) > 1 {
		most := c.Between(1, len(dst))
		var err error
		if src, err = c.DecodeTail(s, 1, len(dst), [2][]byte{s.between(0, most[0]), s.between(1, most[1])}, src); err != nil {
			return err
		}
	}
	if err := s.context().Err(); err != nil {
		return err
	}
	n, err := c[0].Decode(s, dst, src)
	if err != nil {
		return fmt.Errorf("%s: %w", c[0].Name(), err)
	}
	if n != len(dst) {
		return fmt.Errorf("%s: decodes to %d bytes, want %d", c[0].Name(), n, len(dst))
	}
	return nil
}

// Encode appends the encoded form of src to dst[:0] and returns it.
func (c Chain) Encode(s *Scratch, dst, src []byte) ([]byte, error) {
	if len(c) == 0 {
		return append(dst[:0], src...), nil
	}
	for i := 0; ; i++ {
		step := c.Step()
		c = c[len(step):]
		to := dst
		if len(c) > 0 {
			to = s.between(i&1, 0)
		}
		out, err := step.encode(s, to, src)
		if err != nil || len(c) == 0 {
			return out, err
		}
		s.keep(i&1, out)
		src = out
	}
}

// Step returns the chain's first codec together with the checksums that are appended to its output.
func (c Chain) Step() Chain {
	n := min(1, len(c))
	for n < len(c) {
		if k, ok := c[n].(*checksumCodec); !ok || k.atStart {
			break
		}
		n++
	}
	return c[:n]
}

// encode encodes with a [Chain.Step], using no buffer other than dst.
func (c Chain) encode(s *Scratch, dst, src []byte) ([]byte, error) {
	out, err := c[0].Encode(s, dst, src)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c[0].Name(), err)
	}
	for _, k := range c[1:] {
		out = binary.LittleEndian.AppendUint32(out, k.(*checksumCodec).sum(out))
	}
	return out, nil
}

// Bare returns the chain without the checksums of the stored bytes, which are the codecs at its end.
func (c Chain) Bare() Chain {
	n := len(c)
	for n > 0 {
		if _, ok := c[n-1].(*checksumCodec); !ok {
			break
		}
		n--
	}
	return c[:n]
}

// Verify compares the stored bytes of a chunk with the checksums at the chain's end. It returns the bytes
// without them, which lie in src, and the chain that decodes these.
func (c Chain) Verify(src []byte) (bare Chain, data []byte, err error) {
	bare = c.Bare()
	for i := len(c) - 1; i >= len(bare); i-- {
		k := c[i].(*checksumCodec)
		if src, err = k.verify(src); err != nil {
			return bare, nil, fmt.Errorf("%s: %w", k.name, err)
		}
	}
	return bare, src, nil
}

// only returns the codec of a chain of one codec, and nil for any other chain.
func (c Chain) only() Codec {
	if len(c) == 1 {
		return c[0]
	}
	return nil
}

// Partial returns the codec of a chain of one codec if it can decode parts of a chunk.
func (c Chain) Partial() (PartialDecoder, bool) {
	if len(c) != 1 {
		return nil, false
	}
	p, ok := c[0].(PartialDecoder)
	return p, ok
}

// Prefix returns the codec of a chain of one codec if it can decode the beginning of a chunk.
func (c Chain) Prefix() (PrefixDecoder, bool) {
	if len(c) != 1 {
		return nil, false
	}
	p, ok := c[0].(PrefixDecoder)
	return p, ok
}

// ReadOnly returns an error that wraps ErrReadOnly if a codec of the chain cannot encode, so that an output
// can be refused early.
func (c Chain) ReadOnly() error {
	for _, k := range c {
		if r, ok := k.(interface{ readOnly() error }); ok {
			if err := r.readOnly(); err != nil {
				return fmt.Errorf("codec %q: %w", k.Name(), err)
			}
		}
	}
	return nil
}

// compressors are the codecs that stand in the "compressor" of a .zarray.
var compressors = map[string]bool{"gzip": true, "zlib": true, "zstd": true, "lz4": true, "blosc": true, "bz2": true, "lzma": true}

// MetadataV2 returns the "filters" and the "compressor" of a .zarray, nil if absent. The last codec becomes
// the compressor if it is one.
func (c Chain) MetadataV2() (filters []json.RawMessage, compressor json.RawMessage, err error) {
	for i, k := range c {
		m, err := k.MetadataV2()
		if err != nil {
			return nil, nil, fmt.Errorf("codec %q: %w", k.Name(), err)
		}
		if compressors[k.Name()] && i == len(c)-1 {
			return filters, m, nil
		}
		filters = append(filters, m)
	}
	return filters, nil, nil
}

// errShort returns the error of input that ends too early.
func errShort(off int) error { return fmt.Errorf("truncated at byte %d", off) }

// errTooLong returns ErrTooLong with the exceeded limit.
func errTooLong(want int) error { return fmt.Errorf("%w (%d)", ErrTooLong, want) }

var errNegative = errors.New("negative length")
