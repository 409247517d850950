package basic

// sums holds the partial sums of a step over a piece of an image, in eight lanes: lane i sums pixels i, i + 8, i + 16,
// …
type sums struct {
	excess [8]float64 // of clip(u) − u, which is −μ·R
	square [8]float32 // of d², where d = clip(u) − Y is μ·(I − S·B − R)
	along  [8]float32 // of d·q
}

func (s *sums) total() (excess, square, along float64) {
	for i := range s.excess {
		excess += s.excess[i]
		square += float64(s.square[i])
		along += float64(s.along[i])
	}
	return excess, square, along
}

// factors are the numbers of one image in a step.
type factors struct{ mu, a, b float32 }

// step makes R and the dual variable Y of a piece of an image. Of both it keeps one number a pixel, u = Y + μ·(I −
// S·B): soft thresholds make R = (u − clip(u))/μ, where clip limits to ±W, so that the dual variable would become
// clip(u), if S and B stayed as they are. What they have changed meanwhile is p·a, and with q = S and b = μ·B
//
//	Y = clip(u) + p·a,  u = Y + μ·I − q·b.
//
// It adds clip(u) − u to excess and, unless that is nil, (clip(u) − Y)·b to pull, and sets s. Pieces have a multiple of
// 8 pixels.
func step(u, image, weight, p, q []float32, f factors, excess, pull []float64, s *sums) {
	if stepVector(u, image, weight, p, q, f, excess, pull, s) {
		return
	}
	stepScalar(u, image, weight, p, q, f, excess, pull, s)
}

func stepScalar(u, image, weight, p, q []float32, f factors, excess, pull []float64, s *sums) {
	*s = sums{}
	n := len(u)
	image, weight, p, q, excess = image[:n], weight[:n], p[:n], q[:n], excess[:n]
	for i, last := range u {
		w := weight[i]
		y := max(-w, min(last, w)) + float32(p[i]*f.a)
		next := y + float32(float32(image[i]*f.mu)-float32(q[i]*f.b))
		u[i] = next
		c := max(-w, min(next, w))
		over, d := c-next, c-y
		k := i & 7
		s.excess[k] += float64(over)
		s.square[k] += float32(d * d)
		s.along[k] += float32(d * q[i])
		excess[i] += float64(over)
		if pull != nil {
			pull[i] += float64(float32(d * f.b))
		}
	}
}
