package main

import (
	"strata/pkg/dtype"
	"strata/pkg/filter"
	"strata/pkg/gpu"
	"strata/pkg/gpu/kernels"
)

// measurePlanes measures the kernels that stack slices, on as many float32 planes of ny × nx pixels as fit into a
// and b, which have the same size. The planes are offset against rows of 128 bytes, like slices on a canvas.
func measurePlanes(s *gpu.Stream, run func(name string, moved int64, f func() error) error, a, b gpu.Span, ny, nx int) error {
	stride := int64(ny) * int64(nx)
	nz := int(min(a.Bytes(), b.Bytes()) / (4 * stride))
	if nz < 1 {
		return nil
	}
	height, width := ny-1, nx-5
	n := int64(nz) * int64(height) * int64(width)
	box := func(m gpu.Span) kernels.Planes {
		at := 4 * int64(nx+5)
		return kernels.Planes{At: m.From(at, m.Bytes()-at), Pitch: nx, Stride: stride}
	}
	old, moving := box(b), box(a)
	table, err := s.Device().Memory().Get(8*int64(nz) + 8*stride)
	if err != nil {
		return err
	}
	defer table.Release()
	s.Zero(table.Span)
	weights, acc := table.From(0, 8*int64(nz)), table.From(8*int64(nz), 8*stride)
	median, err := kernels.NewSelector(s.Device(), 50, 1, false)
	if err != nil {
		return err
	}
	defer median.Release()
	turn := filter.Rigid{Angle: 0.01, TX: 1.5, TY: -2.5, CX: float64(nx) / 2, CY: float64(ny) / 2}
	for _, k := range []struct {
		name  string
		moved int64
		f     func() error
	}{
		{"place_uint16", 6 * n, func() error {
			return kernels.Place(s, old, a, dtype.Uint16, nz, height, width, 1.25, gpu.Span{})
		}},
		{"place_float32", 8 * n, func() error {
			return kernels.Place(s, old, a, dtype.Float32, nz, height, width, 1, gpu.Span{})
		}},
		{"brighten", 8 * n, func() error { return kernels.Brighten(s, old, nz, height, width, 1) }},
		{"mix", 12 * n, func() error { return kernels.Mix(s, old, moving, nz, height, width, weights, 1.25, 0, 0) }},
		{"sum_planes", 4*n + 8*stride, func() error { return kernels.SumPlanes(s, acc, moving, nz, height, width, true) }},
		{"select_digits", 8 * n, func() error {
			median.Begin(s)
			return median.Add(s, old, moving, nz, height, width)
		}},
		{"rigid", 8 * n, func() error {
			all := kernels.Box{Height: height, Width: width}
			return kernels.ResampleRigid(s, old, a, turn, nz, ny, nx, all, weights)
		}},
	} {
		if err := run(k.name, k.moved, k.f); err != nil {
			return err
		}
	}
	return nil
}
