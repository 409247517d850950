package tile

import (
	"cmp"
	"slices"
)

// Traversal lists the tiles of a grid in the order of visiting. A custom traversal may omit or repeat tiles.
type Traversal func(grid []int) [][]int

// Naive visits tiles in C order: nested loops, the last axis fastest.
func Naive(grid []int) [][]int {
	out := make([][]int, 0, product(grid))
	lo, index := make([]int, len(grid)), make([]int, len(grid))
	for more := product(grid) > 0; more; more = next(index, lo, grid) {
		out = append(out, slices.Clone(index))
	}
	return out
}

// Snake visits tiles to and fro along every axis: consecutive tiles are neighbours.
func Snake(grid []int) [][]int {
	out := Naive(grid)
	for _, index := range out {
		// an axis runs backwards where the steps taken on the slower axes are odd
		steps := 0
		for a, i := range index {
			if steps%2 == 1 {
				index[a] = grid[a] - 1 - i
			}
			steps = steps*grid[a] + i
		}
	}
	return out
}

// Spiral visits each plane of the last two axes from its outer ring inwards, the next plane from its centre
// outwards: consecutive tiles are neighbours.
func Spiral(grid []int) [][]int {
	n := len(grid)
	if n < 2 {
		return Naive(grid)
	}
	plane := spiral(grid[n-2], grid[n-1])
	var out [][]int
	for k, slow := range Snake(grid[:n-2]) {
		for i := range plane {
			p := plane[i]
			if k%2 == 1 {
				p = plane[len(plane)-1-i]
			}
			out = append(out, append(slices.Clone(slow), p[0], p[1]))
		}
	}
	return out
}

func spiral(rows, columns int) [][2]int {
	var out [][2]int
	top, left, bottom, right := 0, 0, rows-1, columns-1
	for top <= bottom && left <= right {
		for x := left; x <= right; x++ {
			out = append(out, [2]int{top, x})
		}
		for y := top + 1; y <= bottom; y++ {
			out = append(out, [2]int{y, right})
		}
		for x := right - 1; x >= left && top < bottom; x-- {
			out = append(out, [2]int{bottom, x})
		}
		for y := bottom - 1; y > top && left < right; y-- {
			out = append(out, [2]int{y, left})
		}
		top, left, bottom, right = top+1, left+1, bottom-1, right-1
	}
	return out
}

// Diagonal visits the tiles by the sum of their indices, within a diagonal in
// C order.
func Diagonal(grid []int) [][]int {
	out := Naive(grid)
	slices.SortStableFunc(out, func(a, b []int) int { return cmp.Compare(sum(a), sum(b)) })
	return out
}

// ZigZag visits the same diagonals as Diagonal, every second one backwards.
func ZigZag(grid []int) [][]int {
	out := Diagonal(grid)
	for i := 0; i < len(out); {
		j := i
		for j < len(out) && sum(out[j]) == sum(out[i]) {
			j++
		}
		if sum(out[i])%2 == 0 {
			slices.Reverse(out[i:j])
		}
		i = j
	}
	return out
}

func sum(v []int) int {
	n := 0
	for _, x := range v {
		n += x
	}
	return n
}

// Hilbert visits the tiles along a Hilbert curve through the smallest cube of
// a power of two that holds the grid: tiles near in the image are near in
// time, which suits small caches. Where all axes are the same power of two,
// consecutive tiles are neighbours.
func Hilbert(grid []int) [][]int {
	out := Naive(grid)
	axes := make([]int, 0, len(grid)) // an axis of one tile has no part in the curve
	bits := 0
	for a, n := range grid {
		if n > 1 {
			axes = append(axes, a)
		}
		for 1<<bits < n {
			bits++
		}
	}
	if len(axes) < 2 {
		return out
	}
	type keyed struct {
		key   []uint64
		index []int
	}
	tiles := make([]keyed, len(out))
	x := make([]uint32, len(axes))
	for i, index := range out {
		for k, a := range axes {
			x[k] = uint32(index[a])
		}
		tiles[i] = keyed{hilbertKey(x, bits), index}
	}
	slices.SortFunc(tiles, func(a, b keyed) int { return slices.Compare(a.key, b.key) })
	for i := range tiles {
		out[i] = tiles[i].index
	}
	return out
}

// hilbertKey returns the distance along the curve, most significant word first. It overwrites x. The
// transformation is Skilling's (Programming the Hilbert curve, AIP Conference Proceedings 707, 2004).
func hilbertKey(x []uint32, bits int) []uint64 {
	n := len(x)
	for q := uint32(1) << (bits - 1); q > 1; q >>= 1 {
		p := q - 1
		for i := range n {
			if x[i]&q != 0 {
				x[0] ^= p
			} else {
				t := (x[0] ^ x[i]) & p
				x[0] ^= t
				x[i] ^= t
			}
		}
	}
	for i := 1; i < n; i++ {
		x[i] ^= x[i-1]
	}
	var t uint32
	for q := uint32(1) << (bits - 1); q > 1; q >>= 1 {
		if x[n-1]&q != 0 {
			t ^= q - 1
		}
	}
	for i := range n {
		x[i] ^= t
	}
	key := make([]uint64, ceilDiv(n*bits, 64))
	total := len(key) * 64
	for pos, b := total-n*bits, bits-1; b >= 0; b-- {
		for i := range n {
			key[pos/64] |= uint64(x[i]>>b&1) << (63 - pos%64)
			pos++
		}
	}
	return key
}
