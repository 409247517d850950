package phantom

import "math"

// mix returns the finaliser of splitmix64 (Steele, Lea, Flood, OOPSLA 2014) of its argument: every input bit
// changes half the output bits.
func mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

const golden = 0x9e3779b97f4a7c15

// hash3 returns a uniform number in [0, 1) for a point of an integer lattice.
func hash3(seed uint64, z, y, x int) float64 {
	h := mix(seed + golden*uint64(int64(x)))
	h = mix(h + golden*uint64(int64(y)))
	h = mix(h + golden*uint64(int64(z)))
	return float64(h>>11) * (1.0 / (1 << 53))
}

// normal returns a standard normal number that depends only on a seed and an index.
func normal(seed uint64, i int) float64 {
	u1 := 1 - hash3(seed, 0, 0, i)
	u2 := hash3(seed, 1, 0, i)
	return math.Sqrt(-2*math.Log(u1)) * math.Cos(2*math.Pi*u2)
}

// Seeds of the fields that a specimen is made of: two fields must not be the
// same noise.
const (
	seedTexture = iota + 1
	seedRelief
	seedSpeckle
	seedJitter
	seedShift
	seedGlitch
	seedGlitchSize
	seedWhite
	seedStage
	seedFolds
	seedTracts
	seedVessels
	seedEntries
	seedTurn
	seedRehome
	seedRehomeSize
)

func (s *Specimen) seed(field, i int) uint64 {
	return mix(s.cfg.Seed*golden + uint64(field)<<32 + uint64(i))
}

const speckleBits = 12

// speckleTable holds the quantiles of a gamma distribution with mean 1 and
// the given contrast: the intensity of partially developed speckle with
// 1/contrast² looks (Goodman, Speckle Phenomena in Optics, 2007, §3.3). The
// quantiles are Wilson and Hilferty's (PNAS 17, 1931), scaled to mean 1.
func speckleTable(contrast float64) []float32 {
	n := 1 << speckleBits
	q := make([]float64, n)
	sum := 0.0
	for i := range q {
		if contrast == 0 {
			q[i] = 1
		} else {
			k := 1 / (contrast * contrast)
			z := math.Sqrt2 * math.Erfinv(2*(float64(i)+0.5)/float64(n)-1)
			q[i] = math.Pow(max(0, 1-1/(9*k)+z/(3*math.Sqrt(k))), 3)
		}
		sum += q[i]
	}
	out := make([]float32, n)
	for i := range out {
		out[i] = float32(q[i] * float64(n) / sum)
	}
	return out
}

// octave is value noise on a lattice: random numbers at its points, linear in
// between (cubic easing along y and x, so that the texture has no creases).
type octave struct {
	seed   uint64
	step   [3]float64 // lattice spacing in voxels
	weight float32
}

// aline is a row of A-lines of the block, in voxels: A-line i lies at (y + i·dy, x + i·dx). In a slice that is not
// rotated, dy is 0 and dx is 1.
type aline struct{ y, x, dy, dx float64 }

// at returns the position of A-line i.
func (l *aline) at(i int) (y, x float64) {
	return l.y + float64(float64(i)*l.dy), l.x + float64(float64(i)*l.dx)
}

// moved returns the row shifted by (dy, dx) voxels.
func (l aline) moved(dy, dx float64) aline {
	l.y, l.x = l.y+dy, l.x+dx
	return l
}

// plane fills out with the octave's value at lattice depth k for a row of A-lines.
func (o *octave) plane(out []float32, k int, row aline) {
	if row.dy != 0 {
		o.slanted(out, k, row)
		return
	}
	v := row.y / o.step[1]
	j := math.Floor(v)
	ty := float32(ease(v - j))
	jy := int(j)
	last := math.MinInt
	var a, b float32
	for i := range out {
		u := (row.x + float64(i)) / o.step[2]
		f := math.Floor(u)
		if jx := int(f); jx != last {
			if jx == last+1 {
				a = b
			} else {
				a = lerp(float32(hash3(o.seed, k, jy, jx)), float32(hash3(o.seed, k, jy+1, jx)), ty)
			}
			b = lerp(float32(hash3(o.seed, k, jy, jx+1)), float32(hash3(o.seed, k, jy+1, jx+1)), ty)
			last = jx
		}
		out[i] = lerp(a, b, float32(ease(u-f)))
	}
}

// slanted fills out like plane, for a row that is not parallel to the lattice.
func (o *octave) slanted(out []float32, k int, row aline) {
	at := [2]int{math.MinInt, math.MinInt}
	var c [4]float32 // numbers at the corners of the cell
	for i := range out {
		y, x := row.at(i)
		v, u := y/o.step[1], x/o.step[2]
		fv, fu := math.Floor(v), math.Floor(u)
		if cell := [2]int{int(fv), int(fu)}; cell != at {
			at = cell
			for n := range c {
				c[n] = float32(hash3(o.seed, k, cell[0]+n&1, cell[1]+n>>1))
			}
		}
		ty := float32(ease(v - fv))
		out[i] = lerp(lerp(c[0], c[1], ty), lerp(c[2], c[3], ty), float32(ease(u-fu)))
	}
}

func ease(t float64) float64 { return t * t * (3 - 2*t) }

// The product is rounded before the sum, so that no compiler fuses them and
// every machine makes the same phantom.
func lerp(a, b, t float32) float32 { return a + float32((b-a)*t) }
