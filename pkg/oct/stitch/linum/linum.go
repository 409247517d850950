// Package linum writes what linumpy's stitching leaves beside a slice: the matrix of steps between tiles, metrics, and
// the displacements of pairs of tiles.
package linum

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"

	"strata/pkg/dtype"
	"strata/pkg/metrics"
	"strata/pkg/ngff"
	"strata/pkg/npy"
	"strata/pkg/oct/stitch"
	"strata/pkg/oct/stitch/affine"
)

// A TileMatrix maps the indices (i, j) of a tile to its place (y, x) in pixels, as linumpy has it: its columns are the
// steps to the next tile down and to the right.
type TileMatrix affine.Matrix

// PerTile returns a matrix that acts on nominal positions as one that acts on the indices of tiles (y, x) pixels large.
func PerTile(m affine.Matrix, tile [2]int, overlap float64) (out TileMatrix) {
	for i, row := range m {
		for j, v := range row {
			out[i][j] = v * float64(tile[j]) * (1 - overlap)
		}
	}
	return out
}

// Nominal is the inverse of [PerTile].
func (m TileMatrix) Nominal(tile [2]int, overlap float64) (out affine.Matrix) {
	for i, row := range m {
		for j, v := range row {
			out[i][j] = v / (float64(tile[j]) * (1 - overlap))
		}
	}
	return out
}

// WriteNpy writes the matrix as NumPy's .npy, in float64.
func (m TileMatrix) WriteNpy(w io.Writer) error {
	if err := npy.WriteHeader(w, npy.Header{Type: dtype.Float64, Shape: []int{2, 2}}); err != nil {
		return err
	}
	return binary.Write(w, binary.LittleEndian, m)
}

// Displacement is the shape of the grid of tiles, as linumpy describes it.
type Displacement struct {
	Theta       float64    `json:"theta_deg"` // direction of a row
	Phi         float64    `json:"phi_deg"`   // angle between rows and columns
	OverlapX    float64    `json:"Ox_fraction"`
	OverlapY    float64    `json:"Oy_fraction"`
	OffDiagonal [2]float64 `json:"off_diagonal_px"`
	Fallback    bool       `json:"fallback"` // nothing was measured
	Pairs       int        `json:"n_pairs"`
	Residual    float64    `json:"lstsq_residual"` // spread of the pairs around the matrix, in pixels
}

// Model describes the grid that a matrix makes of tiles of a size (y, x).
func Model(t affine.Transform, tile [2]int, overlap float64) Displacement {
	m := PerTile(t.Matrix, tile, overlap)
	a, b, c, d := m[0][0], m[0][1], m[1][0], m[1][1]
	theta := math.Atan2(-b, d)
	return Displacement{Theta: degrees(theta), Phi: degrees(math.Atan2(a, c) + theta), OverlapX: 1 - math.Hypot(b, d)/float64(tile[1]), OverlapY: 1 - math.Hypot(a, c)/float64(tile[0]),
		OffDiagonal: [2]float64{b, c}, Fallback: t.Pairs == 0, Pairs: t.Pairs, Residual: t.Spread}
}

func degrees(v float64) float64 { return v * 180 / math.Pi }

// pairCounts holds the statistics of all pairs that linumpy reports.
type pairCounts struct {
	Total   int     `json:"total_pairs"`
	Valid   int     `json:"valid_pairs"`
	Clamped int     `json:"clamped_pairs"` // refused, because they lie too far from where they should
	Mean    float64 `json:"mean_refinement"`
	Max     float64 `json:"max_refinement"` // by how far tiles were moved, in pixels
}

func counts(s *stitch.Result) (c pairCounts) {
	c.Total = len(s.Pairs)
	for _, p := range s.Pairs {
		if p.Used {
			c.Valid++
		} else if p.Reason == stitch.TooFar {
			c.Clamped++
		}
	}
	for _, t := range s.Tiles {
		d := math.Hypot(t.Residual[0], t.Residual[1])
		c.Mean, c.Max = c.Mean+d/float64(len(s.Tiles)), max(c.Max, d)
	}
	return c
}

// Sidecar names what a run of stitch did, for the metrics and the refinements of linumpy's pipeline.
type Sidecar struct {
	In, Out    string // paths, as users know them
	Refinement string // mode, as linumpy names it
	Estimated  bool   // the matrix was measured
	Limit      float64
}

// Metrics returns the metrics of the step.
func (c Sidecar) Metrics(s *stitch.Result, in, out *ngff.Image) *metrics.Step {
	m := metrics.New("stitch_3d_refined")
	before, after := in.Levels[0].Array.Shape(), out.Levels[0].Array.Shape()
	var mm []float64
	for _, um := range out.VoxelSize {
		mm = append(mm, um/1000)
	}
	n := counts(s)
	m.Note("input_volume", c.In, "Mosaic grid")
	m.Note("output_volume", c.Out, "Stitched slice")
	m.Note("input_shape", before, "Shape of the mosaic grid")
	m.Note("output_shape", after, "Shape of the slice")
	m.Note("num_tiles", s.Grid[0]*s.Grid[1], "Number of tiles")
	m.Note("resolution", mm, "Voxel size (mm)")
	m.Note("blending_method", string(s.Blending), "Blending of overlaps")
	m.Note("refinement_mode", c.Refinement, "How tiles are moved to fit their neighbours")
	m.Note("total_pairs", n.Total, "Pairs of neighbouring tiles that were compared")
	if n.Total > 0 {
		limit := metrics.Limits["correlation"]
		m.Judge("valid_pairs", float64(n.Valid)/float64(n.Total), "", "Share of the pairs that were used", &limit)
		m.Note("clamped_pairs", n.Clamped, "Pairs that lie too far from where they should")
		m.Note("mean_refinement", n.Mean, "Mean distance by which tiles were moved (px)")
		m.Note("max_refinement", n.Max, "Largest distance by which a tile was moved (px)")
	}
	if a := s.Agreement(); a != nil { // ours: linumpy has no such metrics
		m.Note("pairs_compared", a.Compared, "Pairs of neighbouring tiles that are not empty")
		m.Note("pairs_voted", a.Votes, "Of these, the pairs that place tiles")
		m.Note("pairs_used_share", a.Share, "Their share")
		m.Note("pairs_rejected", a.Rejected, "The other pairs, by their reason")
		m.Note("tiles_unplaced", a.Unplaced, "Tiles that are not empty and in no pair that places tiles")
	}
	if c.Estimated {
		m.Note("estimate_rules", string(s.Transform.Rules), "Rules by which the matrix was estimated")
		m.Note("pairs_spread", s.Transform.Spread, "Scatter of the pairs about a regular grid (px, per axis)")
		d := Model(s.Transform, s.Tile, s.Overlap)
		m.Note("theta_deg", d.Theta, "Direction of rows of tiles (degrees)")
		m.Note("phi_deg", d.Phi, "Angle between rows and columns of tiles (degrees)")
		m.Note("Ox_fraction", d.OverlapX, "Overlap along x")
		m.Note("Oy_fraction", d.OverlapY, "Overlap along y")
	}
	m.Note("overlap_reduction", 1-voxels(after)/voxels(before), "Part of the voxels that overlapped")
	return m
}

func voxels(shape []int) float64 {
	n := 1.0
	for _, k := range shape {
		n *= float64(k)
	}
	return n
}

// pairOffset is a pair in the refinements.
type pairOffset struct {
	DY          float64 `json:"dy"` // displacement beyond that of the matrix, in pixels
	DX          float64 `json:"dx"`
	Correlation float64 `json:"correlation"`
	Used        bool    `json:"used"`
	Reason      string  `json:"reason,omitempty"`
}

// WriteRefinements writes how far pairs of neighbours lie from where the matrix puts them, as JSON.
func (c Sidecar) WriteRefinements(w io.Writer, s *stitch.Result) error {
	base := map[[2]int][2]float64{}
	for _, t := range s.Tiles {
		base[t.Tile] = [2]float64{t.Position[0] - t.Residual[0], t.Position[1] - t.Residual[1]}
	}
	horizontal, vertical := map[string]pairOffset{}, map[string]pairOffset{}
	for _, p := range s.Pairs {
		from, to := base[p.Tiles[0]], base[p.Tiles[1]]
		to[0], to[1] = p.Measured[0]-(to[0]-from[0]), p.Measured[1]-(to[1]-from[1])
		in := vertical
		if p.Tiles[0][0] == p.Tiles[1][0] {
			in = horizontal
		}
		in[fmt.Sprintf("%d,%d", p.Tiles[0][0], p.Tiles[0][1])] = pairOffset{to[0], to[1], p.Correlation, p.Used, p.Reason}
	}
	text, err := json.MarshalIndent(map[string]any{
		"horizontal": horizontal, "vertical": vertical, "stats": counts(s), "displacement_model": Model(s.Transform, s.Tile, s.Overlap),
		"parameters": map[string]any{"overlap_fraction": s.Overlap, "blending_method": s.Blending, "refinement_mode": c.Refinement, "max_refinement_px": c.Limit},
	}, "", "  ")
	if err != nil {
		return err
	}
	_, err = w.Write(append(text, '\n'))
	return err
}
