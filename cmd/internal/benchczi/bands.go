package benchczi

import (
	"fmt"

	"strata/pkg/bench"
)

// band is the fast, moderate and slow range of a quantity, as users of the CZI tile-loading toolbox know them: its
// limits, in the order from best to worst.
type band struct {
	fast, moderate, slow float64
	text                 [3]string // the ranges, in words
}

// Bands of the toolbox. Some have a gap between moderate and slow.
var (
	readBand   = band{0.01, 0.05, 0.1, [3]string{"below 0.01 s", "0.01 to 0.05 s", "above 0.1 s"}}        // seconds a tile
	stitchBand = band{0.001, 0.005, 0.01, [3]string{"below 0.001 s", "0.001 to 0.005 s", "above 0.01 s"}} // seconds a tile
	speedUp    = band{2, 1.5, 1.2, [3]string{"2 to 4 times", "1.5 to 2 times", "less than 1.2 times"}}    // by threads
	throughput = band{100, 20, 20, [3]string{"above 100 Mpx/s", "20 to 100 Mpx/s", "less than 20 Mpx/s"}} // million pixels per second
)

// grade returns the name of a value's range.
func (b band) grade(v float64) string {
	if b.fast > b.slow { // more is better
		v, b.fast, b.moderate, b.slow = -v, -b.fast, -b.moderate, -b.slow
	}
	switch {
	case v < b.fast:
		return "fast (" + b.text[0] + ")"
	case v <= b.moderate:
		return "moderate (" + b.text[1] + ")"
	case v > b.slow:
		return "slow (" + b.text[2] + ")"
	}
	return fmt.Sprintf("between moderate (%s) and slow (%s)", b.text[1], b.text[2])
}

// perTile describes a time per tile with its grade.
func (b band) perTile(what string, seconds float64) string {
	return fmt.Sprintf("%s: %s a tile: %s", what, bench.Time(seconds), b.grade(seconds))
}
