package linum

import (
	"bytes"
	"encoding/json"
	"math"
	"reflect"
	"testing"

	"strata/pkg/metrics"
	"strata/pkg/oct/stitch"
	"strata/pkg/oct/stitch/affine"
	"strata/tests/octtest"
)

func TestTileMatrix(t *testing.T) {
	m := affine.Matrix{{1.01, 0.02}, {-0.03, 0.99}}
	px := PerTile(m, [2]int{100, 200}, 0.2)
	want := TileMatrix{{80.8, 3.2}, {-2.4, 158.4}}
	for i, row := range want {
		for j, v := range row {
			if math.Abs(px[i][j]-v) > 1e-9 {
				t.Fatalf("%v, want %v", px, want)
			}
		}
	}
	var b bytes.Buffer
	if err := px.WriteNpy(&b); err != nil {
		t.Fatal(err)
	}
	read, err := affine.ReadTransform(&b, "x.npy")
	if err != nil {
		t.Fatal(err)
	}
	back := TileMatrix(read.Matrix).Nominal([2]int{100, 200}, 0.2)
	for i, row := range m {
		for j, v := range row {
			if math.Abs(back[i][j]-v) > 1e-12 {
				t.Errorf("%v comes back as %v", m, back)
			}
		}
	}
	// rows that run 0.1 radians off, and overlap by a quarter of 200 pixels; columns are at right angles
	s, c := math.Sincos(0.1)
	turned := affine.Transform{Matrix: TileMatrix{{80 * c, -150 * s}, {80 * s, 150 * c}}.Nominal([2]int{100, 200}, 0.2), Pairs: 3, Spread: 0.5}
	d := Model(turned, [2]int{100, 200}, 0.2)
	if math.Abs(d.Theta-degrees(0.1)) > 1e-9 || math.Abs(d.Phi-90) > 1e-9 || math.Abs(d.OverlapX-0.25) > 1e-9 || math.Abs(d.OverlapY-0.2) > 1e-9 || d.Fallback || d.Pairs != 3 {
		t.Errorf("%+v", d)
	}
}

func TestSidecars(t *testing.T) {
	in, _ := octtest.Made(t, []int{2, 20, 20}, []int{2, 10, 10}, nil, nil, func(int) uint8 { return 1 })
	out, _ := octtest.Made(t, []int{2, 18, 18}, []int{2, 9, 9}, nil, nil, func(int) uint8 { return 1 })
	s := &stitch.Result{Overlap: 0.2, Transform: affine.Transform{Matrix: affine.Identity, Pairs: 2}, Blending: "diffusion", Tile: [2]int{10, 10}, Grid: [2]int{1, 3},
		Tiles: []stitch.TilePlan{{Tile: [2]int{0, 0}}, {Tile: [2]int{0, 1}, Position: [2]float64{3, 12}, Residual: [2]float64{3, 4}}, {Tile: [2]int{1, 0}, Position: [2]float64{8, 0}}},
		Pairs: []stitch.TilePair{{Tiles: [2][2]int{{0, 0}, {0, 1}}, Measured: [2]float64{3, 12}, Correlation: 0.9, Used: true}, {Tiles: [2][2]int{{0, 0}, {1, 0}}, Measured: [2]float64{8, 40}, Reason: stitch.TooFar}}}
	m := Sidecar{In: "in", Out: "out", Estimated: true}.Metrics(s, in, out)
	for name, want := range map[string]any{"total_pairs": 2, "clamped_pairs": 1, "valid_pairs": 0.5, "max_refinement": 5.0, "num_tiles": 3, "pairs_compared": 2, "pairs_voted": 1, "pairs_used_share": 0.5, "tiles_unplaced": 3, "overlap_reduction": 1 - float64(648)/voxels([]int{800})} {
		if got, _ := m.Metric(name); got.Value != want {
			t.Errorf("%s: %v, want %v", name, got.Value, want)
		}
	}
	if got, _ := m.Metric("pairs_rejected"); !reflect.DeepEqual(got.Value, map[string]int{stitch.TooFar: 1}) {
		t.Errorf("rejected %v", got.Value)
	}
	if got, _ := m.Metric("valid_pairs"); got.Status != metrics.Warning {
		t.Errorf("half of the pairs: %s", got.Status)
	}
	var b bytes.Buffer
	var read struct {
		Horizontal, Vertical map[string]struct{ DY, DX float64 }
		Stats                map[string]float64
	}
	if err := (Sidecar{}).WriteRefinements(&b, s); err != nil || json.Unmarshal(b.Bytes(), &read) != nil {
		t.Fatal(err, b.String())
	}
	if h, v := read.Horizontal["0,0"], read.Vertical["0,0"]; h.DY != 3 || h.DX != 4 || v.DY != 0 || v.DX != 40 || read.Stats["valid_pairs"] != 1 {
		t.Errorf("%s", b.String())
	}
}
