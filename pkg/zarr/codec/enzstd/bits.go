package enzstd

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// bitWriter appends bits to out, the first to the lowest bits of its bytes, as both entropy coders of Zstandard do.
type bitWriter struct {
	out []byte
	acc uint64
	n   uint // bits in acc
}

// add appends the lowest n bits of v, of which the others must be zero. At most 32 at a time.
func (w *bitWriter) add(v uint64, n uint) {
	w.acc |= v << (w.n & 63)
	w.n += n
	if w.n >= 32 {
		w.out = binary.LittleEndian.AppendUint32(w.out, uint32(w.acc))
		w.acc >>= 32
		w.n -= 32
	}
}

// pad fills the last byte with zeros and returns the bytes written.
func (w *bitWriter) pad() []byte {
	for ; w.n > 0; w.n -= min(w.n, 8) {
		w.out = append(w.out, byte(w.acc))
		w.acc >>= 8
	}
	return w.out
}

// close ends a stream that is read backwards: its last bit is a one.
func (w *bitWriter) close() []byte {
	w.add(1, 1)
	return w.pad()
}

// logs has the binary logarithms of 128 … 255 in 256ths of a bit.
var logs = func() (t [128]uint32) {
	for i := range t {
		t[i] = uint32(math.Round(256 * math.Log2(float64(128+i))))
	}
	return
}()

// log2 returns the binary logarithm of x, which is not 0, in 256ths of a bit.
func log2(x uint32) uint32 {
	n := bits.Len32(x)
	if n <= 8 {
		return logs[x<<(8-n)&127] - uint32(8-n)<<8
	}
	return logs[x>>(n-8)&127] + uint32(n-8)<<8
}

// highBit returns the position of the highest bit of x, which is not 0.
func highBit(x uint32) uint { return uint(bits.Len32(x)) - 1 }
