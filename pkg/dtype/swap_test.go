package dtype

import (
	"bytes"
	"slices"
	"testing"
)

func TestSwapBytes(t *testing.T) {
	for _, unit := range []int{1, 2, 4, 8} {
		for n := range 70 {
			src := make([]byte, n)
			for i := range src {
				src[i] = byte(i*7 + 1)
			}
			want := bytes.Clone(src)
			for i := 0; i+unit <= n; i += unit {
				slices.Reverse(want[i : i+unit])
			}
			whole := n / unit * unit
			dst := make([]byte, n)
			if SwapBytes(dst, src, unit); !bytes.Equal(dst[:whole], want[:whole]) {
				t.Errorf("unit %d, %d bytes: %v, want %v", unit, n, dst, want)
			}
			if SwapBytes(src, src, unit); !bytes.Equal(src, want) {
				t.Errorf("unit %d, %d bytes, in place: %v, want %v", unit, n, src, want)
			}
		}
	}
}

func BenchmarkSwapBytes(b *testing.B) {
	src, dst := make([]byte, 64<<10), make([]byte, 64<<10)
	for _, unit := range []int{2, 4, 8} {
		b.Run(string(rune('0'+unit)), func(b *testing.B) {
			b.SetBytes(int64(len(src)))
			for b.Loop() {
				SwapBytes(dst, src, unit)
			}
		})
	}
}
