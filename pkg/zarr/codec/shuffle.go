package codec

import (
	"fmt"
	"math"

	"strata/pkg/dtype"
	"strata/pkg/zarr/codec/shuffle"
)

// shuffleCodec is numcodecs' byte shuffle: first the first bytes of all
// elements, then the second bytes, and so on.
type shuffleCodec struct {
	described
	size int
}

// Shuffle returns numcodecs' filter that groups the bytes of elements of the given size, at least 1, by
// significance.
func Shuffle(elementsize int) Codec {
	return &shuffleCodec{described{"shuffle", map[string]any{"elementsize": elementsize}}, elementsize}
}

func parseShuffle(c *config, _ dtype.Type) Codec {
	return Shuffle(max(1, c.integer("elementsize", math.MinInt32, 1<<20, 4))) // less is no shuffle, in numcodecs
}

func (f *shuffleCodec) EncodedSize(n int) (lo, hi int) { return n, n }

func (f *shuffleCodec) check(n int) error {
	if f.size > 1 && n%f.size != 0 {
		return fmt.Errorf("%d bytes are not a multiple of the element size %d", n, f.size)
	}
	return nil
}

func (f *shuffleCodec) Decode(_ *Scratch, dst, src []byte) (int, error) {
	if len(src) > len(dst) {
		return 0, errTooLong(len(dst))
	}
	if err := f.check(len(src)); err != nil {
		return 0, err
	}
	shuffle.Unshuffle(dst[:len(src)], src, f.size)
	return len(src), nil
}

func (f *shuffleCodec) Encode(_ *Scratch, dst, src []byte) ([]byte, error) {
	if err := f.check(len(src)); err != nil {
		return nil, err
	}
	dst = room(&dst, len(src))
	shuffle.Shuffle(dst, src, f.size)
	return dst, nil
}
