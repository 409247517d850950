package benchzarr

import (
	cut "strata/pkg/bench/boxes"
	"strata/pkg/zarr"
)

// The operations.
const (
	opFull   = "full"   // all of the array, in parts that memory holds
	opRandom = "rand"   // boxes at seeded places, one after the other
	opSlab   = "slab"   // a plane across each axis, one after the other
	opStream = "stream" // all of it, unit by unit into memory that is used again
	opWrite  = "write"  // all of it, from memory
)

var readOps = []string{opFull, opRandom, opSlab, opStream}

// layout is what an operation has to know of an array.
type layout struct {
	shape  []int
	chunks []int // that are decoded each for itself
	files  []int // shape of a chunk file: of a shard, or of a chunk
	size   int   // bytes of an element
}

func layoutOf(a *zarr.Array) layout {
	l := layout{shape: a.Shape(), chunks: a.Chunks(), files: a.Shard(), size: a.DType().Size()}
	if l.files == nil {
		l.files = l.chunks
	}
	return l
}

func volume(shape []int) int64 {
	n := int64(1)
	for _, s := range shape {
		n *= int64(s)
	}
	return n
}

func (l layout) bytes(shape []int) int64 { return int64(l.size) * volume(shape) }

// boxes are the boxes of an operation.
type boxes struct {
	list []zarr.Region
	// whole is set where the list's boxes are parts of one, the whole array.
	whole bool
}

// check adds a box that was read to a checksum.
func (b boxes) check(c *checksum, l layout, box zarr.Region, data []byte) {
	if b.whole {
		c.add(l.shape, wholeStep, box, l.size, data)
		return
	}
	c.add(box.Shape, boxStep, zarr.Region{Start: make([]int, len(box.Shape)), Shape: box.Shape}, l.size, data)
}

// choice says which boxes the operations have.
type choice struct {
	edge, count int    // of boxes at seeded places
	seed        uint64 // of the places
	part        int64  // most bytes of a part of the whole
}

// boxesOf are the boxes of an operation on an array.
func (c choice) boxesOf(op string, l layout) boxes {
	switch op {
	case opRandom:
		return boxes{list: cut.Random(l.shape, c.edge, c.count, c.seed)}
	case opSlab:
		return boxes{list: cut.Slabs(l.shape)}
	case opStream:
		return boxes{list: cut.Split(l.shape, l.units(mostUnits)), whole: true}
	}
	return boxes{list: cut.Split(l.shape, l.partOf(c.part)), whole: true}
}

// partOf is the shape of the largest part of the array that has at most so many bytes and is
// whole chunk files, or, where one has more, whole chunks: as many along the last axis as fit,
// then along the others.
func (l layout) partOf(most int64) []int {
	unit := l.files
	if l.bytes(clip(unit, l.shape)) > most {
		unit = l.chunks
	}
	part := clip(unit, l.shape)
	for d := len(part) - 1; d >= 0; d-- {
		one := part[d]
		part[d] = l.shape[d]
		if l.bytes(part) <= most {
			continue
		}
		part[d] = one
		if fit := most / max(l.bytes(part), 1); fit > 1 {
			part[d] = int(min(fit*int64(one), int64(l.shape[d])))
		}
		break
	}
	return part
}

// mostUnits is how many units a stream has: of an array of more chunks, several are one.
const mostUnits = 1 << 20

// units is the shape of whole chunks of which the array has at most so many.
func (l layout) units(most int64) []int {
	unit := clip(l.chunks, l.shape)
	count := func() int64 {
		n := int64(1)
		for d := range unit {
			n *= int64((l.shape[d] + unit[d] - 1) / unit[d])
		}
		return n
	}
	for d := len(unit) - 1; d >= 0; {
		if count() <= most {
			break
		}
		if unit[d] >= l.shape[d] {
			d--
			continue
		}
		unit[d] = min(2*unit[d], l.shape[d])
	}
	return unit
}

func clip(unit, shape []int) []int {
	out := make([]int, len(unit))
	for d := range out {
		out[d] = min(unit[d], shape[d])
	}
	return out
}
