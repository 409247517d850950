package basic

// A Shrinker resizes images of one size to Size × Size.
type Shrinker struct{ rows, columns []taps }

// Triangles returns a Shrinker of images of ny × nx pixels: along each axis with triangle weights as wide as the step
// between outputs, whose centres run from the first pixel of the axis to its last (stages specification, focal, step
// 2).
func Triangles(ny, nx int) Shrinker { return Shrinker{triangles(ny), triangles(nx)} }

// Centred is [Triangles] as linum-basic does it: images of at least Size rows become means over what an output
// covers, others are interpolated linearly between the centres of pixels, as is an axis of fewer than Size.
func Centred(ny, nx int) Shrinker {
	s := Shrinker{linear(ny, Size), linear(nx, Size)}
	if ny >= Size {
		s.rows = areas(ny)
		if nx >= Size {
			s.columns = areas(nx)
		}
	}
	return s
}

// Shrink computes Size × Size weighted sums of an image.
func (s Shrinker) Shrink(dst, src []float32, ny, nx int) {
	half := make([]float64, ny*Size) // along X first
	for y := range ny {
		row, out := src[y*nx:][:nx], half[y*Size:][:Size]
		for x, t := range s.columns {
			sum := 0.0
			for k, w := range t.weights {
				sum += float64(w * float64(row[t.first+k]))
			}
			out[x] = sum
		}
	}
	for y, t := range s.rows {
		sum := [Size]float64{}
		for k, w := range t.weights {
			for x, v := range (*[Size]float64)(half[(t.first+k)*Size:]) {
				sum[x] += float64(w * v)
			}
		}
		for x, v := range sum {
			dst[y*Size+x] = float32(v)
		}
	}
}

// taps are the weights of one output, of inputs from the first on.
type taps struct {
	first   int
	weights []float64
}

func triangles(n int) []taps {
	out := make([]taps, Size)
	s := float64(n-1) / (Size - 1)
	h := max(s, 1)
	for i := range out {
		c := s * (float64(i) + 0.5)
		first, end := max(0, int(c-h+0.5)), min(n, int(c+h+0.5))
		if first >= end { // an axis of one pixel
			first, end = min(first, n-1), min(first, n-1)+1
		}
		t := taps{first: first}
		sum := 0.0
		for j := first; j < end; j++ {
			d := (float64(j) + 0.5 - c) / h
			w := max(0, 1-max(d, -d))
			t.weights = append(t.weights, w)
			sum += w
		}
		for k := range t.weights {
			if sum == 0 {
				t.weights[k] = 1 / float64(len(t.weights))
			} else {
				t.weights[k] /= sum
			}
		}
		out[i] = t
	}
	return out
}

// Enlarge resizes a flat-field of Size × Size to ny × nx pixels, linearly and corner-aligned.
func Enlarge(dst []float32, src []float64, ny, nx int) {
	at := func(i, n int) (int, float64) {
		if n == 1 {
			return 0, 0
		}
		p := float64(i) * (Size - 1) / float64(n-1)
		k := min(int(p), Size-2)
		return k, p - float64(k)
	}
	for y := range ny {
		j, v := at(y, ny)
		for x := range nx {
			i, u := at(x, nx)
			a := float64((1-u)*src[j*Size+i]) + float64(u*src[j*Size+i+1])
			b := float64((1-u)*src[(j+1)*Size+i]) + float64(u*src[(j+1)*Size+i+1])
			dst[y*nx+x] = float32(float64((1-v)*a) + float64(v*b))
		}
	}
}

// EnlargeCentred resizes a flat-field of Size × Size to ny × nx pixels, linearly between the centres of pixels, and
// scales it to mean 1, as linum-basic does.
func EnlargeCentred(dst []float32, src []float64, ny, nx int) {
	rows, columns := linear(Size, ny), linear(Size, nx)
	at := func(y, x int) float64 {
		sum := 0.0
		for j, v := range rows[y].weights {
			for i, u := range columns[x].weights {
				sum += float64(v * float64(u*src[(rows[y].first+j)*Size+columns[x].first+i]))
			}
		}
		return sum
	}
	mean := 0.0
	for y := range ny {
		for x := range nx {
			mean += at(y, x)
		}
	}
	mean /= float64(ny * nx)
	for y := range ny {
		for x := range nx {
			dst[y*nx+x] = float32(at(y, x) / mean)
		}
	}
}

// areas returns the weights by which each of Size outputs is the mean over its share of n ≥ Size inputs.
func areas(n int) []taps {
	out := make([]taps, Size)
	for i := range out { // from i·n to (i+1)·n, in units of 1/Size of an input
		first, end := i*n/Size, ((i+1)*n+Size-1)/Size
		out[i].first = first
		for j := first; j < end; j++ {
			covered := min((j+1)*Size, (i+1)*n) - max(j*Size, i*n)
			out[i].weights = append(out[i].weights, float64(covered)/float64(n))
		}
	}
	return out
}

// linear returns the weights that interpolate m outputs between the centres of n inputs. Beyond the outermost centres
// the outermost values hold.
func linear(n, m int) []taps {
	out := make([]taps, m)
	for i := range out {
		p := min(max(0, (float64(i)+0.5)*float64(n)/float64(m)-0.5), float64(n-1))
		k := min(int(p), max(n-2, 0))
		t := p - float64(k)
		out[i] = taps{k, []float64{1 - t, t}}
		if n == 1 {
			out[i] = taps{0, []float64{1}}
		}
	}
	return out
}
