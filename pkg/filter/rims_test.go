package filter

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// rims is the definition: levels fall until nothing changes.
func rims(src []float32, shape [3]int) []float32 {
	nz, ny, nx := shape[0], shape[1], shape[2]
	border := func(z, y, x int) bool {
		return z == 0 || y == 0 || x == 0 || z == nz-1 || y == ny-1 || x == nx-1
	}
	out := slices.Repeat([]float32{1e30}, len(src))
	for changed := true; changed; {
		changed = false
		for i, h := range src {
			z, y, x := i/ny/nx, i/nx%ny, i%nx
			level := h
			if !border(z, y, x) {
				level = max(h, min(out[i-1], out[i+1], out[i-nx], out[i+nx], out[i-ny*nx], out[i+ny*nx]))
			}
			if level < out[i] {
				out[i] = level
				changed = true
			}
		}
	}
	return out
}

// part returns rows y0…y1−1 and columns x0…x1−1 of a volume.
func part(v []float32, shape [3]int, y0, y1, x0, x1 int) (out []float32) {
	for z := range shape[0] {
		for y := y0; y < y1; y++ {
			out = append(out, v[(z*shape[1]+y)*shape[2]+x0:][:x1-x0]...)
		}
	}
	return out
}

// The levels are those of the definition, of the whole volume and of parts that know their neighbours' levels.
func TestRims(t *testing.T) {
	rng := rand.New(rand.NewPCG(12, 13))
	var m Rims
	for _, shape := range [][3]int{{1, 1, 1}, {2, 3, 4}, {3, 3, 3}, {5, 1, 9}, {7, 9, 11}, {12, 16, 15}, {6, 30, 28}} {
		for _, values := range []int{2, 5, 1000} {
			src := make([]float32, shape[0]*shape[1]*shape[2])
			for i := range src {
				src[i] = float32(rng.IntN(values))
			}
			want := rims(src, shape)
			got := make([]float32, len(src))
			m.Fill(got, src, shape, Beside{})
			if !slices.Equal(got, want) {
				t.Fatalf("shape %v, %d values: other levels", shape, values)
			}
			y0, y1, x0, x1 := shape[1]/3, shape[1]*2/3+1, shape[2]/3, shape[2]*2/3+1
			var b Beside
			if y0 > 0 {
				b[0] = part(want, shape, y0-1, y0, x0, x1)
			}
			if y1 < shape[1] {
				b[1] = part(want, shape, y1, y1+1, x0, x1)
			}
			if x0 > 0 {
				b[2] = part(want, shape, y0, y1, x0-1, x0)
			}
			if x1 < shape[2] {
				b[3] = part(want, shape, y0, y1, x1, x1+1)
			}
			inner := part(src, shape, y0, y1, x0, x1)
			got = make([]float32, len(inner))
			m.Fill(got, inner, [3]int{shape[0], y1 - y0, x1 - x0}, b)
			if !slices.Equal(got, part(want, shape, y0, y1, x0, x1)) {
				t.Fatalf("shape %v, %d values: other levels of a part", shape, values)
			}
		}
	}
}

func FuzzRims(f *testing.F) {
	f.Add([]byte("a volume of some heights, of which a few are low"), uint8(3), uint8(4))
	f.Fuzz(func(t *testing.T, raw []byte, ny, nx uint8) {
		shape := [3]int{0, int(ny%7) + 1, int(nx%7) + 1}
		raw = raw[:min(len(raw), 600)]
		shape[0] = len(raw) / (shape[1] * shape[2])
		if shape[0] == 0 {
			return
		}
		src := make([]float32, shape[0]*shape[1]*shape[2])
		for i := range src {
			src[i] = float32(raw[i])
		}
		got := make([]float32, len(src))
		new(Rims).Fill(got, src, shape, Beside{})
		if !slices.Equal(got, rims(src, shape)) {
			t.Errorf("shape %v: other levels", shape)
		}
	})
}
