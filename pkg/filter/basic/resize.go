package basic

// Shrink resizes an image of ny × nx pixels to Size × Size: along each axis with triangle weights as wide as
// the step between outputs, whose centres run from the first pixel of the axis to its last (stages
// specification, focal, step 2).
func Shrink(dst, src []float32, ny, nx int) {
	rows, columns := triangles(ny), triangles(nx)
	half := make([]float64, ny*Size) // along X first
	for y := range ny {
		for x, t := range columns {
			sum := 0.0
			for k, w := range t.weights {
				sum += float64(w * float64(src[y*nx+t.first+k]))
			}
			half[y*Size+x] = sum
		}
	}
	for y, t := range rows {
		for x := range Size {
			sum := 0.0
			for k, w := range t.weights {
				sum += float64(w * half[(t.first+k)*Size+x])
			}
			dst[y*Size+x] = float32(sum)
		}
	}
}

// triangle is the weights of one output.
type triangle struct {
	first   int
	weights []float64
}

func triangles(n int) (out [Size]triangle) {
	s := float64(n-1) / (Size - 1)
	h := max(s, 1)
	for i := range out {
		c := s * (float64(i) + 0.5)
		first, end := max(0, int(c-h+0.5)), min(n, int(c+h+0.5))
		if first >= end { // an axis of one pixel
			first, end = min(first, n-1), min(first, n-1)+1
		}
		t := triangle{first: first}
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
