package phantom

import (
	"math"
	"slices"
)

// Specimen is a virtual block of tissue and the microscope that images it.
// It is immutable and safe for concurrent use.
type Specimen struct {
	cfg     Config
	channel int // seeds of what channels do not share are this much further
	octaves []octave
	anatomy *anatomy // nil: random texture alone
	speckle []float32
	flat    []float32    // flat-field of a tile, (y, x)
	bowl    []float32    // focal-plane curvature of a tile in voxels of depth, (y, x)
	beam    []float32    // brightness of each plane of a tile; nil: the same everywhere
	shifts  [][2]float64 // true position (y, x) of each slice's first tile, px
	turns   []float64    // angle of each slice, radians
	rehomed [][2]float64 // by how much the recorded positions (y, x) of each slice are off, px
	csv     []pair
	centre  [2]float64 // of the tissue, px
	radius  [2]float64
}

// pair is one line of the motor shifts CSV.
type pair struct {
	Fixed    int        `json:"fixed_id"`
	Moving   int        `json:"moving_id"`
	True     [2]float64 `json:"true_shift_px"` // (y, x)
	Recorded [2]float64 `json:"recorded_shift_px"`
	Glitch   bool       `json:"glitch"`
}

// New prepares a specimen. Its cost is that of one plane of a tile, whatever the size of the acquisition.
func New(cfg Config) (*Specimen, error) {
	cfg.setDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	s := &Specimen{cfg: cfg, speckle: speckleTable(cfg.Speckle)}
	s.makeTexture()
	s.makeTileFields()
	s.makeBeam()
	s.makeTurns()
	s.makeShifts()
	extent := s.extent()
	for d := range 2 {
		s.centre[d] = extent[d] / 2
		s.radius[d] = 0.44 * extent[d]
	}
	s.makeAnatomy()
	return s, nil
}

func (s *Specimen) makeTexture() {
	v := &s.cfg.Voxel
	s.octaves = nil
	for i, size := range []float64{90, 24} { // µm: fibre bundles, then cells
		s.octaves = append(s.octaves, octave{
			seed:   s.seed(seedTexture+s.channel, i),
			step:   [3]float64{max(2, size/v[0]), max(2, size/v[1]), max(2, size/v[2])},
			weight: []float32{0.6, 0.4}[i],
		})
	}
}

// Channel returns the specimen as seen in another channel: a different texture at the same positions. Channel
// 0 is s itself.
func (s *Specimen) Channel(c int) *Specimen {
	if c == 0 {
		return s
	}
	other := *s
	other.channel = c << 8
	other.makeTexture()
	return &other
}

// Config returns the specimen's configuration with its defaults filled in.
func (s *Specimen) Config() Config { return s.cfg }

// FlatField returns the multiplicative illumination field (y, x) of every tile.
func (s *Specimen) FlatField() []float32 { return s.flat }

// Curvature returns the depth (y, x) in voxels that every tile's focal plane adds to the position of the
// tissue surface.
func (s *Specimen) Curvature() []float32 { return s.bowl }

func (s *Specimen) makeTileFields() {
	ty, tx := s.cfg.Tile[1], s.cfg.Tile[2]
	s.flat = make([]float32, ty*tx)
	s.bowl = make([]float32, ty*tx)
	depth := s.cfg.Bowl / s.cfg.Voxel[0]
	for y := range ty {
		for x := range tx {
			v, u := symmetric(y, ty), symmetric(x, tx)
			s.flat[y*tx+x] = float32(1 - s.cfg.Vignette*(v*v+u*u)/2)
			// a tilted, slightly astigmatic bowl between −0.3 and 0.7 of its depth
			s.bowl[y*tx+x] = float32(depth * (0.55*v*v + 0.4*u*u + 0.05*u*v - 0.3))
		}
	}
}

// makeBeam makes the axial profile of a confocal beam: a Lorentzian around its focus.
func (s *Specimen) makeBeam() {
	if s.cfg.Range == 0 {
		return
	}
	s.beam = make([]float32, s.cfg.Tile[0])
	for z := range s.beam {
		d := (float64(float64(z)*s.cfg.Voxel[0]) - s.cfg.Focus) / s.cfg.Range
		s.beam[z] = float32(1 / (1 + float64(d*d)))
	}
}

// Beam returns the brightness of each plane of a tile, which the axial profile of the beam sets.
func (s *Specimen) Beam() []float32 {
	if s.beam != nil {
		return s.beam
	}
	flat := make([]float32, s.cfg.Tile[0])
	for z := range flat {
		flat[z] = 1
	}
	return flat
}

// makeTurns makes the angles of the slices, and where the stage lost its home.
func (s *Specimen) makeTurns() {
	c := &s.cfg
	s.turns, s.rehomed = make([]float64, c.Slices), make([][2]float64, c.Slices)
	for i := range c.Slices {
		if c.Turn > 0 {
			s.turns[i] = c.Turn * math.Pi / 180 * normal(s.seed(seedTurn, 0), i)
		}
		if hash3(s.seed(seedRehome, 0), 0, 0, i) < c.Rehome {
			for d := range 2 {
				s.rehomed[i][d] = math.Round(100*c.RehomeBy/c.Voxel[d+1]*normal(s.seed(seedRehomeSize, d), i)) / 100
			}
		}
	}
}

// row returns the row of A-lines in the block that begins at (y, x) of a slice, in px. A rotated slice is turned about
// the middle of its tiles.
func (s *Specimen) row(slice int, y, x float64) aline {
	turn := s.turns[slice]
	if turn == 0 {
		return aline{y, x, 0, 1}
	}
	sin, cos := math.Sincos(turn)
	c := s.middle(slice)
	y, x = y-c[0], x-c[1]
	return aline{c[0] + float64(cos*y) + float64(sin*x), c[1] + float64(cos*x) - float64(sin*y), sin, cos}
}

// middle returns the centre (y, x) in px about which a slice is rotated.
func (s *Specimen) middle(slice int) [2]float64 {
	e := s.extent()
	return [2]float64{s.shifts[slice][0] + e[0]/2, s.shifts[slice][1] + e[1]/2}
}

// symmetric maps 0…n−1 to −1…1.
func symmetric(i, n int) float64 {
	if n == 1 {
		return 0
	}
	return 2*float64(i)/float64(n-1) - 1
}

func (s *Specimen) makeShifts() {
	c := &s.cfg
	s.shifts = make([][2]float64, c.Slices)
	for i := 1; i < c.Slices; i++ {
		p := pair{Fixed: i - 1, Moving: i}
		for d := range 2 {
			// whole hundredths of a pixel, so that the CSV can say them exactly
			p.True[d] = math.Round(100*c.Shift/c.Voxel[d+1]*normal(s.seed(seedShift, d), i)) / 100
			s.shifts[i][d] = s.shifts[i-1][d] + p.True[d]
		}
		p.Recorded = p.True
		if hash3(s.seed(seedGlitch, 0), 0, 0, i) < c.Glitch {
			p.Glitch = true
			for d := range 2 {
				p.Recorded[d] = math.Round(100*(p.True[d]+20*c.Shift/c.Voxel[d+1]*normal(s.seed(seedGlitchSize, d), i))) / 100
			}
		}
		for d := range 2 {
			p.Recorded[d] += s.rehomed[i][d] - s.rehomed[i-1][d]
		}
		s.csv = append(s.csv, p)
	}
}

// step returns the nominal distance (y, x) between neighbouring tiles in px, before the stage matrix.
func (s *Specimen) step() [2]float64 {
	return [2]float64{float64(s.cfg.Tile[1]) * (1 - s.cfg.Overlap), float64(s.cfg.Tile[2]) * (1 - s.cfg.Overlap)}
}

// TilePosition returns the true position (y, x) of voxel (0, 0) of a tile in the specimen, in px: the slice's
// shift + Matrix·(i·step, j·step) + the tile's jitter.
func (s *Specimen) TilePosition(slice, i, j int) [2]float64 {
	st := s.step()
	a, b := float64(i)*st[0], float64(j)*st[1]
	m := &s.cfg.Matrix
	p := [2]float64{m[0][0]*a + m[0][1]*b, m[1][0]*a + m[1][1]*b}
	for d := range 2 {
		p[d] += s.shifts[slice][d]
		if s.cfg.Jitter > 0 {
			p[d] += s.cfg.Jitter * normal(s.seed(seedJitter, 2*slice+d), i*s.cfg.Tiles[1]+j)
		}
	}
	return p
}

// extent returns the size (y, x) in px that the first slice's tiles cover without rotation.
func (s *Specimen) extent() [2]float64 {
	st := s.step()
	return [2]float64{
		float64(s.cfg.Tiles[0]-1)*st[0] + float64(s.cfg.Tile[1]),
		float64(s.cfg.Tiles[1]-1)*st[1] + float64(s.cfg.Tile[2]),
	}
}

// Canvas returns the box (y, x) in px that all tiles of a slice cover: origin (rounded down) and size.
func (s *Specimen) Canvas(slice int) (origin, size [2]int) {
	lo := [2]float64{math.Inf(1), math.Inf(1)}
	hi := [2]float64{math.Inf(-1), math.Inf(-1)}
	for i := range s.cfg.Tiles[0] {
		for j := range s.cfg.Tiles[1] {
			p := s.TilePosition(slice, i, j)
			n := s.TileExtent(i, j)
			for d := range 2 {
				lo[d] = min(lo[d], p[d])
				hi[d] = max(hi[d], p[d]+float64(n[d]))
			}
		}
	}
	for d := range 2 {
		origin[d] = int(math.Floor(lo[d]))
		size[d] = int(math.Ceil(hi[d])) - origin[d]
	}
	return origin, size
}

// TileExtent returns the number of voxels (y, x) of a tile. In a cropped mosaic, tiles of the last row and
// column are smaller than others.
func (s *Specimen) TileExtent(i, j int) [2]int {
	n := [2]int{s.cfg.Tile[1], s.cfg.Tile[2]}
	if i == s.cfg.Tiles[0]-1 {
		n[0] -= s.cfg.Crop[0]
	}
	if j == s.cfg.Tiles[1]-1 {
		n[1] -= s.cfg.Crop[1]
	}
	return n
}

// Present reports whether the microscope recorded a slice.
func (s *Specimen) Present(slice int) bool { return !slices.Contains(s.cfg.Missing, slice) }

// relief returns the height in voxels by which the cut surface of a slice lies deeper than its mean at a
// point (y, x) in px.
func (s *Specimen) relief(slice int, y, x float64) float64 {
	if s.cfg.Relief == 0 {
		return 0
	}
	period := 1200.0 // µm
	a := hash3(s.seed(seedRelief, slice), 0, 0, 0) * 2 * math.Pi
	b := hash3(s.seed(seedRelief, slice), 0, 0, 1) * 2 * math.Pi
	v := 2*math.Pi*y*s.cfg.Voxel[1]/period + a
	u := 2*math.Pi*x*s.cfg.Voxel[2]/period + b
	return s.cfg.Relief / s.cfg.Voxel[0] * (0.6*math.Sin(v)*math.Cos(u) + 0.4*math.Sin(0.7*(u+v)))
}

// Surface returns the depth in voxels of the tissue surface of a slice at a point (y, x) in px, without the
// focal-plane curvature.
func (s *Specimen) Surface(slice int, y, x float64) float64 {
	return s.cfg.Water/s.cfg.Voxel[0] + s.relief(slice, y, x)
}

// tissue returns 1 inside the tissue and 0 in the agarose, with a smooth border.
func (s *Specimen) tissue(y, x float64) float64 {
	if s.cfg.FillTissue {
		return 1
	}
	v, u := (y-s.centre[0])/s.radius[0], (x-s.centre[1])/s.radius[1]
	return 1 / (1 + math.Exp(min(60, max(-60, ((v*v+u*u)-1)*30))))
}
