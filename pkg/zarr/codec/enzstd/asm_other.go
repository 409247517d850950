//go:build !amd64 || noasm

package enzstd

const haveBMI2 = false

func encodePair(a, b *huffStream, fours int, codes *[256]huffCode, _ bool) {
	encodePairScalar(a, b, fours, codes)
}

func (w *stateWriter) write(bool) { w.writeScalar() }
