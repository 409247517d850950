// Package kernels holds the operators of package filter as CUDA kernels: C++ sources
// (.cu), and the PTX that scripts/kernels.sh compiles them to, which is what ships.
//
// A function here queues an operator on a stream. It computes what its twin in package
// filter computes, to the last bit. NaN is NaN for both; which of its many bit patterns it
// has is up to the processor.
package kernels

import (
	"embed"
	"errors"
	"fmt"
	"strings"

	"strata/pkg/dtype"
	"strata/pkg/gpu"
)

//go:embed *.ptx
var ptx embed.FS

// get finds a kernel of a file of this folder.
func get(d *gpu.Device, file, name string) (*gpu.Kernel, error) {
	return d.Kernel(name, func() (string, error) {
		b, err := ptx.ReadFile(file + ".ptx")
		if err != nil {
			return "", err
		}
		return alone(string(b), name)
	})
}

const entry = ".visible .entry "

// alone is PTX of one kernel of a file: the driver takes long to compile the kernels for
// all types of element, of which a program needs one.
func alone(file, name string) (string, error) {
	head, _, _ := strings.Cut(file, entry)
	from := strings.Index(file, entry+name+"(")
	if from < 0 {
		return "", errors.New("it is not in the PTX")
	}
	kernel := file[from:]
	end := strings.Index(kernel, "\n}\n")
	if end < 0 {
		return "", errors.New("the PTX has no end")
	}
	return head + kernel[:end+3], nil
}

// names are what kernels for an element type end with.
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
