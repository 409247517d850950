package benchzarr

import (
	"encoding/binary"

	"strata/pkg/zarr"
)

// The checksum of an operation, ck, is a sampled sum that any program can compute
// (docs/bench-zarr.md says the same in words):
//
//	for each box that is read, of shape n, numbered in C order by L = 0, 1, …:
//	    sum += (k + 1) × u(L = k × step)          modulo 2^64, k = 0, 1, …
//	ck = (sum XOR sum >> 32) AND 2^32 − 1
//
// where u is the element's bytes as a little-endian unsigned number (of complex128 the sum of
// its two halves). It depends on the elements and their places, and not on how the boxes were
// read. The step is [wholeStep] where the box is the whole array, else [boxStep].
const (
	WholeStep = 65537
	boxStep   = 4097
)

// Checksum is the sum of one operation.
type Checksum uint64

// Value returns ck.
func (c Checksum) Value() uint32 { return uint32(c) ^ uint32(c>>32) }

// Add adds those samples of a box of the given shape that lie in a part of it. data holds the part's elements of
// size bytes, in C order.
func (c *Checksum) Add(shape []int, step int, part zarr.Region, size int, data []byte) {
	var first, last, total uint64 = 0, 0, 1
	for d, n := range shape {
		if part.Shape[d] == 0 {
			return
		}
		first = first*uint64(n) + uint64(part.Start[d])
		last = last*uint64(n) + uint64(part.Start[d]+part.Shape[d]-1)
		total *= uint64(n)
	}
	for k := (first + uint64(step) - 1) / uint64(step); k*uint64(step) <= last && k*uint64(step) < total; k++ {
		if at, ok := within(shape, part, k*uint64(step)); ok {
			*c += Checksum((k + 1) * element(data[at*size:], size))
		}
	}
}

// within returns the number of an element in a part, given its number in the whole, or false if it lies outside.
func within(shape []int, part zarr.Region, l uint64) (int, bool) {
	at, stride := 0, 1
	for d := len(shape) - 1; d >= 0; d-- {
		n := uint64(shape[d])
		i := int(l%n) - part.Start[d]
		l /= n
		if i < 0 || i >= part.Shape[d] {
			return 0, false
		}
		at += i * stride
		stride *= part.Shape[d]
	}
	return at, true
}

// element returns the bytes of an element as a number.
func element(b []byte, size int) uint64 {
	switch size {
	case 1:
		return uint64(b[0])
	case 2:
		return uint64(binary.LittleEndian.Uint16(b))
	case 4:
		return uint64(binary.LittleEndian.Uint32(b))
	case 8:
		return binary.LittleEndian.Uint64(b)
	}
	return binary.LittleEndian.Uint64(b) + binary.LittleEndian.Uint64(b[8:])
}
