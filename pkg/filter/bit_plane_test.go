package filter

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// bitPlaneOf returns the image with the given pixels.
func bitPlaneOf(v []bool, height, width int) *BitPlane {
	p := NewBitPlane(height, width)
	for i, b := range v {
		if b {
			p.set(i/width, i%width)
		}
	}
	return p
}

func (p *BitPlane) pixels() (v []bool) {
	for y := range p.Height {
		for x := range p.Width {
			v = append(v, p.at(y, x))
		}
	}
	return v
}

// flooded is the definition of FillHoles: a flood from the border.
func flooded(v []bool, height, width int) []bool {
	outside := make([]bool, len(v))
	var queue []int
	visit := func(y, x int) {
		if y < 0 || x < 0 || y >= height || x >= width || v[y*width+x] || outside[y*width+x] {
			return
		}
		outside[y*width+x] = true
		queue = append(queue, y*width+x)
	}
	for y := range height {
		for x := range width {
			if y == 0 || x == 0 || y == height-1 || x == width-1 {
				visit(y, x)
			}
		}
	}
	for len(queue) > 0 {
		y, x := queue[0]/width, queue[0]%width
		queue = queue[1:]
		visit(y-1, x)
		visit(y+1, x)
		visit(y, x-1)
		visit(y, x+1)
	}
	for i := range outside {
		outside[i] = !outside[i]
	}
	return outside
}

// closed is the definition of Close.
func closed(v []bool, height, width int) []bool {
	step := func(v []bool, erode bool) []bool {
		out := make([]bool, len(v))
		for i := range v {
			out[i] = erode
			for dy := -3; dy <= 3; dy++ {
				for dx := -3; dx <= 3; dx++ {
					y, x := i/width+dy, i%width+dx
					in := y >= 0 && x >= 0 && y < height && x < width && v[y*width+x]
					if dy*dy+dx*dx <= 9 && in != erode {
						out[i] = in
					}
				}
			}
		}
		return out
	}
	return step(step(v, false), true)
}

func checkBitPlane(t *testing.T, v []bool, height, width int) {
	t.Helper()
	p := bitPlaneOf(v, height, width)
	p.FillHoles()
	if !slices.Equal(p.pixels(), flooded(v, height, width)) {
		t.Fatalf("%d × %d: other holes", height, width)
	}
	p = bitPlaneOf(v, height, width)
	p.Close()
	want := closed(v, height, width)
	if !slices.Equal(p.pixels(), want) {
		t.Fatalf("%d × %d: closed otherwise", height, width)
	}
	n := int64(0)
	for _, b := range want {
		if b {
			n++
		}
	}
	if p.Count() != n {
		t.Fatalf("%d × %d: %d pixels, want %d", height, width, p.Count(), n)
	}
}

func TestBitPlane(t *testing.T) {
	rng := rand.New(rand.NewPCG(10, 11))
	for _, size := range [][2]int{{1, 1}, {2, 5}, {9, 9}, {40, 64}, {33, 130}, {20, 63}, {70, 201}} {
		for _, share := range []int{0, 10, 40, 60, 90, 100} {
			v := make([]bool, size[0]*size[1])
			for i := range v {
				v[i] = rng.IntN(100) < share
			}
			checkBitPlane(t, v, size[0], size[1])
			p := bitPlaneOf(v, size[0], size[1])
			same := NewBitPlane(size[0], size[1])
			for x := 0; x < size[1]; x += 37 { // parts of rows that begin anywhere
				n := min(37, size[1]-x)
				for i := range same.Words {
					if i == 0 && x == 0 {
						same.Words[i] |= 1 // what is there is replaced
					}
				}
				for y := range size[0] {
					var row [1]uint64
					p.ReadRow(row[:], y, x, n)
					same.CopyRow(y, x, row[:], n)
				}
			}
			if !slices.Equal(same.Words, p.Words) {
				t.Errorf("%v: rows copied in parts differ", size)
			}
		}
	}
}

func FuzzBitPlane(f *testing.F) {
	f.Add([]byte("some pixels"), uint8(13))
	f.Fuzz(func(t *testing.T, raw []byte, width uint8) {
		w := int(width)%140 + 1
		v := make([]bool, 8*min(len(raw), 400)/w*w)
		for i := range v {
			v[i] = raw[i/8]>>(i%8)&1 != 0
		}
		if len(v) > 0 {
			checkBitPlane(t, v, len(v)/w, w)
		}
	})
}

// at returns the pixel (y, x).
func (p *BitPlane) at(y, x int) bool { return p.Words[y*p.Stride+x>>6]>>(x&63)&1 != 0 }

// set makes the pixel (y, x) 1.
func (p *BitPlane) set(y, x int) { p.Words[y*p.Stride+x>>6] |= 1 << (x & 63) }

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
