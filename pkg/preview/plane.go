package preview

import "math"

// plane holds the data of one panel: a grid of means (or maxima) over blocks of voxels, mostly of one voxel
// each.
type plane struct {
	name   string
	rows   int // axis (0 z, 1 y, 2 x) that runs down
	cols   int // axis that runs to the right
	across int // the axis that is cut or projected along
	index  int // where it is cut; -1: projected
	step   [2]int
	n      [2]int // blocks along rows and cols
	values []float32
}

// cuts returns the planes that the options ask for, xy first. first is level 0.
func (v *volume) cuts(o *Options, first *volume) ([]*plane, error) {
	at := [3]int{first.Shape[0] / 2, first.Shape[1] / 2, first.Shape[2] / 2}
	switch {
	case o.At == nil:
	case v.Flat():
		return nil, badOptions("--at: %s has two axes, there is nothing to cut", v.where)
	case len(o.At) != 3:
		return nil, badOptions("--at has %d numbers: want three (z, y, x)", len(o.At))
	default:
		for d, i := range o.At {
			if i < 0 || i >= first.Shape[d] {
				return nil, badOptions("--at: %c = %d is outside of %s, which has voxels 0 to %d there", "zyx"[d], i, first.where, first.Shape[d]-1)
			}
			at[d] = i
		}
	}
	planes := []*plane{{name: "xy", rows: 1, cols: 2, across: 0}}
	if v.deep() {
		yz := &plane{name: "yz", rows: 1, cols: 0, across: 2}
		if v.tall() {
			yz.rows, yz.cols = 0, 1
		}
		planes = append(planes, &plane{name: "xz", rows: 0, cols: 2, across: 1}, yz)
	}
	for _, p := range planes {
		p.index = -1
		if o.Projection == None {
			// the voxel of this level that the one of level 0 became part of
			d := p.across
			p.index = min(int(float64(at[d])*float64(v.Shape[d])/float64(first.Shape[d])), v.Shape[d]-1)
		}
	}
	return planes, nil
}

// deep reports whether there is more than one plane along z.
func (v *volume) deep() bool { return v.Shape[0] > 1 }

// wholeSamples is the maximum number of voxels of all panels together that are kept individually. If there
// are more (no pyramid, or a finer level than fits), blocks of them are averaged while they are read.
var wholeSamples = 4 << 20 // a variable for tests

// reduce decides the blocks: no larger than a pixel of the picture, so that the
// picture does not show them.
func reduce(planes []*plane, lay *layout) {
	total := 0.0
	for i, p := range planes {
		p.n = lay.samples[i]
		total += float64(p.n[0]) * float64(p.n[1])
	}
	for i, p := range planes {
		p.step = [2]int{1, 1}
		if total > float64(wholeSamples) {
			size := lay.panels[i].Size()
			p.step = [2]int{max(1, p.n[0]/size.Y), max(1, p.n[1]/size.X)}
		}
		for k := range p.n {
			p.n[k] = 1 + (p.n[k]-1)/p.step[k]
		}
	}
}

// whole reports whether a block is a single voxel.
func (p *plane) whole() bool { return p.step == [2]int{1, 1} }

// bytesOf returns the memory of the planes' values in bytes.
func bytesOf(planes []*plane, each int64) (n int64) {
	for _, p := range planes {
		n += int64(p.n[0]) * int64(p.n[1]) * each
	}
	return n
}

var nan = float32(math.NaN())
