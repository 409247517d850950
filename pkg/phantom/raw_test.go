package phantom

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"strata/pkg/dtype"
	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/oct/mosaic"
	"strata/pkg/rawtiles"
	"strata/pkg/zarr"
	"strata/pkg/zarr/store"
)

// voxels reads level 0 of an image.
func voxels(t *testing.T, st store.Store) ([]float32, *ngff.Image) {
	t.Helper()
	im, err := ngff.Open(t.Context(), st, "")
	if err != nil {
		t.Fatal(err)
	}
	a := im.Levels[0].Array
	v := make([]float32, a.Shape()[0]*a.Shape()[1]*a.Shape()[2])
	if err := zarr.ReadSlice(t.Context(), a, a.Bounds(), v); err != nil {
		t.Fatal(err)
	}
	return v, im
}

// raw writes the slices of a specimen as raw tiles, and reads the folder.
func raw(t *testing.T, s *Specimen, workers int) []rawtiles.Slice {
	t.Helper()
	dir := t.TempDir()
	for i := range s.cfg.Slices {
		if !s.Present(i) {
			continue
		}
		if err := s.WriteRaw(t.Context(), filepath.Join(dir, RawName(i)), i, Files{Workers: workers, Mem: 64 << 20}); err != nil {
			t.Fatal(err)
		}
	}
	found, err := rawtiles.Find(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func rawConfig() Config {
	c := Default()
	c.Raw, c.Slices, c.Tiles, c.Tile, c.Extra, c.Return = true, 3, [2]int{3, 2}, [3]int{24, 70, 50}, 12, 0.15
	return c
}

// The mosaic grid made of raw tiles is the phantom's own, to the last bit, with the mirror's shift undone.
func TestRawBecomesTheMosaic(t *testing.T) {
	for _, change := range []func(c *Config){
		func(c *Config) { *c = c.Ideal() },
		func(c *Config) { c.Extra = 0 },
		func(c *Config) { c.GalvoShift = 29 },
		func(c *Config) {
			c.GalvoShift, c.Turn, c.Range, c.Focus, c.Anatomy, c.Rehome, c.RehomeBy = 5, 3, 60, 30, 1, 0.5, 2000
		},
	} {
		c := rawConfig()
		change(&c)
		s, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		found := raw(t, s, 2)
		if len(found) != c.Slices {
			t.Fatalf("%d slices, want %d", len(found), c.Slices)
		}
		for i, slice := range found {
			own := store.Memory()
			if err := s.WriteMosaic(t.Context(), own, i, Storage{Format: 3, Unit: "millimeter", Workers: 1, Mem: 64 << 20}); err != nil {
				t.Fatal(err)
			}
			m, err := mosaic.Open(t.Context(), slice, mosaic.Options{Galvo: true, GalvoThreshold: 0.6})
			if err != nil || len(m.Warnings) > 0 {
				t.Fatal(err, m.Warnings)
			}
			made := store.Memory()
			result, err := m.Write(t.Context(), made, oct.Layout{}, oct.Resources{Workers: 2, Mem: 64 << 20})
			if err != nil {
				t.Fatal(err)
			}
			if result.Shift != c.GalvoShift {
				t.Errorf("slice %d: A-lines are rolled by %d (confidence %v), want %d", i, result.Shift, result.Galvo.Confidence, c.GalvoShift)
			}
			want, wantImage := voxels(t, own)
			got, image := voxels(t, made)
			if !slices.Equal(got, want) {
				t.Errorf("slice %d of %+v differs from the phantom's mosaic grid", i, c)
			}
			for d, v := range wantImage.VoxelSize {
				if math.Abs(image.VoxelSize[d]-v) > 1e-9 {
					t.Errorf("voxels of %v µm, want %v", image.VoxelSize, wantImage.VoxelSize)
				}
			}
		}
	}
}

// The stage's positions of the raw tiles say what the truth and the CSV say: their differences between slices are the
// recorded shifts, of those that exist, and within a slice they are the steps of the stage.
func TestRawPositions(t *testing.T) {
	c := rawConfig()
	c.Slices, c.Missing, c.Rehome, c.RehomeBy, c.Glitch, c.Tiles = 9, []int{0, 4, 5}, 0.4, 2000, 0.3, [2]int{2, 2}
	c.Tile = [3]int{4, 20, 30}
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	found := raw(t, s, 1)
	var text bytes.Buffer
	if err := s.WriteShifts(&text); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(&text).ReadAll()
	if err != nil || len(rows) != 1+len(found)-1 || len(found) != 6 {
		t.Fatalf("%d rows for %d slices: %v", len(rows), len(found), err)
	}
	var stage [][3]float64
	for _, slice := range found {
		var first [3]float64
		for k, tile := range slice.Tiles {
			info, err := tile.Info(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if k == 0 {
				first = info.Stage
			}
			for d, index := range [2]int{tile.X, tile.Y} {
				step := float64(index) * s.step()[d] * c.Voxel[1+d] / 1000
				if math.Abs(first[d]-info.Stage[d]-step) > 1e-9 {
					t.Errorf("%s at %v mm, the first tile at %v", tile.Name(), info.Stage, first)
				}
			}
			if want := float64(slice.ID) * c.Cut / 1000; info.Stage[2] != want || info.Axial != c.Voxel[0] {
				t.Errorf("%s at z %v, want %v; %v µm deep", tile.Name(), info.Stage[2], want, info.Axial)
			}
		}
		stage = append(stage, first)
	}
	far := 0
	for i, row := range rows[1:] {
		if row[0] != strconv.Itoa(found[i].ID) || row[1] != strconv.Itoa(found[i+1].ID) {
			t.Errorf("row %v of slices %d and %d", row, found[i].ID, found[i+1].ID)
		}
		for d, column := range []int{5, 4} { // the stage's x is the image's y
			want, err := strconv.ParseFloat(row[column], 64)
			if err != nil {
				t.Fatal(err)
			}
			if got := stage[i][d] - stage[i+1][d]; math.Abs(got-want) > 1e-9 {
				t.Errorf("slice %s to %s: the stage moved by %v mm, the CSV says %v", row[0], row[1], got, want)
			}
			if math.Abs(want) > 0.5 {
				far++
			}
		}
	}
	if far == 0 {
		t.Error("the stage never lost its home")
	}
	var truth Truth
	text.Reset()
	if err := errors.Join(s.WriteJSON(&text), json.Unmarshal(text.Bytes(), &truth)); err != nil {
		t.Fatal(err)
	}
	for i, slice := range found {
		if d := truth.Stage[slice.ID]; math.Abs(d[0]-stage[i][0])+math.Abs(d[1]-stage[i][1]) > 1e-9 {
			t.Errorf("slice %d begins at %v mm, the truth says %v", slice.ID, stage[i], d)
		}
	}
	if len(truth.Rehomed) != c.Slices || len(truth.Config.Missing) != 3 || len(truth.Turns) > 0 || truth.Beam != nil {
		t.Errorf("truth %+v", truth)
	}
}

// A rotated slice is the one that is not, seen at the points that the truth names.
func TestSliceRotation(t *testing.T) {
	c := rawConfig().Ideal()
	c.Slices, c.Turn, c.Texture, c.Anatomy = 2, 20, 0.6, 1
	c.Relief = 0
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	var truth Truth
	if err := errors.Join(s.WriteJSON(&text), json.Unmarshal(text.Bytes(), &truth)); err != nil {
		t.Fatal(err)
	}
	if len(truth.Turns) != 2 || truth.Turns[1].Slice != 1 || truth.Turns[1].Degrees == 0 {
		t.Fatalf("rotations %+v", truth.Turns)
	}
	turn := truth.Turns[1]
	straight := *s
	straight.turns = make([]float64, 2)
	line := func(s *Specimen, pos [2]float64) []float32 {
		v := make([]float32, c.Tile[0])
		if err := s.RenderTruth(dtype.Bytes(v), 1, pos, 1, 1); err != nil {
			t.Fatal(err)
		}
		return v
	}
	// a box of several rows and columns, so that rows are slanted
	from := [2]float64{turn.Middle[0] - 35, turn.Middle[1] - 48}
	const ny, nx = 40, 60
	box := make([]float32, c.Tile[0]*ny*nx)
	if err := s.RenderTruth(dtype.Bytes(box), 1, from, ny, nx); err != nil {
		t.Fatal(err)
	}
	sin, cos := math.Sincos(turn.Degrees * math.Pi / 180)
	moved := 0.0
	for _, at := range [][2]int{{0, 0}, {17, 3}, {39, 59}, {35, 48}, {8, 31}} {
		y, x := from[0]+float64(at[0])-turn.Middle[0], from[1]+float64(at[1])-turn.Middle[1]
		p := [2]float64{turn.Middle[0] + cos*y + sin*x, turn.Middle[1] + cos*x - sin*y}
		want, unmoved := line(&straight, p), line(&straight, [2]float64{from[0] + float64(at[0]), from[1] + float64(at[1])})
		for z, w := range want {
			if g := box[(z*ny+at[0])*nx+at[1]]; math.Abs(float64(g-w)) > 0.2 { // of 1000
				t.Errorf("A-line %v: plane %d is %v, want %v", at, z, g, w)
			}
			moved = max(moved, math.Abs(float64(w-unmoved[z])))
		}
	}
	if moved < 20 {
		t.Errorf("the rotation changes nothing: %v", moved)
	}
}

// The beam's profile multiplies each plane; it is half as bright at the given distance from its focus.
func TestBeam(t *testing.T) {
	c := rawConfig().Ideal()
	c.Slices = 1
	plain, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	c.Focus, c.Range = 35, 28 // 10 and 8 planes
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	if b := s.Beam(); b[10] != 1 || b[18] != 0.5 || b[2] != 0.5 || plain.Beam()[3] != 1 {
		t.Errorf("profile %v", b)
	}
	n := c.Tile[0] * c.Tile[1] * c.Tile[2]
	a, b := make([]float32, n), make([]float32, n)
	if err := errors.Join(plain.RenderTile(dtype.Bytes(a), 0, 1, 1), s.RenderTile(dtype.Bytes(b), 0, 1, 1)); err != nil {
		t.Fatal(err)
	}
	for i, v := range a {
		if want := v * s.Beam()[i/(c.Tile[1]*c.Tile[2])]; math.Abs(float64(b[i]-want)) > 1e-3 {
			t.Fatalf("voxel %d is %v, want %v", i, b[i], want)
		}
	}
}

func TestRawConfigErrors(t *testing.T) {
	for want, change := range map[string]func(c *Config){
		"uint16: raw tiles are of float32": func(c *Config) { c.DType = dtype.Uint16 },
		"crop [1 0]: raw tiles are whole":  func(c *Config) { c.Crop = [2]int{1, 0} },
		"missing slice 3 is none of the 3": func(c *Config) { c.Missing = []int{1, 3} },
		"galvo shift is 70":                func(c *Config) { c.GalvoShift = 70 },
		"0 without extra A-lines":          func(c *Config) { c.GalvoShift, c.Extra = 1, 0 },
		"number of extra A-lines is -1":    func(c *Config) { c.Extra = -1 },
		"focus range is -1":                func(c *Config) { c.Range = -1 },
	} {
		c := rawConfig()
		change(&c)
		if _, err := New(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	s, err := New(rawConfig())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.WriteRaw(context.Background(), t.TempDir(), 0, Files{Workers: 2, Mem: 1 << 10}); err == nil || !strings.Contains(err.Error(), "MiB of buffers") {
		t.Error(err)
	}
}
