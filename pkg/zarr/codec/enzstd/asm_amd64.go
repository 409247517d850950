//go:build !noasm

package enzstd

import "golang.org/x/sys/cpu"

var haveBMI2 = cpu.X86.HasBMI2

//go:noescape
func encodePairBMI2(a, b *huffStream, fours int, codes *[256]huffCode)

// encodePair runs encodePairScalar, or a faster version if the processor allows.
func encodePair(a, b *huffStream, fours int, codes *[256]huffCode, fast bool) {
	if !fast || len(a.dst) < a.at+streamBound(4*fours) || len(b.dst) < b.at+streamBound(4*fours) {
		encodePairScalar(a, b, fours, codes)
		return
	}
	encodePairBMI2(a, b, fours, codes)
}

//go:noescape
func writeStatesBMI2(w *stateWriter)

// write runs writeScalar, or a faster version if the processor allows.
func (w *stateWriter) write(fast bool) {
	if fast {
		writeStatesBMI2(w)
		return
	}
	w.writeScalar()
}
