package main

import (
	"math"
	"slices"
	"testing"

	"strata/pkg/zarr"
)

// Structured data are 12-bit values around the mean that their place has; a region
// has the same numbers each time.
func TestStructured(t *testing.T) {
	r := zarr.Region{Start: []int{0, 175, 225}, Shape: []int{400, 2, 3}}
	v, again := make([]float32, 2400), make([]float32, 2400)
	fillStructured(v, r)
	fillStructured(again, r)
	if !slices.Equal(v, again) {
		t.Error("other numbers the second time")
	}
	for i := range 6 {
		y, x := float64(175+i/3), float64(225+i%3)
		want := 1500 + 500*math.Sin(2*math.Pi*y/700)*math.Sin(2*math.Pi*x/900)
		sum, squares := 0.0, 0.0
		for k := i; k < len(v); k += 6 {
			n := float64(v[k]) * 4095
			if d := n - math.Round(n); math.Abs(d) > 1e-3 || n < 0 || n > 4095.5 {
				t.Fatalf("%v is no 12-bit value", n)
			}
			sum, squares = sum+n, squares+(n-want)*(n-want)
		}
		if mean, sigma := sum/400, math.Sqrt(squares/400); math.Abs(mean-want) > 75 || math.Abs(sigma-300) > 55 { // five standard errors
			t.Errorf("y %v, x %v: mean %.0f and sigma %.0f, want %.0f and 300", y, x, mean, sigma, want)
		}
	}
}
