package benchzarr

import (
	cut "strata/pkg/bench/boxes"
	"strata/pkg/zarr"
)

// The operations.
const (
	OpFull   = "full"   // all of the array, in parts that memory holds
	OpRandom = "rand"   // boxes at seeded places, one after the other
	opSlab   = "slab"   // a plane across each axis, one after the other
	OpStream = "stream" // all of it, unit by unit into memory that is used again
	opWrite  = "write"  // all of it, from memory
)

var readOps = []string{OpFull, OpRandom, opSlab, OpStream}

// Layout is the layout of an array, as far as operations need it.
type Layout struct {
	Shape  []int
	Chunks []int // that are decoded each for itself
	files  []int // shape of a chunk file: of a shard, or of a chunk
	Size   int   // bytes of an element
}

func layoutOf(a *zarr.Array) Layout {
	l := Layout{Shape: a.Shape(), Chunks: a.Chunks(), files: a.Shard(), Size: a.DType().Size()}
	if l.files == nil {
		l.files = l.Chunks
	}
	return l
}

func Volume(shape []int) int64 {
	n := int64(1)
	for _, s := range shape {
		n *= int64(s)
	}
	return n
}

func (l Layout) Bytes(shape []int) int64 { return int64(l.Size) * Volume(shape) }

// Boxes are the boxes of an operation.
type Boxes struct {
	List []zarr.Region
	// Whole is set where the list's boxes are parts of one, the whole array.
	Whole bool
}

// Check adds a box that was read to a checksum.
func (b Boxes) Check(c *Checksum, l Layout, box zarr.Region, data []byte) {
	if b.Whole {
		c.Add(l.Shape, WholeStep, box, l.Size, data)
		return
	}
	c.Add(box.Shape, boxStep, zarr.Region{Start: make([]int, len(box.Shape)), Shape: box.Shape}, l.Size, data)
}

// Choice determines the boxes of the operations.
type Choice struct {
	Edge, Count int    // of boxes at seeded places
	Seed        uint64 // of the places
	Part        int64  // most bytes of a part of the whole
}

// BoxesOf returns the boxes of an operation on an array.
func (c Choice) BoxesOf(op string, l Layout) Boxes {
	switch op {
	case OpRandom:
		return Boxes{List: cut.Random(l.Shape, c.Edge, c.Count, c.Seed)}
	case opSlab:
		return Boxes{List: cut.Slabs(l.Shape)}
	case OpStream:
		return Boxes{List: cut.Split(l.Shape, l.units(mostUnits)), Whole: true}
	}
	return Boxes{List: cut.Split(l.Shape, l.partOf(c.Part)), Whole: true}
}

// partOf returns the shape of the largest part of the array that has at most the given number of bytes and
// consists of whole chunk files or, if one is larger, of whole chunks: as many along the last axis as fit, then
// along the others.
func (l Layout) partOf(most int64) []int {
	unit := l.files
	if l.Bytes(clip(unit, l.Shape)) > most {
		unit = l.Chunks
	}
	part := clip(unit, l.Shape)
	for d := len(part) - 1; d >= 0; d-- {
		one := part[d]
		part[d] = l.Shape[d]
		if l.Bytes(part) <= most {
			continue
		}
		part[d] = one
		if fit := most / max(l.Bytes(part), 1); fit > 1 {
			part[d] = int(min(fit*int64(one), int64(l.Shape[d])))
		}
		break
	}
	return part
}

// mostUnits is the maximum number of units of a stream: if an array has more chunks, a unit has several.
const mostUnits = 1 << 20

// units returns the shape of units of whole chunks such that the array has at most the given number of units.
func (l Layout) units(most int64) []int {
	unit := clip(l.Chunks, l.Shape)
	count := func() int64 {
		n := int64(1)
		for d := range unit {
			n *= int64((l.Shape[d] + unit[d] - 1) / unit[d])
		}
		return n
	}
	for d := len(unit) - 1; d >= 0; {
		if count() <= most {
			break
		}
		if unit[d] >= l.Shape[d] {
			d--
			continue
		}
		unit[d] = min(2*unit[d], l.Shape[d])
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
