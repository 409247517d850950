package czi

import (
	"cmp"
	"image"
	"maps"
	"math"
	"slices"
	"sort"
)

// groupKey holds the properties shared by sub-blocks that can lie side by side.
type groupKey struct {
	c, z, t int32
	views   views
	factor  int32 // pixels of the plane in one stored; 1: level 0
}

// tree is an index of rectangles: entries ordered so that neighbours lie near each other, and above them the
// bounding boxes of every fanout entries below.
type tree struct {
	entries []int32
	boxes   [][]image.Rectangle
}

const fanout = 16

// factor returns the downsampling factor of a sub-block along its longer side, or 0 if it is no whole number.
func (e *entry) factor() int32 {
	if e.level0() {
		return 1
	}
	long, stored := e.w, e.sw
	if e.h > e.w {
		long, stored = e.h, e.sh
	}
	k := (int64(long) + int64(stored)/2) / int64(stored)
	near := func(w, sw int32) bool { // rounded up or down, or to a whole number of tiles
		d := int64(sw)*k - int64(w)
		return d > -k && d < k
	}
	if k < 2 || k > math.MaxInt32 || !near(e.w, e.sw) || !near(e.h, e.sh) {
		return 0
	}
	return int32(k)
}

// makeIndex divides all sub-blocks into groups and sorts each group.
func (f *File) makeIndex() {
	type placed struct {
		key uint64 // group, then place
		i   int32
	}
	var all image.Rectangle
	for _, b := range f.scenes {
		all = all.Union(b.all)
	}
	f.levels = map[int32]map[int32]bool{}
	numbers := map[groupKey]uint32{}
	var keys []groupKey
	order := make([]placed, 0, len(f.entries))
	last := groupKey{factor: -1}
	number := uint32(0)
	for i := range f.entries {
		e := &f.entries[i]
		if !e.valid() {
			continue
		}
		k := groupKey{e.c, e.z, e.t, f.kinds[e.kind].views, e.factor()}
		if k.factor == 0 {
			continue
		}
		if k.factor > 1 {
			of := f.levels[e.s]
			if of == nil {
				of = map[int32]bool{}
				f.levels[e.s] = of
			}
			of[k.factor] = true
		}
		if k != last {
			n, ok := numbers[k]
			if !ok {
				n = uint32(len(keys))
				numbers[k] = n
				keys = append(keys, k)
			}
			number, last = n, k
		}
		x := place(int(e.x)+int(e.w)/2-all.Min.X, all.Dx())
		y := place(int(e.y)+int(e.h)/2-all.Min.Y, all.Dy())
		order = append(order, placed{uint64(number)<<32 | uint64(spread(x)|spread(y)<<1), int32(i)})
	}
	slices.SortFunc(order, func(a, b placed) int { return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.i, b.i)) })
	entries := make([]int32, len(order))
	for i, o := range order {
		entries[i] = o.i
	}
	f.groups = make(map[groupKey]*tree, len(keys))
	for from := 0; from < len(order); {
		number := order[from].key >> 32
		to := from + sort.Search(len(order)-from, func(i int) bool { return order[from+i].key>>32 > number })
		t := &tree{entries: entries[from:to:to]}
		t.makeBoxes(f.entries)
		f.groups[keys[number]] = t
		from = to
	}
}

// place returns a position in a range of n, scaled to 16 bits.
func place(at, n int) uint32 { return uint32(int64(at) * 65535 / int64(max(n, 1))) }

// spread puts a zero bit in front of each of 16 bits.
func spread(v uint32) uint32 {
	v = (v | v<<8) & 0x00ff00ff
	v = (v | v<<4) & 0x0f0f0f0f
	v = (v | v<<2) & 0x33333333
	return (v | v<<1) & 0x55555555
}

func (t *tree) makeBoxes(entries []entry) {
	var boxes []image.Rectangle
	for i, n := range t.entries {
		if r := entries[n].rect(); i%fanout == 0 {
			boxes = append(boxes, r)
		} else {
			boxes[len(boxes)-1] = boxes[len(boxes)-1].Union(r)
		}
	}
	t.boxes = [][]image.Rectangle{boxes}
	for len(boxes) > fanout {
		var above []image.Rectangle
		for i := 0; i < len(boxes); i += fanout {
			box := boxes[i]
			for _, r := range boxes[i+1 : min(i+fanout, len(boxes))] {
				box = box.Union(r)
			}
			above = append(above, box)
		}
		boxes = above
		t.boxes = append(t.boxes, boxes)
	}
}

// visit calls do for the entries that meet a rectangle.
func (t *tree) visit(entries []entry, r image.Rectangle, do func(i int32)) {
	t.visitBelow(entries, r, len(t.boxes)-1, 0, len(t.boxes[len(t.boxes)-1]), do)
}

// visitBelow looks at boxes from to to of a level.
func (t *tree) visitBelow(entries []entry, r image.Rectangle, level, from, to int, do func(i int32)) {
	for k := from; k < to; k++ {
		if !t.boxes[level][k].Overlaps(r) {
			continue
		}
		first := k * fanout
		if level > 0 {
			t.visitBelow(entries, r, level-1, first, min(first+fanout, len(t.boxes[level-1])), do)
			continue
		}
		for _, i := range t.entries[first:min(first+fanout, len(t.entries))] {
			if entries[i].rect().Overlaps(r) {
				do(i)
			}
		}
	}
}

// group returns the tree of a plane at a factor; nil: there are no such sub-blocks.
func (f *File) group(p Plane, factor int) *tree {
	f.index.Do(f.makeIndex)
	k := groupKey{int32(p.C), int32(p.Z), int32(p.T), views{int32(p.R), int32(p.I), int32(p.H), int32(p.V), int32(p.B)}, int32(factor)}
	return f.groups[k]
}

// Tiles returns the numbers of the sub-blocks of a plane and scene that meet a rectangle of the pixel plane,
// ordered from bottom to top as libCZI draws them: by scene, within one by mosaic index, then by position in the
// directory. factor is the number of pixels of the plane per stored pixel, 1 for level 0.
func (f *File) Tiles(scene int, p Plane, factor int, r image.Rectangle) []int {
	var found []int
	t := f.group(p, factor)
	if t == nil {
		return nil
	}
	t.visit(f.entries, r, func(i int32) {
		if scene == AllScenes || f.entries[i].s == int32(scene) {
			found = append(found, int(i))
		}
	})
	slices.SortFunc(found, func(a, b int) int {
		x, y := &f.entries[a], &f.entries[b]
		return cmp.Or(cmp.Compare(x.s, y.s), cmp.Compare(x.m, y.m), cmp.Compare(a, b))
	})
	return found
}

// Factors returns the factors of the levels for which a scene has sub-blocks, ascending, without 1.
func (f *File) Factors(scene int) []int {
	f.index.Do(f.makeIndex)
	seen := map[int]bool{}
	for s, of := range f.levels {
		if scene == AllScenes || s == int32(scene) {
			for k := range of {
				seen[int(k)] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// Tile finds a tile of level 0 by its coordinates; without mosaic indexes m is 0. Of several it returns the
// topmost, the last in the directory.
func (f *File) Tile(scene int, p Plane, m int) (i int, ok bool) {
	f.tileIndex.Do(func() {
		for i := range f.entries {
			if e := &f.entries[i]; e.valid() && e.level0() {
				f.tiles = append(f.tiles, int32(i))
			}
		}
		slices.SortFunc(f.tiles, func(a, b int32) int { return cmp.Or(f.coordinates(a).compare(f.coordinates(b)), cmp.Compare(a, b)) })
	})
	want := coordinates{int32(scene), int32(p.C), int32(p.Z), int32(p.T), int32(m), views{int32(p.R), int32(p.I), int32(p.H), int32(p.V), int32(p.B)}}
	at := sort.Search(len(f.tiles), func(i int) bool { return f.coordinates(f.tiles[i]).compare(want) > 0 })
	if at == 0 || f.coordinates(f.tiles[at-1]) != want {
		return 0, false
	}
	return int(f.tiles[at-1]), true
}

// coordinates holds all coordinates of a tile except those in its plane.
type coordinates struct {
	s, c, z, t, m int32
	views         views
}

func (f *File) coordinates(i int32) coordinates {
	e := &f.entries[i]
	m := e.m
	if m == noM {
		m = 0
	}
	return coordinates{e.s, e.c, e.z, e.t, m, f.kinds[e.kind].views}
}

func (a coordinates) compare(b coordinates) int {
	if n := cmp.Or(cmp.Compare(a.s, b.s), cmp.Compare(a.c, b.c), cmp.Compare(a.z, b.z), cmp.Compare(a.t, b.t), cmp.Compare(a.m, b.m)); n != 0 {
		return n
	}
	v, w := &a.views, &b.views
	return cmp.Or(cmp.Compare(v.r, w.r), cmp.Compare(v.i, w.i), cmp.Compare(v.h, w.h), cmp.Compare(v.v, w.v), cmp.Compare(v.b, w.b))
}
