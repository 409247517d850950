// Package kernels holds the operators of package filter as CUDA kernels: C++ sources (.cu) and, packed in
// the folder code, what scripts/kernels.sh compiles them to: machine code for existing GPUs, and PTX for future
// ones, which the driver compiles.
//
// Each function queues an operator on a stream. It computes the same as its counterpart in package filter, to
// the last bit. NaN stays NaN; its bit pattern depends on the processor.
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

// names maps element types to the suffixes of kernel names.
var names = map[dtype.Type]string{
	dtype.Uint8: "u8", dtype.Int8: "i8", dtype.Uint16: "u16", dtype.Int16: "i16", dtype.Uint32: "u32",
	dtype.Int32: "i32", dtype.Uint64: "u64", dtype.Int64: "i64", dtype.Float32: "f32", dtype.Float64: "f64",
}

// typed finds the kernel of an operator for elements of type t: all are called after the
// operator and the type.
func typed(s *gpu.Stream, file, operator string, t dtype.Type) (*gpu.Kernel, error) {
	name, ok := names[t]
	if !ok {
		return nil, fmt.Errorf("no kernel %s for %v", operator, t)
	}
	return get(s.Device(), file, operator+"_"+name)
}
