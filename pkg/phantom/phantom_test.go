package phantom

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"strata/pkg/dtype"
)

func small() Config {
	c := Default()
	c.Tile = [3]int{40, 30, 26}
	c.Tiles = [2]int{3, 2}
	c.Slices = 3
	c.Water = 35
	return c
}

func mustNew(t *testing.T, c Config) *Specimen {
	t.Helper()
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func tile(t *testing.T, s *Specimen, slice, i, j int) []float32 {
	t.Helper()
	n := s.TileExtent(i, j)
	b := make([]byte, s.cfg.Tile[0]*n[0]*n[1]*s.cfg.DType.Size())
	if err := s.RenderTile(b, slice, i, j); err != nil {
		t.Fatal(err)
	}
	return dtype.Slice[float32](b)
}

func TestSameSeedSameVoxels(t *testing.T) {
	a, b := mustNew(t, small()), mustNew(t, small())
	if !bytes.Equal(dtype.Bytes(tile(t, a, 1, 2, 1)), dtype.Bytes(tile(t, b, 1, 2, 1))) {
		t.Error("two specimens of one configuration differ")
	}
	c := small()
	c.Seed = 2
	if bytes.Equal(dtype.Bytes(tile(t, a, 1, 2, 1)), dtype.Bytes(tile(t, mustNew(t, c), 1, 2, 1))) {
		t.Error("another seed made the same tile")
	}
}

// Without imperfections, what two neighbouring tiles both see is the same, and
// it is what RenderTruth says.
func TestOverlapAgreesWithTruth(t *testing.T) {
	for _, contrast := range []float64{0, 1} {
		c := small().Ideal()
		c.Anatomy = contrast
		overlapAgrees(t, c)
	}
}

func overlapAgrees(t *testing.T, c Config) {
	c.Overlap = 0.2 // 24 px steps along y
	s := mustNew(t, c)
	a, b := tile(t, s, 0, 0, 0), tile(t, s, 0, 1, 0)
	nx := c.Tile[2]
	truth := make([]float32, c.Tile[0]*54*nx)
	if err := s.RenderTruth(dtype.Bytes(truth), 0, [2]float64{0, 0}, 54, nx); err != nil {
		t.Fatal(err)
	}
	for z := range c.Tile[0] {
		for y := range 54 {
			for x := range nx {
				want := truth[(z*54+y)*nx+x]
				if y < 30 {
					if got := a[(z*30+y)*nx+x]; got != want {
						t.Fatalf("tile 0, voxel (%d, %d, %d): %v, truth %v", z, y, x, got, want)
					}
				}
				if y >= 24 {
					if got := b[(z*30+y-24)*nx+x]; math.Abs(float64(got-want)) > 1e-3*float64(want) {
						t.Fatalf("tile 1, voxel (%d, %d, %d): %v, truth %v", z, y-24, x, got, want)
					}
				}
			}
		}
	}
}

// The next slice begins where the interval says, in the same tissue.
func TestSlicesShareTheBlock(t *testing.T) {
	for _, contrast := range []float64{0, 1} {
		c := small().Ideal()
		c.Anatomy = contrast
		slicesShare(t, c)
	}
}

func slicesShare(t *testing.T, c Config) {
	c.Slices, c.Shift, c.Relief, c.Attenuation, c.FillTissue = 2, 0, 0, 0, true
	c.Cut, c.Water = 10*c.Voxel[0], 5*c.Voxel[0]
	s := mustNew(t, c)
	a, b := tile(t, s, 0, 1, 1), tile(t, s, 1, 1, 1)
	plane := c.Tile[1] * c.Tile[2]
	for z := 5; z+10 < c.Tile[0]; z++ {
		for i := range plane {
			got, want := b[z*plane+i], a[(z+10)*plane+i]
			if math.Abs(float64(got-want)) > 2e-3*float64(want) {
				t.Fatalf("plane %d of slice 1: %v, plane %d of slice 0: %v", z, got, z+10, want)
			}
		}
	}
	for i := range plane {
		if a[3*plane+i] != 0 || a[6*plane+i] == 0 {
			t.Fatalf("water %v, tissue %v", a[3*plane+i], a[6*plane+i])
		}
	}
}

// Each imperfection does what its field says, relative to the ideal tile.
func TestEffects(t *testing.T) {
	base := small().Ideal()
	base.Relief, base.Texture, base.FillTissue, base.Attenuation = 0, 0, true, 0
	plane := base.Tile[1] * base.Tile[2]
	deep := 30 * plane // below the surface everywhere
	t.Run("vignette", func(t *testing.T) {
		c := base
		c.Vignette = 0.4
		s := mustNew(t, c)
		v := tile(t, s, 0, 0, 0)
		if corner := v[deep] / 1000; math.Abs(float64(corner)-0.6) > 1e-3 {
			t.Errorf("corner %v, want 0.6", corner)
		}
		for i, f := range s.FlatField() {
			if got := v[deep+i] / 1000; math.Abs(float64(got-f)) > 1e-4 {
				t.Fatalf("pixel %d: %v, flat-field %v", i, got, f)
			}
		}
	})
	t.Run("curvature", func(t *testing.T) {
		c := base
		c.Bowl = 6 * c.Voxel[0]
		s := mustNew(t, c)
		v := tile(t, s, 0, 0, 0)
		for i, d := range s.Curvature() {
			surface := c.Water/c.Voxel[0] + float64(d)
			first := 0
			for v[first*plane+i] == 0 {
				first++
			}
			if float64(first) < surface-1 || float64(first) > surface+1 {
				t.Fatalf("A-line %d: tissue begins at %d, surface at %v", i, first, surface)
			}
		}
	})
	t.Run("attenuation", func(t *testing.T) {
		c := base
		c.Attenuation = 2
		v := tile(t, mustNew(t, c), 0, 0, 0)
		got := float64(v[30*plane] / v[20*plane])
		want := math.Exp(-2 * 2 * 10 * c.Voxel[0] / 1000)
		if math.Abs(got-want) > 1e-3 {
			t.Errorf("ten voxels attenuate by %v, want %v", got, want)
		}
	})
	t.Run("speckle", func(t *testing.T) {
		c := base
		c.Speckle = 0.5
		v := tile(t, mustNew(t, c), 0, 0, 0)[deep:]
		var sum, sq float64
		for _, f := range v {
			sum += float64(f)
			sq += float64(f) * float64(f)
		}
		mean := sum / float64(len(v))
		contrast := math.Sqrt(sq/float64(len(v))-mean*mean) / mean
		if math.Abs(mean-1000) > 25 || math.Abs(contrast-0.5) > 0.03 {
			t.Errorf("mean %v, contrast %v; want 1000 and 0.5", mean, contrast)
		}
	})
	t.Run("agarose", func(t *testing.T) {
		c := base
		c.FillTissue, c.Agarose = false, 0.25
		if corner := tile(t, mustNew(t, c), 0, 0, 0)[deep]; math.Abs(float64(corner)-250) > 5 {
			t.Errorf("corner of the mosaic %v, want 250", corner)
		}
	})
	t.Run("floor", func(t *testing.T) {
		c := base
		c.Floor = 0.1
		if water := tile(t, mustNew(t, c), 0, 0, 0)[0]; water != 100 {
			t.Errorf("water %v, want 100", water)
		}
	})
}

func TestTilePositions(t *testing.T) {
	c := small()
	c.Jitter, c.Shift = 0, 0
	angle, scale := 0.02, 1.01
	c.Matrix = [2][2]float64{{scale * math.Cos(angle), -scale * math.Sin(angle)}, {scale * math.Sin(angle), scale * math.Cos(angle)}}
	s := mustNew(t, c)
	p := s.TilePosition(0, 2, 1)
	a, b := 2*30*0.8, 1*26*0.8
	want := [2]float64{scale * (math.Cos(angle)*a - math.Sin(angle)*b), scale * (math.Sin(angle)*a + math.Cos(angle)*b)}
	for d := range 2 {
		if math.Abs(p[d]-want[d]) > 1e-9 {
			t.Errorf("position %v, want %v", p, want)
		}
	}
	origin, size := s.Canvas(0)
	for i := range 3 {
		for j := range 2 {
			p := s.TilePosition(0, i, j)
			if p[0] < float64(origin[0]) || p[1] < float64(origin[1]) ||
				p[0]+30 > float64(origin[0]+size[0]) || p[1]+26 > float64(origin[1]+size[1]) {
				t.Errorf("tile (%d, %d) at %v lies outside the canvas %v + %v", i, j, p, origin, size)
			}
		}
	}
}

func TestShiftsAndGlitches(t *testing.T) {
	c := small()
	c.Slices, c.Glitch = 200, 0.2
	s := mustNew(t, c)
	glitches := 0
	for i, p := range s.csv {
		for d := range 2 {
			if got := s.shifts[i+1][d] - s.shifts[i][d]; math.Abs(got-p.True[d]) > 1e-9 {
				t.Fatalf("pair %d: positions differ by %v, true shift %v", i, got, p.True)
			}
		}
		if p.Glitch {
			glitches++
		} else if p.Recorded != p.True {
			t.Fatalf("pair %d: recorded %v, true %v, no glitch", i, p.Recorded, p.True)
		}
	}
	if glitches < 20 || glitches > 60 {
		t.Errorf("%d glitches of 199 at probability 0.2", glitches)
	}
}

func TestIntegerTypesRoundAndClamp(t *testing.T) {
	for _, ty := range []dtype.Type{dtype.Uint8, dtype.Uint16, dtype.Int16, dtype.Float64} {
		c := small()
		c.DType = ty
		c.Gain = 1e7
		s := mustNew(t, c)
		b := make([]byte, 40*30*26*ty.Size())
		if err := s.RenderTile(b, 0, 1, 1); err != nil {
			t.Fatal(err)
		}
		last := b[len(b)-ty.Size():]
		switch ty {
		case dtype.Uint8:
			if last[0] != 255 {
				t.Errorf("uint8: %v", last)
			}
		case dtype.Uint16:
			if v := dtype.Slice[uint16](b)[len(b)/2-1]; v != 65535 {
				t.Errorf("uint16: %v", v)
			}
		case dtype.Int16:
			if v := dtype.Slice[int16](b)[len(b)/2-1]; v != 32767 {
				t.Errorf("int16: %v", v)
			}
		case dtype.Float64:
			if v := dtype.Slice[float64](b)[len(b)/8-1]; v < 1e5 {
				t.Errorf("float64: %v", v)
			}
		}
	}
}

func TestCroppedTiles(t *testing.T) {
	c := small()
	c.Crop = [2]int{7, 11}
	s := mustNew(t, c)
	if n := s.TileExtent(2, 1); n != [2]int{23, 15} {
		t.Errorf("last tile %v", n)
	}
	if sh := c.Shape(); sh != [3]int{40, 83, 41} {
		t.Errorf("mosaic %v", sh)
	}
	if err := s.RenderTile(make([]byte, 40*30*26*4), 0, 2, 1); err == nil {
		t.Error("a buffer for a whole tile was accepted for a cropped one")
	}
	tile(t, s, 0, 2, 1)
}

func TestWhiteNoiseIsTwelveBit(t *testing.T) {
	c := small()
	c.Noise = true
	seen := map[float32]bool{}
	for _, f := range tile(t, mustNew(t, c), 0, 0, 0) {
		if f < 0 || f > 4095 || f != float32(int(f)) {
			t.Fatalf("value %v", f)
		}
		seen[f] = true
	}
	if len(seen) < 4000 {
		t.Errorf("%d different values", len(seen))
	}
}

func TestValidateNamesTheField(t *testing.T) {
	for field, change := range map[string]func(*Config){
		"dtype": func(c *Config) { c.DType = dtype.Bool }, "slices": func(c *Config) { c.Slices = 0 },
		"tiles": func(c *Config) { c.Tiles[1] = 0 }, "tile": func(c *Config) { c.Tile[2] = -1 },
		"voxel size": func(c *Config) { c.Voxel[0] = 0 }, "crop": func(c *Config) { c.Crop[0] = 30 },
		"overlap": func(c *Config) { c.Overlap = 1 }, "matrix": func(c *Config) { c.Matrix = [2][2]float64{{1, 1}, {1, 1}} },
		"jitter": func(c *Config) { c.Jitter = math.NaN() }, "speckle": func(c *Config) { c.Speckle = 2 },
		"relief and curvature": func(c *Config) { c.Relief, c.Bowl = 1e5, 1e5 }, "voxel size along z": func(c *Config) { c.Voxel[0] = 1e-9 },
		"gain": func(c *Config) { c.Gain = 1e40 },
	} {
		c := small()
		change(&c)
		if _, err := New(c); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: error %v", field, err)
		}
	}
}

// A surface above plane 0 must not read past the decay table.
func TestSurfaceAboveTheVolume(t *testing.T) {
	c := small()
	c.Water, c.Bowl, c.Relief = 0, 300, 100
	s := mustNew(t, c)
	for i := range 3 {
		tile(t, s, 0, i, 0)
	}
}

// Under deep water a tile holds the detector's floor and nothing else, and no
// length that is allowed makes numbers that a tile cannot hold.
func TestExtremeLengths(t *testing.T) {
	c := small()
	c.Water, c.Speckle, c.Vignette = 1e9, 0, 0
	s := mustNew(t, c)
	for i, v := range tile(t, s, 0, 0, 0) {
		if want := float32(float32(c.Floor) * float32(s.Config().Gain)); v != want {
			t.Fatalf("voxel %d under deep water is %v, want %v", i, v, want)
		}
	}
	for name, change := range map[string]func(*Config){
		"relief":      func(c *Config) { c.Relief, c.Bowl = maxHeight*c.Voxel[0]/2, maxHeight*c.Voxel[0]/2 },
		"small voxel": func(c *Config) { c.Voxel, c.Relief, c.Bowl = [3]float64{1e-6, 1e-6, 1e-6}, 1e-4, 1e-4 },
		"large voxel": func(c *Config) { c.Voxel = [3]float64{1e6, 1e6, 1e6} },
		"shift":       func(c *Config) { c.Shift, c.Slices = 1e9, 2 },
		"interval":    func(c *Config) { c.Cut, c.Slices = 1e9, 2 },
		"jitter":      func(c *Config) { c.Jitter = 1e6 },
		"attenuation": func(c *Config) { c.Attenuation = 1e6 },
		"gain":        func(c *Config) { c.Gain = 1e30 },
	} {
		t.Run(name, func(t *testing.T) {
			c := small()
			change(&c)
			s := mustNew(t, c)
			for i, v := range tile(t, s, c.Slices-1, 0, 0) {
				if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
					t.Fatalf("voxel %d is %v", i, v)
				}
			}
		})
	}
}
