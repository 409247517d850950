package main

import (
	"strata/pkg/gpu"
	"strata/pkg/gpu/kernels"
)

// measureScatter measures assembling a volume with rows of 1024 uint16 from chunks of 64³: whole ones, and ones
// without their first column, so that nothing is aligned.
func measureScatter(s *gpu.Stream, run func(name string, moved int64, f func() error) error, a, b gpu.Span) error {
	const side, chunk = 64, 64 * 64 * 64 * 2
	n := min(a.Bytes(), b.Bytes()) / chunk / 16 * 16 // rows of chunks
	if n == 0 {
		return nil
	}
	row := int64(1024 * 2)
	plane := n / 16 * side * row // chunks lie side by side along y
	boxes := func(first int64) (all []kernels.Part) {
		for i := range n {
			all = append(all, kernels.Part{
				Shape: []int{side, side, int(side - first)},
				Src:   i*chunk + 2*first, From: []int64{side * side * 2, side * 2, 2},
				Dst: i/16*side*row + i%16*side*2, To: []int64{plane, row, 2},
			})
		}
		return all
	}
	bytes := kernels.ScatterTable(int(n))
	table, err := s.Device().Host(int(bytes))
	if err != nil {
		return err
	}
	defer table.Release()
	onDevice, err := s.Device().Memory().Get(bytes)
	if err != nil {
		return err
	}
	defer onDevice.Release()
	for _, c := range []struct {
		name  string
		first int64
	}{{"scatter", 0}, {"scatter, misaligned", 1}} {
		list := boxes(c.first)
		err := run(c.name, 2*n*chunk*(side-c.first)/side, func() error {
			return kernels.Scatter(s, b, a, list, []byte{0, 0}, table.B, onDevice.Span)
		})
		if err != nil {
			return err
		}
	}
	return nil
}
