// Package shifts judges and repairs the shifts between slices that the stage's motors recorded. [Clean] removes
// the traces of a stage that lost its reference and found it again. [Analyze] describes the drift, and what it
// would be without outliers. Both are rules on the rows of a table; they know nothing of images.
package shifts

import (
	"math"
	"slices"

	"strata/pkg/filter"
	"strata/pkg/metrics"
	"strata/pkg/registration"
)

// CleanOptions are the options of [Clean].
type CleanOptions struct {
	ReturnFraction   float64 // a step and a neighbour cancel if their sum is shorter than this fraction of the step
	MaxShiftMM       float64 // longer steps are suspect
	TileFOVMM        float64 // width of a tile, of which the stage may be off by a multiple; 0: not known
	TileFOVTolerance float64 // how far from a multiple a shift may be, as a fraction of the tile
}

// DefaultCleanOptions returns the defaults.
func DefaultCleanOptions() CleanOptions {
	return CleanOptions{ReturnFraction: 0.4, MaxShiftMM: 0.5, TileFOVTolerance: 0.05}
}

// A Correction is one change of a row. Shifts are in millimetres.
type Correction struct {
	Index     int     `json:"index"` // of the row
	Fixed     int     `json:"fixed_id"`
	Moving    int     `json:"moving_id"`
	Kind      string  `json:"correction_type"` // "tile_offset" or "spike"
	OriginalX float64 `json:"original_x_shift_mm"`
	OriginalY float64 `json:"original_y_shift_mm"`
	X         float64 `json:"corrected_x_shift_mm"`
	Y         float64 `json:"corrected_y_shift_mm"`
}

// Cleaned is the report of [Clean].
type Cleaned struct {
	Rows        int          `json:"-"`
	Changed     int          `json:"n_corrected"` // rows
	Spikes      []Correction `json:"corrected_spikes"`
	TileOffsets []Correction `json:"corrected_tile_offsets"`
	Unreliable  []int        `json:"-"` // rows that are still longer than the limit
	MaxMM       float64      `json:"-"` // length of the largest change
	Before      [][2]float64 `json:"-"` // shifts (x, y) of all rows as they were, in millimetres
}

// Clean corrects the rows of a table, which it sorts, and fills the column "reliable".
//
// Multiples of a tile come first: a component within the tolerance of n tiles, n ≠ 0, loses them. Then a step longer
// than the limit is a spike if it and a neighbour cancel, as when the stage went astray and came back; so is that
// neighbour. A spike becomes the median, for x and y apart, of the other rows up to two away that are within the limit,
// or of all of these. Which rows are spikes, and what replaces them, is decided before any is replaced: otherwise the
// way back would be compared with a way out that is repaired already, and would stay. A row is reliable if it is within
// the limit then.
func Clean(t *registration.ShiftTable, o CleanOptions) *Cleaned {
	t.Sort()
	t.Judged = true
	c := &Cleaned{Rows: len(t.Rows), Spikes: []Correction{}, TileOffsets: []Correction{}}
	for i := range t.Rows {
		r := &t.Rows[i]
		c.Before = append(c.Before, [2]float64{r.X, r.Y})
		if o.TileFOVMM > 0 && withoutTiles(r, o) {
			c.TileOffsets = append(c.TileOffsets, correction("tile_offset", i, r, c.Before[i]))
		}
	}
	was := slices.Clone(t.Rows)
	astray := spikes(was, o)
	for i := range was {
		if !astray[i] {
			continue
		}
		if fill := calm(was, astray, i, o.MaxShiftMM); fill != nil {
			r := &t.Rows[i]
			r.X, r.Y, r.PX = fill.X, fill.Y, fill.PX
			c.Spikes = append(c.Spikes, correction("spike", i, r, [2]float64{was[i].X, was[i].Y}))
		}
	}
	for i := range t.Rows {
		r := &t.Rows[i]
		if r.Reliable = length(r.X, r.Y) <= o.MaxShiftMM; !r.Reliable {
			c.Unreliable = append(c.Unreliable, i)
		}
		if c.changed(i, r) {
			c.Changed++
			c.MaxMM = max(c.MaxMM, length(r.X-c.Before[i][0], r.Y-c.Before[i][1]))
		}
	}
	return c
}

func (c *Cleaned) changed(i int, r *registration.ShiftRow) bool {
	return c.Before[i] != [2]float64{r.X, r.Y}
}

func correction(kind string, i int, r *registration.ShiftRow, was [2]float64) Correction {
	return Correction{i, r.Fixed, r.Moving, kind, was[0], was[1], r.X, r.Y}
}

// length returns the length of a shift; the products are rounded, so that every machine has the same.
func length(x, y float64) float64 { return math.Sqrt(float64(x*x) + float64(y*y)) }

// withoutTiles removes whole tiles from a shift and reports whether there were any.
func withoutTiles(r *registration.ShiftRow, o CleanOptions) (changed bool) {
	for i, d := range []*float64{&r.X, &r.Y} {
		n := math.RoundToEven(*d / o.TileFOVMM)
		tiles := float64(n * o.TileFOVMM)
		rest := *d - tiles
		if n == 0 || math.Abs(rest)/o.TileFOVMM >= o.TileFOVTolerance {
			continue
		}
		r.PX[i] -= float64(tiles * (r.PX[i] / *d))
		*d, changed = rest, true
	}
	return changed
}

// spikes reports which rows to replace: each row whose shift is too long and is cancelled by the row before or after
// it, and the row that cancels it, however short that is. Replacing only one of the two would move all later slices.
func spikes(rows []registration.ShiftRow, o CleanOptions) []bool {
	out := make([]bool, len(rows))
	for i, r := range rows {
		size := length(r.X, r.Y)
		if size <= o.MaxShiftMM {
			continue
		}
		back, least := -1, o.ReturnFraction*size
		for _, k := range []int{i - 1, i + 1} {
			if k < 0 || k >= len(rows) {
				continue
			}
			if left := length(r.X+rows[k].X, r.Y+rows[k].Y); left < least {
				back, least = k, left
			}
		}
		if back >= 0 {
			out[i], out[back] = true, true
		}
	}
	return out
}

// calm returns the medians of the rows up to two away that are within the limit and no spikes, else of all of these,
// else nil.
func calm(rows []registration.ShiftRow, astray []bool, i int, limit float64) *registration.ShiftRow {
	var near, all []registration.ShiftRow
	for k, r := range rows {
		if astray[k] || length(r.X, r.Y) > limit {
			continue
		}
		all = append(all, r)
		if k >= i-2 && k <= i+2 {
			near = append(near, r)
		}
	}
	if len(near) == 0 {
		near = all
	}
	if len(near) == 0 {
		return nil
	}
	return medianRow(near)
}

// medianRow returns the medians of at least one row. Shifts in pixels may be missing in some rows; these rows do not
// count for them.
func medianRow(rows []registration.ShiftRow) *registration.ShiftRow {
	var out registration.ShiftRow
	median := func(of func(*registration.ShiftRow) float64) float64 {
		var v []float64
		for i := range rows {
			if d := of(&rows[i]); !math.IsNaN(d) {
				v = append(v, d)
			}
		}
		if len(v) == 0 {
			return math.NaN()
		}
		return filter.MedianOf(v)
	}
	out.X = median(func(r *registration.ShiftRow) float64 { return r.X })
	out.Y = median(func(r *registration.ShiftRow) float64 { return r.Y })
	for d := range out.PX {
		out.PX[d] = median(func(r *registration.ShiftRow) float64 { return r.PX[d] })
	}
	return &out
}

// Stamp notes in a slice configuration, for the moving slice of every row, whether its shift was corrected and is
// reliable. It returns the slices that the configuration lacks: they are not added, because nobody configured them.
func (c *Cleaned) Stamp(config *registration.SliceTable, t *registration.ShiftTable) (missing []int) {
	for i := range t.Rows {
		r := &t.Rows[i]
		row := config.Row(r.Moving)
		if row == nil {
			missing = append(missing, r.Moving)
			continue
		}
		row.SetBool(registration.Rehomed, c.changed(i, r))
		reliable := "0"
		if r.Reliable {
			reliable = "1"
		}
		row.Set(registration.RehomingReliable, reliable)
	}
	return missing
}

// Metrics returns the metrics of the step. output is the path of the corrected table.
func (c *Cleaned) Metrics(output string) *metrics.Step {
	s := metrics.New("rehoming_detection")
	s.Note("output_shifts", output, "Corrected shifts CSV")
	s.Note("n_total_transitions", c.Rows, "Shifts between two slices that were checked")
	s.Note("n_tile_corrected", len(c.TileOffsets), "Shifts from which whole tiles were removed")
	s.Note("n_spike_corrected", len(c.Spikes), "Shifts replaced because a neighbour cancels them")
	s.Note("n_unreliable", len(c.Unreliable), "Shifts that are still longer than the limit")
	s.Note("max_correction_mm", c.MaxMM, "Length of the largest change, in mm")
	return s
}
