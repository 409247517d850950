package consensus

import (
	"slices"
	"testing"
)

// Tiles whose overlaps show edges of one direction only may slide along them, alone or as a row; two directions hold a
// tile.
func TestSliding(t *testing.T) {
	along, across := Sym{YY: 1e-3, XX: 100}, Sym{YY: 100, XX: 1e-3}
	falling, rising := Sym{YY: 50, YX: 49.99, XX: 50}, Sym{YY: 50, YX: -49.99, XX: 50}
	for _, c := range []struct {
		name string
		of   map[[2]int]Sym // of the pairs of a grid of 3 × 3 tiles that say less than all others
		want []int
	}{
		{"all hold", nil, nil},
		{"the corner", map[[2]int]Sym{{5, 8}: along, {7, 8}: along}, []int{8}},
		{"the corner, held by two directions", map[[2]int]Sym{{5, 8}: along, {7, 8}: across}, nil},
		{"the corner, held by two slanted directions", map[[2]int]Sym{{5, 8}: falling, {7, 8}: rising}, nil},
		{"the corner, along a slant", map[[2]int]Sym{{5, 8}: falling, {7, 8}: falling}, []int{8}},
		{"the last row", map[[2]int]Sym{{3, 6}: along, {4, 7}: along, {5, 8}: along}, []int{6, 7, 8}},
		{"one pair of the last row", map[[2]int]Sym{{3, 6}: along, {4, 7}: along}, nil},
	} {
		var links []Link
		neighbours(3, 3, func(a, b, _ int) {
			l := Link{A: a, B: b, P: Diagonal(100)}
			if p, is := c.of[[2]int{a, b}]; is {
				l.P = p
			}
			links = append(links, l)
		})
		var got []int
		for t, is := range Robust(9, links, nil, 10).Sliding {
			if is {
				got = append(got, t)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// A tile that one weak link alone holds along a direction is doubtful, if nothing else checks that.
func TestWeakAlongOneDirection(t *testing.T) {
	along := Sym{YY: 1e-3, XX: 100}
	for _, weak := range []bool{false, true} {
		for _, other := range []Sym{along, Diagonal(100)} {
			var links []Link
			neighbours(3, 3, func(a, b, _ int) {
				l := Link{A: a, B: b, P: Diagonal(100)}
				switch {
				case b == 8 && a == 5:
					l.P = other
				case b == 8:
					l.Weak = weak
				}
				links = append(links, l)
			})
			f := Robust(9, links, nil, 10)
			if want := weak && other == along; f.Doubtful[8] != want || f.Sliding[8] || f.Doubtful[7] {
				t.Errorf("weak %v, the other pair %v: doubtful %v", weak, other, f.Doubtful[8])
			}
		}
	}
}
