package phantom

import "math"

// anatomy gives the tissue the look of a brain in OCT: a cortex of layers that follow the border of the tissue and
// whose thickness varies as in folds, white matter below it, bundles of fibres that cross the block obliquely,
// vessels that enter the cortex at right angles, and a network of finer ones. Like the texture it is a function of
// the place in the block, so that slices and tiles agree where they show the same tissue.
type anatomy struct {
	strength  float32
	centre    [2]float64 // of the tissue (y, x), px
	radius    [2]float64 // px
	voxel     [3]float64 // µm
	micro     float64    // smaller radius of the tissue, µm
	thickness float64    // of the cortex, as a part of the radius
	phase     [2]float64 // of the folds
	step      float64    // voxels between planes
	tracts    octave
	vessels   [2]octave
	seed      uint64 // of vessels that enter the cortex
	bins      int    // of these around the tissue
}

const (
	mostCortex   = 1000.0 // µm
	planeSpacing = 8.0    // µm between planes that are computed
	entrySpacing = 110.0  // µm between vessels that enter the cortex, along the surface and along z
)

// layers is the reflectivity at depths below the border of the tissue, in thicknesses of the cortex: layers I to VI,
// white matter, and the grey matter below.
var layers = [][2]float64{
	{0, 1}, {0.03, 0.68}, {0.11, 0.68}, {0.18, 0.9}, {0.36, 0.92}, {0.44, 1.12}, {0.5, 1.12}, {0.58, 0.84}, {0.72, 0.82},
	{0.82, 1}, {0.94, 1.06}, {1.04, 1.7}, {1.18, 1.7}, {1.34, 0.84}, {3, 0.9},
}

func (s *Specimen) makeAnatomy() {
	if s.cfg.Anatomy == 0 {
		s.anatomy = nil
		return
	}
	a := &anatomy{strength: float32(s.cfg.Anatomy), centre: s.centre, radius: s.radius, voxel: s.cfg.Voxel, seed: s.seed(seedEntries, 0)}
	a.micro = min(a.radius[0]*a.voxel[1], a.radius[1]*a.voxel[2])
	a.thickness = min(0.42, mostCortex/a.micro)
	a.step = max(1, planeSpacing/a.voxel[0])
	a.bins = int(min(1e6, max(5, math.Round(2*math.Pi*a.micro/entrySpacing))))
	for i := range a.phase {
		a.phase[i] = 2 * math.Pi * hash3(s.seed(seedFolds, i), 0, 0, 0)
	}
	noise := func(field, i int, size float64) octave {
		o := octave{seed: s.seed(field, i)}
		for d, v := range a.voxel {
			o.step[d] = max(2, size/v)
		}
		return o
	}
	a.tracts = noise(seedTracts, 0, 26)
	a.vessels = [2]octave{noise(seedVessels, 0, 130), noise(seedVessels, 1, 130)}
	s.anatomy = a
}

// anatomyRow computes the anatomy along a row of A-lines.
type anatomyRow struct {
	*anatomy
	lo      float64 // where the vessels' planes begin, in voxels of the block
	lines   []anatomyLine
	vessel  [2]*lattice
	bundles []float32
}

// anatomyLine is the position of an A-line in the tissue.
type anatomyLine struct {
	depth       float64 // below the border, as a part of the radius
	angle       float64 // around the centre, in turns from 0 to 1
	cos3, sin3  float64 // of three times the angle
	cos7, sin7  float64 // of seven times
	outerRadius float64 // distance from the centre, µm
}

// newAnatomyRow returns the planes of the anatomy along a row of nx A-lines, which a lattice interpolates between.
func newAnatomyRow(a *anatomy, nx int) (*anatomyRow, *lattice) {
	r := &anatomyRow{anatomy: a, lines: make([]anatomyLine, nx), bundles: make([]float32, nx)}
	for i := range r.vessel {
		r.vessel[i] = newLattice(a.vessels[i].step[0], nx, a.vessels[i].plane)
	}
	return r, newLattice(a.step, nx, r.plane)
}

// row prepares a row of A-lines for depths between lo and hi, in voxels of the block.
func (r *anatomyRow) row(row aline, lo, hi float64) {
	for i := range r.lines {
		y, x := row.at(i)
		v, u := (y-r.centre[0])/r.radius[0], (x-r.centre[1])/r.radius[1]
		radius := math.Sqrt(float64(v*v) + float64(u*u))
		c, s := 1.0, 0.0
		if radius > 0 {
			c, s = u/radius, v/radius
		}
		c2, s2 := float64(c*c)-float64(s*s), float64(2*s*c)
		c3, s3 := float64(c2*c)-float64(s2*s), float64(s2*c)+float64(c2*s)
		c6, s6 := float64(c3*c3)-float64(s3*s3), float64(2*s3*c3)
		r.lines[i] = anatomyLine{depth: 1 - radius, outerRadius: radius * r.micro, angle: math.Atan2(s, c)/(2*math.Pi) + 0.5,
			cos3: c3, sin3: s3, cos7: float64(c6*c) - float64(s6*s), sin7: float64(s6*c) + float64(c6*s)}
	}
	r.lo = lo - r.step
	for _, l := range r.vessel {
		l.row(row, r.lo, hi+2*r.step)
	}
}

// plane fills out with the reflectivity at plane k, relative to that of tissue without anatomy.
func (r *anatomyRow) plane(out []float32, k int, row aline) {
	z := float64(k) * r.step * r.voxel[0] // µm
	// Bundles cross the block at an angle, and meander.
	r.tracts.plane(r.bundles, 0, row.moved((0.35*z+22*math.Sin(z/170))/r.voxel[1], (22*math.Cos(z/210)-0.22*z)/r.voxel[2]))
	sin3, cos3 := math.Sincos(r.phase[0] + z/900)
	sin7, cos7 := math.Sincos(r.phase[1] - z/500)
	depth := float32(float64(k)*r.step - r.lo)
	for i := range out {
		l := &r.lines[i]
		folds := 1 + float64(0.16*(float64(l.cos3*cos3)-float64(l.sin3*sin3))) + float64(0.09*(float64(l.cos7*cos7)-float64(l.sin7*sin7)))
		d := l.depth / (r.thickness * folds)
		v := layer(d)
		if d > 1.2 { // through the grey matter below the white matter
			v += float32(float32(0.9*smooth((r.bundles[i]-0.64)/0.12)) * smooth(float32(d-1.2)*6))
		}
		if d > 0 && d < 1.2 {
			v *= 1 - float32(0.75*r.entry(l, d, z))
		}
		a, b := r.vessel[0].at(depth, i)-0.5, r.vessel[1].at(depth, i)-0.5
		const width = 0.045 // of the noise around its middle: some 15 µm
		if q := float32(a*a) + float32(b*b); q < width*width {
			v *= 1 - float32(0.7*smooth(2-float32(2/(width*width))*q))
		}
		out[i] = 1 + float32(r.strength*(v-1))
	}
}

// entry returns how much of a place lies in a vessel that enters the cortex at a right angle, from 0 to 1. The surface
// is divided into fields around the tissue and along z, with a vessel or none in each.
func (r *anatomyRow) entry(l *anatomyLine, d, z float64) float32 {
	around := l.angle * float64(r.bins)
	bin, level := math.Floor(around), math.Floor(z/entrySpacing)
	h := mix(mix(r.seed+golden*uint64(int64(bin))) + golden*uint64(int64(level)))
	part := func() float64 { // of the random bits, the next 12
		p := float64(h&0xfff) / 0x1000
		h >>= 12
		return p
	}
	if part() > 0.75 {
		return 0
	}
	at, height, reach, bend := 0.3+0.4*part(), 0.3+0.4*part(), 0.35+0.75*part(), 6*float64(h&0xf)/16
	if d >= reach {
		return 0
	}
	along := (around - bin - at) / float64(r.bins) * 2 * math.Pi * l.outerRadius
	along += 7 * math.Sin(5*d+bend)
	across := z - (level+height)*entrySpacing
	distance := math.Sqrt(float64(along*along) + float64(across*across))
	radius := 9 * (1 - 0.55*d/reach) // µm
	return smooth(float32((radius-distance)/6 + 0.5))
}

// layer looks a depth, in thicknesses of the cortex, up in layers.
func layer(d float64) float32 {
	for i := 1; i < len(layers); i++ {
		if a, b := layers[i-1], layers[i]; d < b[0] {
			return lerp(float32(a[1]), float32(b[1]), float32(max(0, (d-a[0])/(b[0]-a[0]))))
		}
	}
	return float32(layers[len(layers)-1][1])
}

// smooth is a smoothstep: it rises from 0 at t = 0 to 1 at t = 1, with slope 0 at both ends.
func smooth(t float32) float32 {
	t = min(max(t, 0), 1)
	return float32(t*t) * (3 - float32(2*t))
}
