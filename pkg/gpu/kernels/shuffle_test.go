//go:build !nocuda

package kernels

import (
	"fmt"
	"testing"

	"strata/pkg/zarr/codec/shuffle"
)

func TestShuffles(t *testing.T) {
	b := open(t)
	for _, c := range []Blocks{
		{Size: 4096, Block: 1024, Stride: 4096, Count: 2},
		{Size: 5000, Block: 2048, Stride: 5008, Count: 3}, // the last block is shorter
		{Size: 999, Block: 250, Stride: 1001, Count: 2},   // nothing is aligned
		{Size: 70, Block: 70, Stride: 70, Count: 1},
		{Size: 3, Block: 3, Stride: 3, Count: 2},
	} {
		n := int(c.Stride)*(c.Count-1) + int(c.Size)
		v := sample[uint8](n)
		src, dst := upload(b, v), b.alloc(n)
		for _, size := range []int{1, 2, 3, 4, 8, 12, 16, 200} {
			for name, f := range map[string]struct {
				cpu func(dst, src []byte, typesize int)
				gpu func() error
			}{
				"into planes": {shuffle.Shuffle, func() error { return Shuffle(b.stream, dst, src, c, size) }},
				"bytes":       {shuffle.Unshuffle, func() error { return Unshuffle(b.stream, dst, src, c, size) }},
				"bits":        {shuffle.BitUnshuffle, func() error { return BitUnshuffle(b.stream, dst, src, c, size) }},
			} {
				want := make([]byte, n)
				for k := range c.Count {
					for at := int64(0); at < c.Size; at += c.Block {
						from, to := int64(k)*c.Stride+at, int64(k)*c.Stride+min(at+c.Block, c.Size)
						f.cpu(want[from:to], v[from:to], size)
					}
				}
				b.stream.Zero(dst)
				b.check(f.gpu())
				equal(t, fmt.Sprintf("%s of elements of %d in %+v", name, size, c), download[uint8](b, dst), want)
			}
		}
	}
	if err := Unshuffle(b.stream, b.alloc(16), b.alloc(16), Blocks{Size: 16, Block: 0, Count: 1}, 2); err == nil {
		t.Error("blocks of no bytes were taken")
	}
}
