package stitch

import (
	"strata/pkg/oct"
	"strata/pkg/oct/stitch/affine"
)

// Agreement sums up how far the compared pairs of tiles agree.
type Agreement struct {
	Compared int            `json:"compared"`            // pairs of tiles that are not empty
	Votes    int            `json:"votes"`               // of them: those that place tiles
	Share    float64        `json:"used_share"`          // Votes / Compared
	Spread   float64        `json:"spread_px,omitempty"` // as of [affine.Transform]; 0: the matrix was not estimated
	Rules    affine.Rules   `json:"rules,omitempty"`     // likewise
	Rejected map[string]int `json:"rejected,omitempty"`  // other pairs, by their reason
	Unplaced int            `json:"unplaced,omitempty"`  // tiles that are not empty and in no pair that votes
}

// emptyTile is the reason not to compare a pair: all of a tile is zero.
const emptyTile = "empty"

// Agreement sums the pairs up; nil if none was compared.
func (s *Result) Agreement() *Agreement {
	a := &Agreement{Spread: s.Transform.Spread, Rules: s.Transform.Rules, Rejected: map[string]int{}}
	for _, p := range s.Pairs {
		switch {
		case p.Reason == emptyTile:
			continue
		case p.Used:
			a.Votes++
		default:
			a.Rejected[p.Reason]++
		}
		a.Compared++
	}
	if a.Compared == 0 {
		return nil
	}
	a.Share = oct.Digits(float64(a.Votes) / float64(a.Compared))
	for _, t := range s.Tiles {
		if !t.Used && !t.Empty {
			a.Unplaced++
		}
	}
	return a
}

// residual returns the length in px by which the measured displacement of two tiles differs from that of their places;
// nil if nothing was measured.
func (m *measure) residual(a, b [2]float64) *float64 {
	if m.correlation == 0 {
		return nil
	}
	r := milli(far([2]float64{m.d[0] - b[0] + a[0], m.d[1] - b[1] + a[1]}))
	return &r
}
