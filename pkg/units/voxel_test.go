package units

import (
	"math"
	"strings"
	"testing"
)

func TestCheckVoxel(t *testing.T) {
	tenth := 0.1
	for _, um := range []float64{1e-3, 10 * 1e-4, tenth * tenth * tenth, 0.25, 10, 1e6, 1000 * 1e3, 1e6 * (1 + 1e-12)} {
		if err := CheckVoxel(um); err != nil {
			t.Errorf("%v: %v", um, err)
		}
	}
	for _, um := range []float64{0, -1, 0.99e-3, 1e-300, 5e-324, 1.01e6, 1e9, 1e300, math.Inf(1), math.Inf(-1), math.NaN()} {
		if err := CheckVoxel(um); err == nil || !strings.Contains(err.Error(), "1 nm to 1 m") {
			t.Errorf("%v: %v", um, err)
		}
	}
}
