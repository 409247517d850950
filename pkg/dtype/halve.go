package dtype

// Halver returns a function that computes a row of pixels as means of 2 × 2 pixels of two rows, a and b, for
// numbers of a type with interleaved samples. Integers are rounded half to even.
func Halver(t Type) func(dst, a, b []byte, samples int) {
	switch t {
	case Uint8:
		return halveInts[uint8]
	case Int8:
		return halveInts[int8]
	case Uint16:
		return halveInts[uint16]
	case Int16:
		return halveInts[int16]
	case Uint32:
		return halveInts[uint32]
	case Int32:
		return halveInts[int32]
	case Float64:
		return halveFloats[float64]
	}
	return halveFloats[float32]
}

func halveInts[T uint8 | int8 | uint16 | int16 | uint32 | int32](db, ab, bb []byte, samples int) {
	d, a, b := Slice[T](db), Slice[T](ab), Slice[T](bb)
	for i, s := 0, 0; i < len(d); s = i / samples * samples {
		for range samples {
			k := i + s
			sum := int64(a[k]) + int64(a[k+samples]) + int64(b[k]) + int64(b[k+samples])
			d[i] = T((sum + 1 + sum>>2&1) >> 2)
			i++
		}
	}
}

func halveFloats[T float32 | float64](db, ab, bb []byte, samples int) {
	d, a, b := Slice[T](db), Slice[T](ab), Slice[T](bb)
	for i := range d {
		k := i + i/samples*samples
		d[i] = (a[k] + a[k+samples] + b[k] + b[k+samples]) / 4
	}
}
