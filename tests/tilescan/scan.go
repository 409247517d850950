package tilescan

import (
	"math"
	"math/rand/v2"
)

// Scan describes a scan of a picture.
type Scan struct {
	Picture string
	Tiles   int // rows, and columns
	Side    int // of a tile, px
	Overlap float64
	Seed    uint64

	// The stage.
	Jitter   float64 // standard deviation of tiles along an axis, px
	Rotation float64 // of the stage against the camera, degrees
	Scale    float64 // of its steps; 0: 1
	Backlash float64 // between rows scanned to and fro, px
	Slips    float64 // of rows, px
	Slip     float64 // of one tile in the middle, px

	// Light and detector.
	Noise    float64 // relative to the picture's contrast
	Vignette float64 // darkening of the corners
	Columns  float64 // gain of the detector's columns, standard deviation
	Gain     float64 // of tiles, standard deviation

	// The specimen.
	Empty float64 // part of the area without tissue
	End   int     // the end of a specimen: a piece of tissue that grows from 1 to 3; 0: none
}

// Rendered is a scan with its truth.
type Rendered struct {
	Pixels []float32    // the mosaic of whole tiles, side by side, (y, x)
	Places [][2]float64 // of tiles, (y, x) in px
	Tissue []bool       // of tiles: a tenth of their area or more
}

// Step returns the distance of neighbours in px that the overlap stands for.
func (s *Scan) Step() float64 { return float64(s.Side) * (1 - s.Overlap) }

// Render makes the tiles.
func (s *Scan) Render(all *Pictures) (*Rendered, error) {
	p, err := all.Get(s.Picture, int(s.Step()*float64(s.Tiles-1))+s.Side+80)
	if err != nil {
		return nil, err
	}
	rng := rand.New(rand.NewPCG(s.Seed, 77))
	n := s.Tiles * s.Tiles
	r := &Rendered{make([]float32, n*s.Side*s.Side), s.places(rng, p), make([]bool, n)}
	c := s.camera(rng, p)
	for t := range n {
		r.Tissue[t] = c.expose(r, t) > s.Side*s.Side/10
	}
	return r, nil
}

// places returns where the stage puts the tiles.
func (s *Scan) places(rng *rand.Rand, p *Picture) [][2]float64 {
	n, step := s.Tiles, s.Step()
	if s.Scale > 0 {
		step *= s.Scale
	}
	sin, cos := math.Sincos(s.Rotation * math.Pi / 180)
	rows := make([]float64, n)
	for i := range rows {
		rows[i] = s.Slips*float64(rng.IntN(3)-1) + s.Backlash/2*(1-2*float64(i%2))
	}
	out := make([][2]float64, n*n)
	for t := range out {
		i, j := float64(t/n)-float64(n-1)/2, float64(t%n)-float64(n-1)/2
		out[t] = [2]float64{
			float64(p.H-s.Side)/2 + step*(cos*i-sin*j) + s.Jitter*rng.NormFloat64(),
			float64(p.W-s.Side)/2 + step*(sin*i+cos*j) + rows[t/n] + s.Jitter*rng.NormFloat64(),
		}
	}
	middle := n/2*n + n/2
	out[middle] = [2]float64{out[middle][0] + 0.6*s.Slip, out[middle][1] + 0.8*s.Slip}
	return out
}

// camera is what all exposures of a scan have in common.
type camera struct {
	*Scan
	rng            *rand.Rand
	picture        *Picture
	mean, contrast float64
	columns        []float64
	centre         [2]float64 // of the tissue, a disc
	radius         float64
}

func (s *Scan) camera(rng *rand.Rand, p *Picture) *camera {
	c := &camera{Scan: s, rng: rng, picture: p, centre: [2]float64{float64(p.H) / 2, float64(p.W) / 2}, radius: math.Inf(1)}
	c.mean, c.contrast = p.spread()
	for range s.Side {
		c.columns = append(c.columns, 1+s.Columns*rng.NormFloat64())
	}
	if s.Empty > 0 {
		c.radius = math.Sqrt((1-s.Empty)/math.Pi) * (s.Step()*float64(s.Tiles-1) + float64(s.Side)) * 0.93
	}
	if s.End > 0 {
		c.radius = float64(s.Side) * []float64{0.35, 0.5, 0.7}[s.End-1]
		c.centre[0] += 0.4 * s.Step()
		c.centre[1] -= 0.5 * s.Step()
	}
	return c
}

// agarose is the brightness around the tissue, relative to the picture's mean; floor is added to the picture.
const agarose, floor = 0.5, 0.2

// expose makes a tile, and returns how many of its pixels show tissue.
func (c *camera) expose(r *Rendered, t int) (tissue int) {
	gain := 1 + c.Gain*c.rng.NormFloat64()
	width := c.Tiles * c.Side
	for y := range c.Side {
		row := r.Pixels[(t/c.Tiles*c.Side+y)*width+t%c.Tiles*c.Side:][:c.Side]
		for x := range row {
			py, px := r.Places[t][0]+float64(y), r.Places[t][1]+float64(x)
			v := agarose * c.mean
			if math.Hypot(py-c.centre[0], px-c.centre[1]) < c.radius {
				v = floor + float64(c.picture.At(py, px))
				tissue++
			}
			h, w := (2*float64(y)+1)/float64(c.Side)-1, (2*float64(x)+1)/float64(c.Side)-1
			v *= gain * c.columns[x] * (1 - c.Vignette*(h*h+w*w)/2)
			row[x] = float32(max(v+c.Noise*c.contrast*c.rng.NormFloat64(), 0.001))
		}
	}
	return tissue
}
