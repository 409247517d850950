package ngff

import (
	"fmt"
	"iter"
	"math"
	"math/bits"
	"slices"

	"strata/pkg/dtype"
)

// MaxLevels returns the maximum number of levels below level 0: the last one still has at least one voxel
// along each spatial axis.
func MaxLevels(shape []int, axes []Axis) int {
	n := -1
	for d, a := range axes {
		if a.Type != TypeSpace {
			continue
		}
		if k := bits.Len(uint(max(shape[d], 1))) - 1; n < 0 || k < n {
			n = k
		}
	}
	return max(n, 0)
}

// LevelShapes returns the shapes of level 0 and of the given number of levels
// below it, capped to [MaxLevels]: spatial axes are halved and rounded down,
// others kept.
func LevelShapes(shape []int, axes []Axis, levels int) [][]int {
	out := [][]int{append([]int(nil), shape...)}
	for range min(levels, MaxLevels(shape, axes)) {
		next := append([]int(nil), out[len(out)-1]...)
		for d, a := range axes {
			if a.Type == TypeSpace {
				next[d] /= 2
			}
		}
		out = append(out, next)
	}
	return out
}

// halvedAxes returns which padded axes a pyramid halves, or an error: the spatial axes must be the last two
// or three of at most five.
func halvedAxes(axes []Axis) (halve [rank]bool, err error) {
	if len(axes) < 2 || len(axes) > rank {
		return halve, fmt.Errorf("%d axes (must be 2 to 5)", len(axes))
	}
	space := 0
	for d, a := range axes {
		if a.Type == TypeSpace {
			halve[rank-len(axes)+d] = true
			space++
		} else if space > 0 {
			return halve, fmt.Errorf("axis %q of type %q after a space axis (space axes must be the last)", a.Name, a.Type)
		}
	}
	if space < 2 || space > 3 {
		return halve, fmt.Errorf("%d space axes (must be 2 or 3)", space)
	}
	return halve, nil
}

// Downsample computes one pyramid level from the whole of the level above it,
// and returns its elements and shape. It is the reference for what [Writer]
// makes piece by piece, bit for bit.
//
// Along a spatial axis of n samples, output i of m = floor(n/2) lies at
// p = (i+½)·n/m − ½. With lo = floor(p), t = p − lo:
//
//	n even:  v = in[2i] + in[2i+1]
//	n odd:   v = (1−t)·in[lo] + t·in[lo+1];  for t = 0: ½·in[lo] + ½·in[lo]
//
// t is an exact quotient of integers; 1−t and t are rounded to float64 and, for
// float32 arithmetic, from there to float32. The axes are taken in the order x
// (last), y, z, every sum and every product is rounded on its own (none are
// fused), and the result is multiplied once by ½ for each even spatial axis. All
// of this is float32 for elements of float16, float32 and integers up to 16 bits, and
// float64 for float64 and wider integers. Integers are then rounded half to even and clamped.
// (Where all axes are even, integers up to 32 bits are summed as integers: those
// sums are exact, so the result is the same.)
func Downsample(t dtype.Type, src []byte, shape []int, axes []Axis) ([]byte, []int, error) {
	shrink, err := shrinkerOf(t, false)
	if err != nil {
		return nil, nil, err
	}
	halve, err := halvedAxes(axes)
	if err != nil {
		return nil, nil, err
	}
	if len(shape) != len(axes) {
		return nil, nil, fmt.Errorf("shape %v for %d axes", shape, len(axes))
	}
	in := padded(shape, 1)
	if len(src) != in.volume()*t.Size() {
		return nil, nil, fmt.Errorf("%d bytes for shape %v of %s", len(src), shape, t)
	}
	l := newLattice(in, halve)
	var to point
	for d, a := range l.axes {
		if to[d] = a.out; a.out == 0 {
			return nil, nil, fmt.Errorf("shape %v cannot be halved", shape)
		}
	}
	out := to[rank-len(shape):]
	dst := make([]byte, to.volume()*t.Size())
	shrink(l, memory{data: dst, stride: contiguous(to)}, memory{data: src, stride: contiguous(in)}, box{hi: to})
	return dst, append([]int(nil), out...), nil
}

// TileOrder visits the tiles of a grid in the order that makes a pyramid wait least: two by two (by two)
// along the spatial axes, then those blocks two by two, and so on. It yields the start of each tile of level
// 0; the caller may keep the slice.
func TileOrder(shape, tile []int, axes []Axis) iter.Seq[[]int] {
	return func(yield func([]int) bool) {
		w := tileWalk{tile: tile, grid: make([]int, len(shape)), at: make([]int, len(shape)), yield: yield}
		side := 1 // tiles along an edge of the block that covers the grid
		for d := range shape {
			w.grid[d] = (shape[d] + tile[d] - 1) / tile[d]
			if axes[d].Type != TypeSpace {
				w.others = append(w.others, d)
				continue
			}
			w.spatial = append(w.spatial, d)
			for side < w.grid[d] {
				side *= 2
			}
		}
		w.frames(w.others, side)
	}
}

// tileWalk goes through a grid of tiles, time points and channels one after the other.
type tileWalk struct {
	tile, grid      []int // shape of a tile; number of tiles along each axis
	spatial, others []int // axes
	at              []int // index of the current tile, or of the first one of the current block
	yield           func(start []int) bool
}

// frames goes through all tiles of the remaining axes that are not spatial. It returns false once yield has.
func (w *tileWalk) frames(axes []int, side int) bool {
	if len(axes) == 0 {
		return w.block(side)
	}
	d := axes[0]
	defer func() { w.at[d] = 0 }()
	for w.at[d] = 0; w.at[d] < w.grid[d]; w.at[d]++ {
		if !w.frames(axes[1:], side) {
			return false
		}
	}
	return true
}

// block goes through the tiles of the block at w.at that is so many tiles wide, half by half along each spatial axis.
func (w *tileWalk) block(side int) bool {
	if side == 1 {
		start := make([]int, len(w.at))
		for d := range w.at {
			start[d] = w.at[d] * w.tile[d]
		}
		return w.yield(start)
	}
	origin := slices.Clone(w.at)
	defer copy(w.at, origin)
	for corner := range 1 << len(w.spatial) {
		inside := true
		for i, d := range w.spatial {
			far := corner >> (len(w.spatial) - 1 - i) & 1
			w.at[d] = origin[d] + far*side/2
			inside = inside && w.at[d] < w.grid[d]
		}
		if inside && !w.block(side/2) {
			return false
		}
	}
	return true
}

// intersect returns the common part of two boxes that overlap.
func intersect(a, b box) box {
	for d := range rank {
		a.lo[d], a.hi[d] = max(a.lo[d], b.lo[d]), min(a.hi[d], b.hi[d])
	}
	return a
}

// copyBox copies the elements of a box that lies in both memories.
func copyBox(dst, src memory, b box, elem int) {
	n := (b.hi[axisX] - b.lo[axisX]) * elem
	var i point
	for i[0] = b.lo[0]; i[0] < b.hi[0]; i[0]++ {
		for i[1] = b.lo[1]; i[1] < b.hi[1]; i[1]++ {
			for i[2] = b.lo[2]; i[2] < b.hi[2]; i[2]++ {
				for i[3] = b.lo[3]; i[3] < b.hi[3]; i[3]++ {
					i[4] = b.lo[4]
					copy(dst.data[dst.at(i)*elem:][:n], src.data[src.at(i)*elem:][:n])
				}
			}
		}
	}
}

// mostVoxels bounds the axes of levels: wrong voxel sizes make longer ones, which no memory holds either.
const mostVoxels = 1 << 40

// AnalysisLevels returns the shapes of the levels of a pyramid for analysis: of voxel sizes that an atlas or a script
// asks for, not of powers of two (stages specification, "OME-Zarr output and pyramids"). shape and voxel are those of
// the base; targets are voxel sizes in the same unit, in any order. Targets finer than the finest axis of the base are
// left out. Isotropic levels have the target along every axis; others keep the base's proportions, with the target
// along its finest axis. An axis of n voxels has max(1, ⌊n/factor + 1e-9⌋) of them. If no target is left there are no
// levels, and the base is kept.
func AnalysisLevels(shape []int, voxel, targets []float64, isotropic bool) [][]int {
	finest := slices.Min(voxel)
	sorted := slices.Compact(slices.Sorted(slices.Values(targets)))
	var out [][]int
	for _, t := range sorted {
		if t < finest*(1-1e-9) { // 10 µm kept in millimetres need not be 10
			continue
		}
		var level []int
		for d, n := range shape {
			f := t / finest
			if isotropic {
				f = t / voxel[d]
			}
			level = append(level, max(1, int(math.Floor(min(float64(n)/f+1e-9, mostVoxels)))))
		}
		out = append(out, level)
	}
	return out
}
