// Package kernels holds the operators of package filter as CUDA kernels: C++ sources
// (.cu), and the PTX that scripts/kernels.sh compiles them to, which is what ships.
//
// A function here queues an operator on a stream; what it computes, to the last bit
// or to a tolerance that it names, is what its twin in package filter computes. NaN is NaN
// for both; which of its many bit patterns it has is up to the processor.
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
