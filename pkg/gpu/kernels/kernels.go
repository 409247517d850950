// Package kernels holds the operators of package filter as CUDA kernels: C++ sources
// (.cu), and what scripts/kernels.sh compiles them to. Machine code ships for the GPUs that there are, and PTX
// for those to come, which the driver compiles.
//
// A function here queues an operator on a stream; what it computes, to the last bit
// or to a tolerance that it names, is what its twin in package filter computes. NaN is NaN
// for both; which of its many bit patterns it has is up to the processor.
package kernels

import (
	"fmt"

	"strata/pkg/dtype"
	"strata/pkg/gpu"
)

// get finds a kernel of a file of this folder.
func get(d *gpu.Device, file, name string) (*gpu.Kernel, error) {
	k, err := d.Kernel(code, name)
	if err != nil {
		return nil, fmt.Errorf("%s.cu: %w", file, err)
	}
	return k, nil
}

// suffix is how kernels for an element type are called.
func suffix(t dtype.Type) (string, error) {
	switch t {
	case dtype.Uint8:
		return "u8", nil
	case dtype.Int8:
		return "i8", nil
	case dtype.Uint16:
		return "u16", nil
	case dtype.Int16:
		return "i16", nil
	case dtype.Uint32:
		return "u32", nil
	case dtype.Int32:
		return "i32", nil
	case dtype.Uint64:
		return "u64", nil
	case dtype.Int64:
		return "i64", nil
	case dtype.Float32:
		return "f32", nil
	case dtype.Float64:
		return "f64", nil
	}
	return "", fmt.Errorf("no kernels for %v", t)
}
