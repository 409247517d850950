package gpu

import (
	"fmt"
	"math"
	"unsafe"
)

const (
	maxArgs  = 64
	argsSize = maxArgs * (8 + 8) // values, then their addresses
)

// Dim is the number of blocks of a grid, or of threads of a block, along x, y and z.
type Dim [3]int

// Launch queues a kernel. Arguments are spans (their addresses), and int32, uint32,
// int64, uint64, float32 and float64 as the kernel declares them.
func (s *Stream) Launch(k *Kernel, grid, block Dim, args ...any) {
	if s.err != nil {
		return
	}
	if len(args) > maxArgs {
		s.fail(fmt.Errorf("%s: %d arguments, at most %d", k.name, len(args), maxArgs))
		return
	}
	values := unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(s.args))), maxArgs)
	addresses := unsafe.Slice((*uintptr)(unsafe.Pointer(&s.args[maxArgs*8])), maxArgs)
	for i, a := range args {
		v, err := bits(a)
		if err != nil {
			s.fail(fmt.Errorf("%s: argument %d: %w", k.name, i, err))
			return
		}
		values[i], addresses[i] = v, uintptr(unsafe.Pointer(&values[i]))
	}
	s.call(k.name, func() result {
		return driver.LaunchKernel(k.handle, uint32(grid[0]), uint32(grid[1]), uint32(grid[2]), uint32(block[0]), uint32(block[1]), uint32(block[2]),
			0, s.handle, unsafe.Pointer(unsafe.SliceData(addresses)), nil)
	})
}

// bits returns an argument's representation in memory; both architectures are little-endian.
func bits(a any) (uint64, error) {
	switch v := a.(type) {
	case Span:
		return v.address, nil
	case *Buffer:
		return v.address, nil
	case int32:
		return uint64(uint32(v)), nil
	case uint32:
		return uint64(v), nil
	case int64:
		return uint64(v), nil
	case uint64:
		return v, nil
	case float32:
		return uint64(math.Float32bits(v)), nil
	case float64:
		return math.Float64bits(v), nil
	}
	return 0, fmt.Errorf("a kernel takes no %T", a)
}
