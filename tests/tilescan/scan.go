package tilescan

import (
	"math"
	"math/rand/v2"
	"strings"
)

// Scan describes a scan of a picture or, where its name ends with .nii.gz, of a volume.
type Scan struct {
	Picture string
	Tiles   int // rows, and columns
	Side    int // of a tile, px
	Overlap float64
	Seed    uint64
	Reflect bool // a picture that is too small is reflected at its borders, not enlarged

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
	Speckle  float64 // part of the light that is fully developed speckle

	// The specimen.
	Empty float64 // part of the area without tissue
	End   int     // the end of a specimen: a piece of tissue that grows from 1 to 3; 0: none

	// Of volumes alone.
	Planes    int     // 0: one
	Depth     float64 // of the first plane, a part of the volume's
	Curvature float64 // of the focal plane: how many planes deeper corners look
}

// source is what is scanned. Its coordinates are px.
type source interface {
	size() (h, w int)
	at(z, y, x float64) (value float64, tissue bool)
	depth(part float64) float64
	spread() (mean, deviation float64)
}

// source returns what is scanned, with sides of at least so many pixels.
func (s *Scan) source(all *Pictures, least int) (source, error) {
	if strings.HasSuffix(s.Picture, ".nii.gz") {
		return all.volume(s.Picture, least)
	}
	if s.Reflect {
		return all.Continued(s.Picture, least)
	}
	return all.Get(s.Picture, least)
}

// Rendered is a scan with its truth.
type Rendered struct {
	Pixels []float32    // the mosaic of whole tiles, side by side, (z, y, x)
	Places [][2]float64 // of tiles, (y, x) in px
	Tissue []bool       // of tiles: a tenth of their area or more
}

// Step returns the distance of neighbours in px that the overlap stands for.
func (s *Scan) Step() float64 { return float64(s.Side) * (1 - s.Overlap) }

// Shape returns the shape (z, y, x) of the mosaic.
func (s *Scan) Shape() []int { return []int{max(s.Planes, 1), s.Tiles * s.Side, s.Tiles * s.Side} }

// Render makes the tiles.
func (s *Scan) Render(all *Pictures) (*Rendered, error) {
	p, err := s.source(all, int(s.Step()*float64(s.Tiles-1))+s.Side+80)
	if err != nil {
		return nil, err
	}
	rng := rand.New(rand.NewPCG(s.Seed, 77))
	n := s.Tiles * s.Tiles
	r := &Rendered{make([]float32, s.Shape()[0]*n*s.Side*s.Side), s.places(rng, p), make([]bool, n)}
	c := s.camera(rng, p)
	for t := range n {
		r.Tissue[t] = c.expose(r, t) > s.Shape()[0]*s.Side*s.Side/10
	}
	return r, nil
}

// places returns where the stage puts the tiles.
func (s *Scan) places(rng *rand.Rand, p source) [][2]float64 {
	n, step := s.Tiles, s.Step()
	if s.Scale > 0 {
		step *= s.Scale
	}
	sin, cos := math.Sincos(s.Rotation * math.Pi / 180)
	rows := make([]float64, n)
	for i := range rows {
		rows[i] = s.Slips*float64(rng.IntN(3)-1) + s.Backlash/2*(1-2*float64(i%2))
	}
	h, w := p.size()
	out := make([][2]float64, n*n)
	for t := range out {
		i, j := float64(t/n)-float64(n-1)/2, float64(t%n)-float64(n-1)/2
		out[t] = [2]float64{
			float64(h-s.Side)/2 + step*(cos*i-sin*j) + s.Jitter*rng.NormFloat64(),
			float64(w-s.Side)/2 + step*(sin*i+cos*j) + rows[t/n] + s.Jitter*rng.NormFloat64(),
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
	source         source
	mean, contrast float64
	columns        []float64
	centre         [2]float64 // of the tissue, a disc
	radius         float64
}

func (s *Scan) camera(rng *rand.Rand, p source) *camera {
	height, width := p.size()
	c := &camera{Scan: s, rng: rng, source: p, centre: [2]float64{float64(height) / 2, float64(width) / 2}, radius: math.Inf(1)}
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

// expose makes a tile, and returns how many of its voxels show tissue.
func (c *camera) expose(r *Rendered, t int) (tissue int) {
	gain := 1 + c.Gain*c.rng.NormFloat64()
	shape := c.Shape()
	first := c.source.depth(c.Depth)
	for z := range shape[0] {
		for y := range c.Side {
			row := r.Pixels[(z*shape[1]+t/c.Tiles*c.Side+y)*shape[2]+t%c.Tiles*c.Side:][:c.Side]
			for x := range row {
				h, w := (2*float64(y)+1)/float64(c.Side)-1, (2*float64(x)+1)/float64(c.Side)-1
				corner := (h*h + w*w) / 2 // 0 in the middle of a tile, 1 in its corners
				v, is := c.look(first+float64(z)+c.Curvature*corner, r.Places[t][0]+float64(y), r.Places[t][1]+float64(x))
				if is {
					tissue++
				}
				v *= gain * c.columns[x] * (1 - c.Vignette*corner)
				if c.Speckle > 0 {
					v *= 1 + c.Speckle*(c.rng.ExpFloat64()-1)
				}
				row[x] = float32(max(v+c.Noise*c.contrast*c.rng.NormFloat64(), 0.001))
			}
		}
	}
	return tissue
}

// look returns how bright the specimen is at a point, and whether tissue is there.
func (c *camera) look(z, y, x float64) (v float64, tissue bool) {
	if math.Hypot(y-c.centre[0], x-c.centre[1]) < c.radius {
		if v, tissue = c.source.at(z, y, x); tissue {
			return floor + v, true
		}
	}
	return agarose * c.mean, false
}
