//go:build !noasm

package ngff

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// The vector code makes the same numbers as the plain code, at every length,
// in two and three dimensions, and touches nothing else.
func TestMeanRowVector(t *testing.T) {
	if !useAVX2 {
		t.Skip("no AVX2")
	}
	checkMeanRow[uint8](t)
	checkMeanRow[int8](t)
	checkMeanRow[uint16](t)
	checkMeanRow[int16](t)
}

func checkMeanRow[T integer](t *testing.T) {
	t.Helper()
	rng := rand.New(rand.NewPCG(7, 8))
	vectors := 0
	for n := range 100 {
		for planes := 1; planes <= 2; planes++ {
			var r [4][]T
			for i := range 2 * planes {
				r[i] = noise[T](2*n, rng)
			}
			got, want := make([]T, n+1), make([]T, n+1)
			done := meanRowVector(got[:n], &r, planes)
			meanRowInt[T, int32](want[:done], &[4][]T{r[0], r[1], r[2], r[3]}, 0, planes, planes+1)
			if !slices.Equal(got, want) {
				t.Fatalf("%d outputs of %T from %d planes: %v, want %v", n, got[0], planes, got, want)
			}
			vectors += done
		}
	}
	if vectors == 0 {
		t.Error("no vector code ran")
	}
}
