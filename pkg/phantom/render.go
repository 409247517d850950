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

// shading holds the properties by which a row of A-lines is rendered: values per A-line, and tables that serve all
// rows.
type shading struct {
	*render
	offset []float32 // depth of the surface in voxels
	signal []float32 // reflectivity below the surface, before texture
	mixing []float32 // how much of the texture shows
	inside []float32 // how much of the A-line is tissue
	gain   []float32 // flat-field and units

	planes    []*lattice // of the texture, by octave
	weights   []float32  // of the octaves
	anatomy   *anatomyRow
	structure *lattice
	contrast  float64
	decay     []float32 // exp(−2μd) in quarter voxels
	base      float64

	floor         float32
	speckle, beam []float32 // nil: none
}

func (r *render) shading() *shading {
	s, c, nx := r.s, &r.s.cfg, r.nx
	h := &shading{render: r, offset: make([]float32, nx), signal: make([]float32, nx), mixing: make([]float32, nx), inside: make([]float32, nx), gain: make([]float32, nx),
		contrast: c.Texture, base: float64(r.slice) * c.Cut / c.Voxel[0]}
	for k := range s.octaves {
		h.planes = append(h.planes, newLattice(s.octaves[k].step[0], nx, s.octaves[k].plane))
		h.weights = append(h.weights, s.octaves[k].weight)
	}
	if s.anatomy != nil {
		h.anatomy, h.structure = newAnatomyRow(s.anatomy, nx)
		h.contrast *= 1 - c.Anatomy/2
	}
	// where the surface lies above plane 0, d exceeds the number of planes
	above := int((c.Relief + c.Bowl) / c.Voxel[0])
	h.decay = make([]float32, 4*(r.first+r.nz+above+2))
	mu := c.Attenuation / 1000 * c.Voxel[0]
	for i := range h.decay {
		h.decay[i] = float32(math.Exp(-2 * mu * float64(i) / 4))
	}
	if r.imperfect {
		h.floor, h.speckle, h.beam = float32(c.Floor), s.speckle, s.beam
	}
	return h
}

// row moves to a row of A-lines: the texture's lattice planes are made once for it.
func (h *shading) row(y int) {
	s, c := h.s, &h.s.cfg
	row := s.row(h.slice, h.pos[0]+float64(y), h.pos[1])
	top := math.Inf(1) // of the surface in this row
	for x := range h.nx {
		py, px := row.at(x)
		d := s.Surface(h.slice, py, px)
		g := c.Gain
		if h.imperfect {
			d += float64(s.bowl[y*c.Tile[2]+x])
			g *= float64(s.flat[y*c.Tile[2]+x])
		}
		top = min(top, d)
		m := s.tissue(py, px)
		h.offset[x] = float32(d)
		h.signal[x] = float32(c.Agarose + (1-c.Agarose)*m)
		h.mixing[x] = float32(h.contrast * m)
		h.inside[x] = float32(m)
		h.gain[x] = float32(g)
	}
	bottom := h.base + max(0, float64(h.first+h.nz)-top) // base: water only
	for _, l := range h.planes {
		l.row(row, h.base, bottom)
	}
	if h.anatomy != nil {
		h.anatomy.row(row, h.base, bottom)
		h.structure.row(row, h.base, bottom)
	}
}

// at returns the reflected light at plane z of A-line x, which is d voxels below the surface.
func (h *shading) at(z, x int, d float32) float32 {
	depth := max(d, 0)
	var t float32
	for i, l := range h.planes {
		t += float32(h.weights[i] * l.at(depth, x))
	}
	q := float32(4 * depth)
	k := int(q)
	e := lerp(h.decay[k], h.decay[k+1], q-float32(k))
	sig := float32(float32(h.signal[x]*e) * (1 + float32(h.mixing[x]*float32(2*t-1))))
	if h.structure != nil {
		sig = float32(sig * lerp(1, h.structure.at(depth, x), h.inside[x]))
	}
	if d < 0 { // the surface lies between two voxels
		sig = float32(sig * (1 + d))
	}
	if h.beam != nil {
		sig = float32(sig * h.beam[z])
	}
	return sig
}

// renderBox walks rows of A-lines; a voxel is two table look-ups between lattice planes.
func renderBox[T dtype.Element](r *render, out []T, lo, hi float32) {
	if r.s.cfg.Noise {
		whiteNoise(r, out)
		return
	}
	shade := r.shading()
	integer := hi > lo
	plane := r.ny * r.nx
	for y := range r.ny {
		shade.row(y)
		for z := r.first; z < r.first+r.nz; z++ {
			voxels := out[(z-r.first)*plane+y*r.nx:][:r.nx]
			h := mix(r.seed + golden*uint64(z*r.ny+y))
			for x := range voxels {
				v := shade.floor
				if d := float32(z) - shade.offset[x]; d > -1 {
					v += shade.at(z, x, d)
				}
				v = float32(v * shade.gain[x])
				if shade.speckle != nil {
					if x&3 == 0 {
						h = mix(h + golden)
					}
					v = float32(v * shade.speckle[h>>(16*uint(x&3))&(1<<speckleBits-1)])
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
