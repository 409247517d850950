package kernels

import (
	"strata/pkg/dtype"
	"strata/pkg/filter"
	"strata/pkg/gpu"
)

// Magnitudes queues filter.Magnitudes of n voxels of type t.
func Magnitudes(s *gpu.Stream, dst, src gpu.Span, t dtype.Type, n int64, search *filter.InterfaceSearch) error {
	name, err := suffix(t)
	if err != nil {
		return err
	}
	k, err := get(s.Device(), "interface", "magnitudes_"+name)
	if err != nil {
		return err
	}
	log := int32(0)
	if search.Log {
		log = 1
	}
	grid, block := blocks(n)
	s.Launch(k, grid, block, src, dst, n, search.Ceiling(), log)
	return nil
}

// WindowMean queues one axis of filter.MeanFilter: src and dst are (outer, n, inner) of
// float32, the mean is over w samples of the middle axis.
func WindowMean(s *gpu.Stream, dst, src gpu.Span, outer int64, n int, inner int64, w int) error {
	k, err := get(s.Device(), "interface", "window_mean")
	if err != nil {
		return err
	}
	grid, block := line(outer, n, inner)
	s.Launch(k, grid, block, src, dst, int32(outer), int32(n), inner, int32(w))
	return nil
}

// Steepest queues the search of filter.Interfaces in nz planes of n filtered
// magnitudes: arg, int32, is the plane of the largest derivative of each A-line, peak
// how large it is, float32. weights are filter.InterfaceSearch.Derivative, as float32
// on the device, radius of them.
func Steepest(s *gpu.Stream, arg, peak, src gpu.Span, nz int, n int64, limit int, weights gpu.Span, radius int) error {
	k, err := get(s.Device(), "interface", "steepest")
	if err != nil {
		return err
	}
	grid, block := blocks(n)
	s.Launch(k, grid, block, src, arg, peak, weights, int32(radius), n, int32(nz), int32(limit))
	return nil
}
