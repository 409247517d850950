package registration

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
)

// Shifts holds the displacements between consecutive slices by the stage's motors.
type Shifts struct {
	Name  string // of the file
	pairs map[[2]int]pairShift
}

type pairShift struct {
	x, y float64 // millimetres
	line int
}

// ReadShifts reads a shifts CSV: columns fixed_id, moving_id, x_shift_mm and y_shift_mm; it ignores others,
// such as the shifts in pixels. A duplicate pair is an error. name is the file's name in errors.
func ReadShifts(r io.Reader, name string) (*Shifts, error) {
	t, err := openTable(r, name, "fixed_id", "moving_id", "x_shift_mm", "y_shift_mm")
	if err != nil {
		return nil, err
	}
	s := &Shifts{name, map[[2]int]pairShift{}}
	for {
		ok, err := t.next()
		if err != nil || !ok {
			return s, err
		}
		row, err := t.pair()
		if err != nil {
			return nil, err
		}
		pair := [2]int{row.Fixed, row.Moving}
		if first, ok := s.pairs[pair]; ok {
			return nil, t.twice(row, first.line)
		}
		s.pairs[pair] = pairShift{row.X, row.Y, t.line}
	}
}

// pair returns the slices and the shift of a row.
func (t *table) pair() (p PairShift, err error) {
	if err := t.read([]string{"fixed_id", "moving_id", "x_shift_mm", "y_shift_mm"}, sliceID{&p.Fixed}, sliceID{&p.Moving}, &p.X, &p.Y); err != nil {
		return p, err
	}
	if p.Moving <= p.Fixed {
		return p, t.errorf("slice %d is moved against slice %d, want a higher number than that", p.Moving, p.Fixed)
	}
	return p, nil
}

// twice returns the error of a pair that an earlier line has.
func (t *table) twice(p PairShift, line int) error {
	return t.errorf("slices %d and %d are a pair already on line %d", p.Fixed, p.Moving, line)
}

// Positions adds up the shifts (x, y), in millimetres, over the slices in the file in increasing order and
// returns the sums for ids. A missing consecutive pair counts as no shift, and slices that the file does not
// name are at (0, 0); both give warnings.
func (s *Shifts) Positions(ids []int) (at map[int][2]float64, warnings []string) {
	warn := func(format string, args ...any) {
		warnings = append(warnings, s.Name+": "+fmt.Sprintf(format, args...))
	}
	named := map[int][2]float64{}
	for p := range s.pairs {
		named[p[0]], named[p[1]] = [2]float64{}, [2]float64{}
	}
	all := slices.Sorted(maps.Keys(named))
	used := 0
	for i, id := range all[:max(0, len(all)-1)] {
		next := all[i+1]
		p, ok := s.pairs[[2]int{id, next}]
		if ok {
			used++
		} else {
			warn("no shift between slices %d and %d: taken as none", id, next)
		}
		named[next] = [2]float64{named[id][0] + p.x, named[id][1] + p.y}
	}
	if extra := len(s.pairs) - used; extra > 0 {
		warn("%d shifts are between slices that are not neighbours: not used", extra)
	}
	at = map[int][2]float64{}
	var absent []int
	for _, id := range ids {
		p, ok := named[id]
		if !ok {
			absent = append(absent, id)
		}
		at[id] = p
	}
	if len(absent) > 0 {
		warn("no shift for slices %v: they are put at the position of the first", absent)
	}
	return at, warnings
}

// Absent returns the slices in the file that are not among ids, in increasing order: those between the lowest
// and the highest of ids, and those outside.
func (s *Shifts) Absent(ids []int) (between, outside []int) {
	named := map[int]bool{}
	for p := range s.pairs {
		named[p[0]], named[p[1]] = true, true
	}
	for _, id := range slices.Sorted(maps.Keys(named)) {
		switch {
		case slices.Contains(ids, id):
		case len(ids) > 0 && id > slices.Min(ids) && id < slices.Max(ids):
			between = append(between, id)
		default:
			outside = append(outside, id)
		}
	}
	return between, outside
}

// PairShift is one line of a shifts CSV: the shift of a slice against another,
// in millimetres.
type PairShift struct {
	Fixed, Moving int
	X, Y          float64
}

// Pairs returns the shifts of the file, sorted by slice.
func (s *Shifts) Pairs() []PairShift {
	var out []PairShift
	for p, v := range s.pairs {
		out = append(out, PairShift{p[0], p[1], v.x, v.y})
	}
	slices.SortFunc(out, func(a, b PairShift) int {
		return cmp.Or(cmp.Compare(a.Fixed, b.Fixed), cmp.Compare(a.Moving, b.Moving))
	})
	return out
}
