package phantom

import (
	"fmt"
	"math"

	"strata/pkg/dtype"
)

// RenderTile computes tile (i, j) of a slice as the microscope records it:
// shape (z, y, x) = (Tile[0], TileExtent(i, j)), C order, native bytes of the
// configured type. len(dst) must be exactly that.
func (s *Specimen) RenderTile(dst []byte, slice, i, j int) error {
	n := s.TileExtent(i, j)
	r := s.tile(slice, i, j, n)
	return r.to(dst)
}

// RenderPlane computes one plane of the result of RenderTile.
func (s *Specimen) RenderPlane(dst []byte, slice, i, j, z int) error {
	r := s.tile(slice, i, j, s.TileExtent(i, j))
	r.first, r.nz = z, 1
	return r.to(dst)
}

func (s *Specimen) tile(slice, i, j int, n [2]int) render {
	return render{s: s, slice: slice, nz: s.cfg.Tile[0], ny: n[0], nx: n[1], pos: s.TilePosition(slice, i, j), imperfect: true,
		seed: s.seed(seedSpeckle+s.channel, (slice*s.cfg.Tiles[0]+i)*s.cfg.Tiles[1]+j)}
}

// RenderTruth computes a slice as an ideal microscope would record it, in the box of ny × nx voxels at
// position (y, x) in px: no curvature, no flat-field, no speckle, no detector floor. Shape (z, y, x) =
// (Tile[0], ny, nx).
func (s *Specimen) RenderTruth(dst []byte, slice int, pos [2]float64, ny, nx int) error {
	r := render{s: s, slice: slice, nz: s.cfg.Tile[0], ny: ny, nx: nx, pos: pos}
	return r.to(dst)
}

// render is one box to compute.
type render struct {
	s         *Specimen
	slice     int
	first, nz int // planes of the tile's depth
	ny, nx    int
	pos       [2]float64
	seed      uint64
	imperfect bool
}

func (r *render) to(dst []byte) error {
	t := r.s.cfg.DType
	if want := r.nz * r.ny * r.nx * t.Size(); len(dst) != want {
		return fmt.Errorf("phantom: buffer of %d bytes for a tile of %d bytes", len(dst), want)
	}
	switch t {
	case dtype.Uint8:
		renderBox(r, dtype.Slice[uint8](dst), 0, math.MaxUint8)
	case dtype.Uint16:
		renderBox(r, dtype.Slice[uint16](dst), 0, math.MaxUint16)
	case dtype.Int16:
		renderBox(r, dtype.Slice[int16](dst), math.MinInt16, math.MaxInt16)
	case dtype.Float32:
		renderBox(r, dtype.Slice[float32](dst), 0, 0)
	case dtype.Float64:
		renderBox(r, dtype.Slice[float64](dst), 0, 0)
	}
	return nil
}

// renderBox walks rows of A-lines; for each row the texture's lattice planes
// are made once, and a voxel is two table look-ups between them.
func renderBox[T dtype.Element](r *render, out []T, lo, hi float32) {
	if r.s.cfg.Noise {
		whiteNoise(r, out)
		return
	}
	s, c := r.s, &r.s.cfg
	nz, nx := r.first+r.nz, r.nx
	integer := hi > lo
	offset := make([]float32, nx) // depth of the surface in voxels
	signal := make([]float32, nx) // reflectivity below the surface, before texture
	mixing := make([]float32, nx) // how much of the texture shows
	inside := make([]float32, nx) // how much of the A-line is tissue
	gain := make([]float32, nx)   // flat-field and units
	planes := make([]*lattice, len(s.octaves))
	for k := range s.octaves {
		planes[k] = newLattice(s.octaves[k].step[0], nx, s.octaves[k].plane)
	}
	var anatomy *anatomyRow
	var structure *lattice
	contrast := c.Texture
	if s.anatomy != nil {
		anatomy, structure = newAnatomyRow(s.anatomy, nx)
		contrast *= 1 - c.Anatomy/2
	}
	// exp(−2μd) in quarter voxels; where the surface lies above plane 0, d exceeds nz
	above := int((c.Relief + c.Bowl) / c.Voxel[0])
	decay := make([]float32, 4*(nz+above+2))
	mu := c.Attenuation / 1000 * c.Voxel[0]
	for i := range decay {
		decay[i] = float32(math.Exp(-2 * mu * float64(i) / 4))
	}
	floor, speckle := float32(c.Floor), s.speckle
	beam := s.beam
	if !r.imperfect {
		floor, speckle, beam = 0, nil, nil
	}
	base := float64(r.slice) * c.Cut / c.Voxel[0]
	plane := r.ny * nx
	for y := range r.ny {
		row := s.row(r.slice, r.pos[0]+float64(y), r.pos[1])
		top := math.Inf(1) // of the surface in this row
		for x := range nx {
			py, px := row.at(x)
			d := s.Surface(r.slice, py, px)
			g := c.Gain
			if r.imperfect {
				d += float64(s.bowl[y*c.Tile[2]+x])
				g *= float64(s.flat[y*c.Tile[2]+x])
			}
			top = min(top, d)
			m := s.tissue(py, px)
			offset[x] = float32(d)
			signal[x] = float32(c.Agarose + (1-c.Agarose)*m)
			mixing[x] = float32(contrast * m)
			inside[x] = float32(m)
			gain[x] = float32(g)
		}
		bottom := base + max(0, float64(nz)-top) // base: water only
		for _, l := range planes {
			l.row(row, base, bottom)
		}
		if anatomy != nil {
			anatomy.row(row, base, bottom)
			structure.row(row, base, bottom)
		}
		for z := r.first; z < nz; z++ {
			voxels := out[(z-r.first)*plane+y*nx:][:nx]
			h := mix(r.seed + golden*uint64(z*r.ny+y))
			for x := range voxels {
				d := float32(z) - offset[x]
				v := floor
				if d > -1 {
					depth := max(d, 0)
					var t float32
					for i, l := range planes {
						t += float32(s.octaves[i].weight * l.at(depth, x))
					}
					q := float32(4 * depth)
					k := int(q)
					e := lerp(decay[k], decay[k+1], q-float32(k))
					sig := float32(float32(signal[x]*e) * (1 + float32(mixing[x]*float32(2*t-1))))
					if structure != nil {
						sig = float32(sig * lerp(1, structure.at(depth, x), inside[x]))
					}
					if d < 0 { // the surface lies between two voxels
						sig = float32(sig * (1 + d))
					}
					if beam != nil {
						sig = float32(sig * beam[z])
					}
					v += sig
				}
				v = float32(v * gain[x])
				if speckle != nil {
					if x&3 == 0 {
						h = mix(h + golden)
					}
					v = float32(v * speckle[h>>(16*uint(x&3))&(1<<speckleBits-1)])
				}
				if integer {
					v = min(max(float32(math.RoundToEven(float64(v))), lo), hi)
				}
				voxels[x] = T(v)
			}
		}
	}
}

// lattice holds planes of a function of space along a row of A-lines, and interpolates between them.
type lattice struct {
	fill  func(out []float32, k int, row aline) // computes plane k for a row of A-lines
	step  float64                               // voxels between planes
	nx    int
	first int
	inv   float32
	start float32 // of the surface, in planes after first
	v     []float32
}

func newLattice(step float64, nx int, fill func([]float32, int, aline)) *lattice {
	return &lattice{fill: fill, step: step, nx: nx}
}

// row computes the planes for depths between lo and hi (voxels of the block) of
// a row of A-lines.
func (l *lattice) row(row aline, lo, hi float64) {
	l.first = int(math.Floor(lo / l.step))
	last := int(math.Floor(hi/l.step)) + 2
	n := last - l.first + 1
	if cap(l.v) < n*l.nx {
		l.v = make([]float32, n*l.nx)
	}
	l.v = l.v[:n*l.nx]
	for k := range n {
		l.fill(l.v[k*l.nx:][:l.nx], l.first+k, row)
	}
	l.inv = float32(1 / l.step)
	l.start = float32(lo/l.step - float64(l.first))
}

// at returns the value at a depth in voxels below lo of A-line x.
func (l *lattice) at(depth float32, x int) float32 {
	u := l.start + float32(depth*l.inv)
	k := int(u)
	a := l.v[k*l.nx+x]
	return lerp(a, l.v[(k+1)*l.nx+x], u-float32(k))
}

// whiteNoise fills out with integers 0…4095 (0…255 for bytes) that no codec
// can shorten below their 12 bits.
func whiteNoise[T dtype.Element](r *render, out []T) {
	mask := uint64(4095)
	if dtype.Of[T]().Size() == 1 {
		mask = 255
	}
	h := r.s.seed(seedWhite, r.first) ^ r.seed
	for i := 0; i < len(out); i += 5 {
		h += golden
		w := mix(h)
		for k := i; k < min(i+5, len(out)); k++ {
			out[k] = T(w & mask)
			w >>= 12
		}
	}
}
