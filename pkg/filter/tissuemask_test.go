package filter

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// closed is the closing by its definition.
func closed(mask []uint8, ny, nx int) []uint8 {
	inDisk := func(dy, dx int) bool { return dy*dy+dx*dx <= 9 }
	each := func(y, x int, f func(inside bool, v uint8)) {
		for dy := -3; dy <= 3; dy++ {
			for dx := -3; dx <= 3; dx++ {
				if !inDisk(dy, dx) {
					continue
				}
				if a, b := y+dy, x+dx; a >= 0 && a < ny && b >= 0 && b < nx {
					f(true, mask[a*nx+b])
				} else {
					f(false, 0)
				}
			}
		}
	}
	grown := make([]uint8, len(mask))
	for i := range mask {
		each(i/nx, i%nx, func(_ bool, v uint8) { grown[i] |= v })
	}
	mask = grown
	out := make([]uint8, len(mask))
	for i := range out {
		out[i] = 1
		each(i/nx, i%nx, func(inside bool, v uint8) {
			if !inside || v == 0 {
				out[i] = 0
			}
		})
	}
	return out
}

func TestClose(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, shape := range [][2]int{{1, 1}, {2, 9}, {7, 7}, {8, 5}, {30, 41}} {
		ny, nx := shape[0], shape[1]
		p := NewPlaneMask(ny, nx)
		for range 20 {
			share := r.Float64()
			mask := make([]uint8, ny*nx)
			for i := range mask {
				if r.Float64() < share {
					mask[i] = 1
				}
			}
			want := closed(slices.Clone(mask), ny, nx)
			if p.Close(mask); !slices.Equal(mask, want) {
				t.Fatalf("%d × %d: %v, want %v", ny, nx, mask, want)
			}
		}
	}
}

func TestFill(t *testing.T) {
	const nx = 9
	plane := func(rows ...string) (mask []uint8) {
		for _, r := range rows {
			for _, c := range r {
				v := uint8(0)
				if c == '#' {
					v = 1
				}
				mask = append(mask, v)
			}
		}
		return mask
	}
	mask := plane(
		"#########",
		"#...#...#",
		"#.#.#####",
		"#...#..#.", // a diagonal is no path to the pixel at the border
		"#####.###",
		"....#####",
		".##.....#",
		".#.#....#",
		".##.....#",
		"......###")
	want := plane(
		"#########",
		"#########",
		"#########",
		"########.",
		"#########",
		"....#####",
		".##.....#",
		".###....#",
		".##.....#",
		"......###")
	p := NewPlaneMask(10, nx)
	if p.Fill(mask); !slices.Equal(mask, want) {
		for y := range 10 {
			t.Errorf("%v want %v", mask[y*nx:][:nx], want[y*nx:][:nx])
		}
	}
	all := slices.Repeat([]uint8{1}, 90)
	if p.Fill(all); !slices.Equal(all, slices.Repeat([]uint8{1}, 90)) {
		t.Error("a full plane changes")
	}
	clear(all)
	if p.Fill(all); !slices.Equal(all, make([]uint8, 90)) {
		t.Error("an empty plane changes")
	}
}

// The threshold in one pass is that of the values within a bin.
func TestOtsuSketch(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	for range 20 {
		low, high := 1+10*r.Float64(), 20+200*r.Float64()
		v := []float32{0, -3, float32(math.NaN()), float32(math.Inf(1))}
		for i := range 20000 {
			centre := low
			if i%3 == 0 {
				centre = high
			}
			v = append(v, float32(centre*(1+0.2*r.NormFloat64())))
		}
		want, ok := PositiveOtsu(v)
		a, b := NewOtsuSketch(), NewOtsuSketch()
		a.Add(v[:7000])
		b.Add(v[7000:])
		a.Merge(b)
		got, found := a.Threshold()
		lo, hi, n := PositiveRange(v)
		if width := float64(hi-lo) / 256; !ok || !found || math.Abs(got-want) > 1.5*width || n != a.Count() {
			t.Errorf("threshold %v of %d, want %v of %d ± %v", got, a.Count(), want, n, width)
		}
	}
	for _, flat := range [][]float32{nil, {0, -1}, {3, 3}} {
		s := NewOtsuSketch()
		s.Add(flat)
		if got, ok := s.Threshold(); ok {
			t.Errorf("%v has the threshold %v", flat, got)
		}
	}
}
