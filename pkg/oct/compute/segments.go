package compute

import (
	"slices"

	"strata/pkg/filter"
	"strata/pkg/oct"
)

// Segment is a range of A-lines along one axis whose mean filters overlap the same tiles.
type Segment struct {
	From, To    int // A-lines
	In0, In1    int // samples that their windows cover
	First, Last int // tiles that contain these samples
}

// Segments cuts an axis of n samples, divided into tiles of the given size, into segments.
func Segments(s *filter.InterfaceSearch, n, tile int) (out []Segment) {
	at := func(i int) Segment {
		w := s.Windows(i, i+1, n)
		lo, hi := slices.Min(w), slices.Max(w)
		return Segment{i, i + 1, lo, hi + 1, lo / tile, hi / tile}
	}
	for i := 0; i < n; {
		g := at(i)
		if g.First == g.Last { // as far as its tile goes
			end := min((g.First+1)*tile, n)
			if end < n {
				end -= s.Window() / 2 // no window reaches further behind
			}
			if end > i {
				if far := at(end - 1); far.First == g.First && far.Last == g.First {
					g.To, g.In0, g.In1 = end, min(g.In0, far.In0), max(g.In1, far.In1)
				}
			}
		}
		i = g.To
		if k := len(out) - 1; k >= 0 && out[k].First == g.First && out[k].Last == g.Last {
			out[k].To = g.To
			out[k].In0, out[k].In1 = min(out[k].In0, g.In0), max(out[k].In1, g.In1)
			continue
		}
		out = append(out, g)
	}
	return out
}

// meets reports whether the segment's windows overlap a tile.
func (s *Segment) meets(tile int) bool { return s.First <= tile && tile <= s.Last }

// Lines returns the rectangle of A-lines that segments y and x span.
func Lines(y, x Segment) oct.Rectangle { return oct.Rect(y.From, y.To, x.From, x.To) }

// extent holds the number of A-lines of a segment, and of the samples that their windows cover.
type extent struct{ out, in int }

// largest returns the largest extents of any segment, and of segments whose windows span several tiles.
func largest(all []Segment) (any, across extent) {
	for _, s := range all {
		any = extent{max(any.out, s.To-s.From), max(any.in, s.In1-s.In0)}
		if s.First != s.Last {
			across = extent{max(across.out, s.To-s.From), max(across.in, s.In1-s.In0)}
		}
	}
	return any, across
}
