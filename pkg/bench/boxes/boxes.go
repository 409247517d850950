// Package boxes chooses the boxes of an array that benchmarks read: the whole array in parts, boxes at places
// that other programs compute too, planes.
package boxes

import (
	"slices"

	"strata/pkg/zarr"
)

// Split divides an array of the given shape into boxes, in C order; boxes at the far edges are cut.
func Split(shape, unit []int) []zarr.Region {
	var list []zarr.Region
	at := make([]int, len(shape))
	for {
		r := zarr.Region{Start: slices.Clone(at), Shape: make([]int, len(shape))}
		for d := range at {
			r.Shape[d] = min(unit[d], shape[d]-at[d])
		}
		list = append(list, r)
		d := len(at) - 1
		for ; d >= 0; d-- {
			if at[d] += unit[d]; at[d] < shape[d] {
				break
			}
			at[d] = 0
		}
		if d < 0 {
			return list
		}
	}
}

// Random returns boxes with edges of the given length, or the array's if shorter, at places derived from the
// seed.
func Random(shape []int, edge, count int, seed uint64) []zarr.Region {
	p := places(seed)
	var list []zarr.Region
	for range count {
		r := zarr.Region{Start: make([]int, len(shape)), Shape: make([]int, len(shape))}
		for d, n := range shape {
			r.Shape[d] = min(edge, n)
			r.Start[d] = p.next(n - r.Shape[d] + 1)
		}
		list = append(list, r)
	}
	return list
}

// Slabs returns planes across each axis, just behind the middle.
func Slabs(shape []int) []zarr.Region {
	var list []zarr.Region
	for d, n := range shape {
		r := zarr.Region{Start: make([]int, len(shape)), Shape: slices.Clone(shape)}
		r.Start[d], r.Shape[d] = min(n/2+1, n-1), 1
		list = append(list, r)
	}
	return list
}

// places is a generator of places that every program has: Knuth's MMIX constants, the upper bits.
type places uint64

func (p *places) next(n int) int {
	*p = *p*6364136223846793005 + 1442695040888963407
	return int(uint64(*p) >> 33 % uint64(n))
}
