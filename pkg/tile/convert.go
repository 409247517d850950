package tile

import (
	"fmt"

	"strata/pkg/dtype"
)

// convertible returns an error for a source type that cannot be converted to numbers.
func convertible(from dtype.Type) error {
	if from.IsInteger() || from == dtype.Float32 || from == dtype.Float64 {
		return nil
	}
	return fmt.Errorf("pixels of type %s cannot be made into numbers (known: int8 … uint64, float32, float64)", from)
}

// tileBytes returns the memory in which n pixels are loaded and converted.
func tileBytes[T dtype.Element](from dtype.Type, n int) int {
	return n * max(from.Size(), sizeOf[T]())
}

// loadArea returns where in a buffer of tileBytes the pixels of a source are to be loaded so that convert can
// work in place: at its end when pixels grow.
func loadArea[T dtype.Element](from dtype.Type, buf []byte, n int) []byte {
	off := n * max(0, sizeOf[T]()-from.Size())
	return buf[off : off+n*from.Size()]
}

// convert converts the n pixels in loadArea to n elements at the start of the buffer. Values out of T's range become
// its nearest value; fractions are rounded to the nearest integer, ties to even; NaN becomes 0 in an integer.
func convert[T dtype.Element](from dtype.Type, buf []byte, n int) []T {
	to := dtype.Slice[T](buf)[:n]
	if from == dtype.Of[T]() {
		return to
	}
	dtype.ConvertSlice(to, loadArea[T](from, buf, n), from)
	return to
}
