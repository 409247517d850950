package pairwise

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// Vector and scalar versions give the same bits, for every width.
func TestLocalMeanVector(t *testing.T) {
	if !useAVX2 {
		t.Skip("no AVX2")
	}
	defer func() { useAVX2 = true }()
	for ny := 3; ny < 2*reach+9; ny += 7 {
		for nx := 1; nx < 70; nx++ {
			rng := rand.New(rand.NewPCG(uint64(ny), uint64(nx)))
			n := ny * nx
			f, w, known := make([]float32, n), make([]float32, n), make([]float32, n)
			for i := range f {
				if rng.IntN(5) > 0 {
					f[i], w[i], known[i] = float32(rng.NormFloat64()), float32(math.Exp(10*rng.NormFloat64())), 1
				}
			}
			var out [2][][]float32
			for k := range out {
				useAVX2 = k == 1
				m := newLocalMean(ny, nx, newBands(n, nil), make([]float32, ofMeans*n))
				out[k] = [][]float32{slices.Clone(f), slices.Clone(w)}
				if err := m.take(out[k][0], out[k][1], known, make([]float32, n), false); err != nil {
					t.Fatal(err)
				}
			}
			for k := range out[0] {
				for i, v := range out[0][k] {
					if u := out[1][k][i]; math.Float32bits(u) != math.Float32bits(v) {
						t.Fatalf("%d × %d, pixel %d: %v, without vectors %v", ny, nx, i, u, v)
					}
				}
			}
		}
	}
}
