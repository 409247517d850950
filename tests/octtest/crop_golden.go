package octtest

import (
	"strata/pkg/dtype"
	"strata/tests/golden"
)

// Numbers returns an expected array as float64.
func Numbers(a golden.Array) (all []float64) {
	dtype.Each(a.Data, a.Type, func(v float64) { all = append(all, v) })
	return all
}
