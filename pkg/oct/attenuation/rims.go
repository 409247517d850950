package attenuation

import (
	"context"
	"iter"
	"math"
	"sync/atomic"

	"strata/pkg/filter"
)

// side is the number of elements that the scratch has for a side of a column.
func (j *job) side() int { return j.size[0] * max(j.size[1], j.size[2]) }

// sides copies the four sides of a column: its first and its last row, its first and its last column.
func sides(dst *[4][]float32, v []float32, shape [3]int) {
	area := shape[1] * shape[2]
	for k := range dst {
		dst[k] = dst[k][:0]
	}
	for z := range shape[0] {
		plane := v[z*area:][:area]
		dst[0] = append(dst[0], plane[:shape[2]]...)
		dst[1] = append(dst[1], plane[area-shape[2]:]...)
		for y := range shape[1] {
			dst[2] = append(dst[2], plane[y*shape[2]])
			dst[3] = append(dst[3], plane[(y+1)*shape[2]-1])
		}
	}
}

// start keeps the heights of the sides of a column, and that nothing is known of their levels.
func (j *job) start(column int, v []float32) error {
	var own [4][]float32
	sides(&own, v, j.shape(column))
	for k := range own {
		if err := write(j.scratch, own[k], column, heights, k*j.side()); err != nil {
			return err
		}
		for i := range own[k] {
			own[k][i] = float32(math.Inf(1))
		}
		if err := write(j.scratch, own[k], column, levels, k*j.side()); err != nil {
			return err
		}
	}
	return nil
}

// neighbour returns the column at the given side of a column, or -1 at the edge of the volume.
func (j *job) neighbour(column, side int) int {
	y, x := column/j.grid[1], column%j.grid[1]
	switch side {
	case 0:
		y--
	case 1:
		y++
	case 2:
		x--
	default:
		x++
	}
	if y < 0 || x < 0 || y >= j.grid[0] || x >= j.grid[1] {
		return -1
	}
	return y*j.grid[1] + x
}

// sideLength returns the number of elements of a side of a column.
func (j *job) sideLength(column, side int) int {
	shape := j.shape(column)
	if side < 2 {
		return shape[0] * shape[2]
	}
	return shape[0] * shape[1]
}

// filler fills columns to their rims. It is a worker's.
type filler struct {
	rims         filter.Rims
	depth, level []float32
	beside       [4][]float32
	own          [4][]float32
	theirs       [2][]float32
}

func (j *job) newFiller() *filler {
	f := &filler{depth: make([]float32, j.voxels()), level: make([]float32, j.voxels())}
	for k := range f.beside {
		f.beside[k], f.own[k] = make([]float32, j.side()), make([]float32, 0, j.side())
	}
	f.theirs = [2][]float32{make([]float32, j.side()), make([]float32, j.side())}
	return f
}

// fillerBytes returns the memory of a filler.
func (j *job) fillerBytes() int64 {
	return (8+filter.RimsBytes)*int64(j.voxels()) + 10*4*int64(j.side())
}

// fill computes the levels of a column from its optical depths and from what is known of its neighbours.
func (f *filler) fill(j *job, column int) ([]float32, error) {
	shape := j.shape(column)
	depth, level := f.depth[:product(shape)], f.level[:product(shape)]
	if err := read(j.scratch, depth, column, numbers, 0); err != nil {
		return nil, err
	}
	if j.Method == Vermeer {
		return depth, nil
	}
	var beside filter.Beside
	for k := range beside {
		other := j.neighbour(column, k)
		if other < 0 {
			continue
		}
		beside[k] = f.beside[k][:j.sideLength(column, k)]
		if err := read(j.scratch, beside[k], other, levels, (k^1)*j.side()); err != nil {
			return nil, err
		}
	}
	f.rims.Fill(level, depth, shape, beside)
	return level, nil
}

// rims finds the levels of the sides of all columns. A column is filled again as long as a neighbour's levels would let
// its own fall; neighbours are never filled at the same time. The levels at the end do not depend on the order.
func (j *job) rims(ctx context.Context) error {
	if j.Method == Vermeer || j.columns() == 1 {
		return nil
	}
	stale := make([]atomic.Bool, j.columns())
	for i := range stale {
		stale[i].Store(true)
	}
	for colour, idle := 0, 0; idle < 2; colour ^= 1 {
		var list []int
		for i := range stale {
			if (i/j.grid[1]+i%j.grid[1])%2 == colour && stale[i].Load() {
				list = append(list, i)
			}
		}
		if idle++; len(list) > 0 {
			idle = 0
		}
		err := j.each(ctx, len(list), j.fillerBytes(), "filling columns", func(_ context.Context, pieces iter.Seq[int]) error {
			f := j.newFiller()
			for k := range pieces {
				stale[list[k]].Store(false)
				if err := j.settle(f, list[k], stale); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// settle fills a column, keeps the levels of its sides, and marks the neighbours whose levels they let fall.
func (j *job) settle(f *filler, column int, stale []atomic.Bool) error {
	level, err := f.fill(j, column)
	if err != nil {
		return err
	}
	sides(&f.own, level, j.shape(column))
	for k, own := range f.own {
		if err := write(j.scratch, own, column, levels, k*j.side()); err != nil {
			return err
		}
		other := j.neighbour(column, k)
		if other < 0 || stale[other].Load() {
			continue
		}
		height, theirs := f.theirs[0][:len(own)], f.theirs[1][:len(own)]
		if err := read(j.scratch, height, other, heights, (k^1)*j.side()); err != nil {
			return err
		}
		if err := read(j.scratch, theirs, other, levels, (k^1)*j.side()); err != nil {
			return err
		}
		for i, v := range own {
			if max(v, height[i]) < theirs[i] {
				stale[other].Store(true)
				break
			}
		}
	}
	return nil
}
