package view

import (
	"context"
	"strconv"

	"strata/pkg/dtype"
)

// tileSide is the side of a tile in voxels.
const tileSide = 256

// planes maps a cut to its axes: rows, columns, and the axis that is cut.
var planes = map[string][3]int{"xy": {1, 2, 0}, "xz": {0, 2, 1}, "yz": {1, 0, 2}}

// tile identifies a tile of a cut.
type tile struct {
	level    int
	plane    string
	at       int // voxel along the axis that is cut
	row, col int // in tiles
	others   []int
}

// tile returns the elements of a tile, row by row, or a single one if all are equal.
func (s *source) tile(ctx context.Context, t tile) ([]byte, error) {
	axes, ok := planes[t.plane]
	if !ok {
		return nil, badRequest("plane %q: want xy, xz or yz", t.plane)
	}
	if err := s.checkLevel(t.level); err != nil {
		return nil, err
	}
	if err := s.checkOthers(t.others); err != nil {
		return nil, err
	}
	shape := s.levels[t.level].Shape
	b := box{level: t.level, others: t.others}
	n := [2]int{}
	for k, i := range [2]int{t.row, t.col} {
		d := axes[k]
		if most := (shape[d] - 1) / tileSide; i < 0 || i > most {
			return nil, badRequest("%s of the tile %d: want 0 to %d", [2]string{"row", "col"}[k], i, most)
		}
		b.start[d] = i * tileSide
		n[k] = min(tileSide, shape[d]-b.start[d])
		b.shape[d] = n[k]
	}
	if t.at < 0 || t.at >= shape[axes[2]] {
		return nil, badRequest("at %d: want 0 to %d", t.at, shape[axes[2]]-1)
	}
	b.start[axes[2]], b.shape[axes[2]] = t.at, 1
	elem := s.stored.Size()
	raw := make([]byte, n[0]*n[1]*elem)
	var strides [3]int
	strides[axes[0]], strides[axes[1]] = n[1]*elem, elem
	if err := s.read(ctx, b, raw, strides); err != nil {
		return nil, err
	}
	if equal(raw, elem) {
		raw = raw[:elem]
	}
	return s.convert(raw)
}

// value returns a voxel of level 0 as text, since JavaScript's numbers cannot hold all 64-bit integers.
func (s *source) value(ctx context.Context, at [3]int, others []int) (string, error) {
	if err := s.checkOthers(others); err != nil {
		return "", err
	}
	for d, i := range at {
		if n := s.levels[0].Shape[d]; i < 0 || i >= n {
			return "", badRequest("%c = %d: want 0 to %d", "zyx"[d], i, n-1)
		}
	}
	b := make([]byte, s.stored.Size())
	if err := s.read(ctx, box{start: at, shape: [3]int{1, 1, 1}, others: others}, b, [3]int{}); err != nil {
		return "", err
	}
	return format(b, s.stored), nil
}

// format formats an element in full precision.
func format(b []byte, t dtype.Type) string {
	switch t {
	case dtype.Int64:
		return strconv.FormatInt(dtype.Slice[int64](b)[0], 10)
	case dtype.Uint64:
		return strconv.FormatUint(dtype.Slice[uint64](b)[0], 10)
	}
	bits := 32
	if t == dtype.Float64 || t == dtype.Uint32 || t == dtype.Int32 {
		bits = 64
	}
	text := ""
	dtype.Each(b, t, func(v float64) { text = strconv.FormatFloat(v, 'g', -1, bits) })
	if t.IsInteger() || t == dtype.Bool {
		dtype.Each(b, t, func(v float64) { text = strconv.FormatFloat(v, 'f', -1, 64) })
	}
	return text
}
