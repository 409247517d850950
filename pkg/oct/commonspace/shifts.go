package commonspace

import (
	"math"
	"slices"

	"strata/pkg/filter"
	"strata/pkg/registration"
)

// Mode says how to treat shifts from or to excluded slices.
type Mode string

// Modes.
const (
	Keep        Mode = "keep"         // they stay
	LocalMedian Mode = "local_median" // median of the other shifts in nearby rows, or else of all others
	Median      Mode = "median"       // median of all other shifts
	Zero        Mode = "zero"         // no shift
)

// Modes lists the modes.
var Modes = []Mode{Keep, LocalMedian, Median, Zero}

// replace changes the shifts from and to excluded slices.
func replace(table *registration.ShiftTable, excluded []int, o Options) {
	if len(excluded) == 0 || o.Excluded == Keep || o.Excluded == "" {
		return
	}
	rows := table.Rows
	bad := make([]bool, len(rows))
	for i, r := range rows {
		bad[i] = slices.Contains(excluded, r.Fixed) || slices.Contains(excluded, r.Moving)
	}
	was := slices.Clone(rows)
	others := func(from, to int) (out []registration.ShiftRow) {
		for i := max(0, from); i < min(to, len(was)); i++ {
			if !bad[i] {
				out = append(out, was[i])
			}
		}
		return out
	}
	for i := range rows {
		if !bad[i] {
			continue
		}
		var from []registration.ShiftRow
		if o.Excluded == LocalMedian {
			from = others(i-o.Window, i+o.Window+1)
		}
		if from == nil && o.Excluded != Zero {
			from = others(0, len(was))
		}
		r := &rows[i]
		r.X = median(from, func(r registration.ShiftRow) float64 { return r.X })
		r.Y = median(from, func(r registration.ShiftRow) float64 { return r.Y })
		for d := range r.PX {
			r.PX[d] = median(from, func(r registration.ShiftRow) float64 { return r.PX[d] })
		}
		r.Reliable = true // nothing measured is left that pictures could refine
	}
}

// median returns the median of numbers of rows, or 0 without any; NaN is left out.
func median(rows []registration.ShiftRow, of func(registration.ShiftRow) float64) float64 {
	var v []float64
	for _, r := range rows {
		if x := of(r); !math.IsNaN(x) {
			v = append(v, x)
		}
	}
	if v == nil {
		return 0
	}
	return filter.MedianOf(v)
}
