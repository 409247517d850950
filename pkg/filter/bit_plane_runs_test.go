package filter

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// Runs and thresholds are those of the pixels one by one.
func TestBitPlaneRuns(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, shape := range [][2]int{{1, 1}, {5, 64}, {4, 65}, {7, 130}, {3, 20}} {
		for _, share := range []float64{0, 0.1, 0.5, 0.95, 1} {
			values := make([]float32, shape[0]*shape[1])
			var want []uint32
			last := false
			for i := range values {
				if values[i] = 1; r.Float64() < share {
					values[i] = 1.5
				}
				if now := values[i] > 1; now != last {
					want, last = append(want, uint32(i)), now
				}
			}
			if last {
				want = append(want, uint32(len(values)))
			}
			p := NewBitPlane(shape[0], shape[1])
			p.Above(values, 1)
			if got := p.AppendRuns(nil); !slices.Equal(got, want) {
				t.Fatalf("%v: %v, want %v", shape, got, want)
			}
		}
	}
}
