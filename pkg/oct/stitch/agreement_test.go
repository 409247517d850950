package stitch

import (
	"bytes"
	"encoding/json"
	"testing"

	"strata/pkg/oct/stitch/affine"
)

// What pairs say is counted by what became of it, and held against where the tiles lie; empty tiles say nothing.
func TestAgreement(t *testing.T) {
	s := &Result{Transform: affine.Transform{Matrix: affine.Identity, Spread: 0.5}}
	for i, at := range [][2]float64{{0, 0}, {1, 80}, {0, 160}, {0, 240}, {0, 320}} {
		s.Tiles = append(s.Tiles, TilePlan{Tile: [2]int{0, i}, Position: at, Empty: i == 4})
	}
	if s.Agreement() != nil {
		t.Error("an agreement without pairs")
	}
	pairs := func(a int) pair { return pair{a: a, b: a + 1, axis: 1} }
	s.vote([]measure{
		{pair: pairs(0), d: [2]float64{4, 84}, correlation: 0.9},
		{pair: pairs(1), d: [2]float64{-1, 70}, correlation: 0.8, reason: Outlier},
		{pair: pairs(2), d: [2]float64{0, 80}, correlation: 0.1, reason: noTexture},
		{pair: pairs(3), d: [2]float64{0, 80}, emptyB: true, reason: emptyTile},
	})
	var b bytes.Buffer
	if err := WriteStitching(&b, s); err != nil {
		t.Fatal(err)
	}
	var read struct {
		Pairs []struct {
			Residual *float64 `json:"residual_px"`
		}
		Agreement json.RawMessage
	}
	if err := json.Unmarshal(b.Bytes(), &read); err != nil {
		t.Fatal(err)
	}
	for i, want := range []float64{5, 10, 0} {
		if got := read.Pairs[i].Residual; got == nil || *got != want {
			t.Errorf("pair %d: residual %v, want %g px", i, got, want)
		}
	}
	if got := read.Pairs[3].Residual; got != nil {
		t.Errorf("a residual of %g px of an empty tile", *got)
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, read.Agreement); err != nil {
		t.Fatal(err)
	}
	if want := `{"compared":3,"votes":1,"used_share":0.333333,"spread_px":0.5,"rejected":{"contradicts the other pairs":1,"no texture in common":1},"unplaced":2}`; compact.String() != want {
		t.Errorf("%s, want %s", compact.String(), want)
	}
}
