package mosaic

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"strata/pkg/dtype"
	"strata/pkg/meter"
	"strata/pkg/oct"
	"strata/pkg/rawtiles"
	"strata/pkg/zarr/store"
	"strata/tests/octtest"
	"strata/tests/race"
)

// raw describes tiles that are made up for a test.
type raw struct {
	nx, ny, extra, repeat, depth, surplus int
	places                                [][2]int
	voxels                                map[[2]int][]float32 // as on disk: (frame, A-line, z)
}

// make writes the tiles of slice 7, with random voxels.
func (r *raw) make(t *testing.T) rawtiles.Slice {
	t.Helper()
	root := t.TempDir()
	rnd := rand.New(rand.NewPCG(1, 2))
	r.voxels = map[[2]int][]float32{}
	for _, p := range r.places {
		v := make([]float32, (r.ny*r.repeat+r.surplus)*(r.nx+r.extra)*r.depth)
		for i := range v {
			v[i] = float32(100 + 50*rnd.Float64())
		}
		r.voxels[p] = v
		r.tile(t, filepath.Join(root, fmt.Sprintf("tile_x%02d_y%02d_z07", p[0], p[1])), v, "")
	}
	found, err := rawtiles.Find(octtest.Ctx, root)
	if err != nil {
		t.Fatal(err)
	}
	return found[0]
}

func (r *raw) tile(t *testing.T, path string, v []float32, more string) {
	t.Helper()
	info := fmt.Sprintf("nx: %d\nny: %d\nn_extra: %d\nn_repeat: %d\nwidth: %d\nheight: %d\ntop_z: 3\nbottom_z: %d\n%s", r.nx, r.ny, r.extra, r.repeat, 2*r.nx, 3*r.ny, r.depth+2, more)
	err := errors.Join(os.MkdirAll(path, 0o777), os.WriteFile(filepath.Join(path, "info.txt"), []byte(info), 0o666),
		os.WriteFile(filepath.Join(path, "image_000.bin"), dtype.Bytes(v), 0o666))
	if err != nil {
		t.Fatal(err)
	}
}

// at returns the mean voxel at A-line l of the frames that repeat place f.
func (r *raw) at(p [2]int, f, l, z int) float32 {
	var sum float32
	for k := range r.repeat {
		sum += r.voxels[p][((f*r.repeat+k)*(r.nx+r.extra)+l)*r.depth+z]
	}
	return sum / float32(r.repeat)
}

func written(t *testing.T, s rawtiles.Slice, how Options, layout oct.Layout, res oct.Resources) (*Mosaic, *Result, []float32) {
	t.Helper()
	m, err := Open(octtest.Ctx, s, how)
	if err != nil {
		t.Fatal(err)
	}
	out, err := m.Write(octtest.Ctx, store.Memory(), layout, res)
	if err != nil {
		t.Fatal(err)
	}
	return m, out, octtest.Read(t, out.Image.Levels[0].Array)
}

// Frames that repeat a place are averaged, surplus ones left out or kept, places without a tile are 0, and A-lines lie
// where the specification says, in legacy data too: compared with it voxel by voxel, for chunks of any kind and little
// memory.
func TestAgainstDefinition(t *testing.T) {
	r := &raw{nx: 21, ny: 19, extra: 5, repeat: 2, depth: 13, surplus: 2, places: [][2]int{{4, 2}, {4, 3}, {5, 3}, {6, 2}, {6, 3}}}
	s := r.make(t)
	for _, how := range []Options{{}, {Legacy: true}, {KeepReturn: true}, {KeepReturn: true, Legacy: true}} {
		var first []float32
		for _, c := range []struct {
			layout oct.Layout
			res    oct.Resources
		}{
			{oct.Layout{}, oct.Resources{Workers: 1, Mem: 64 << 20}},
			{oct.Layout{Format: 2, Levels: 1}, oct.Resources{Workers: 3, Mem: 8 << 20}},
			{oct.Layout{Chunks: []int{1, 1, 1}, Codec: "raw"}, oct.Resources{Workers: 4, Mem: 100 << 10}},
		} {
			m, out, got := written(t, s, how, c.layout, c.res)
			if first == nil {
				first = got
				r.compare(t, m, got)
				if want := []float64{0.0035, 0.002, 0.003}; !how.Legacy && !slices.Equal(out.Image.Levels[0].Scale, want) {
					t.Errorf("voxels of %v mm, want %v", out.Image.Levels[0].Scale, want)
				}
				if want := []float64{0.0035, 0.003, 0.002}; how.Legacy && !slices.Equal(out.Image.Levels[0].Scale, want) {
					t.Errorf("voxels of %v mm, want %v", out.Image.Levels[0].Scale, want)
				}
			}
			octtest.SameBits(t, got, first)
		}
	}
	m, err := Open(octtest.Ctx, s, Options{})
	want := []string{"slice 07: 5 of 5 tiles have more frames than their ny, which are left out (first tile_x04_y02_z07: 20, ny is 19)",
		"slice 07: 1 of 6 places have no tile and become 0: tile_x05_y02_z07"}
	if err != nil || !slices.Equal(m.Warnings, want) {
		t.Errorf("%v, warnings %q", err, m.Warnings)
	}
}

func (r *raw) compare(t *testing.T, m *Mosaic, got []float32) {
	t.Helper()
	if len(got) != m.Shape[0]*m.Shape[1]*m.Shape[2] {
		t.Fatalf("%d voxels of shape %v", len(got), m.Shape)
	}
	for i, g := range got {
		z, y, x := i/(m.Shape[1]*m.Shape[2]), i/m.Shape[2]%m.Shape[1], i%m.Shape[2]
		gx, gy, l, f := y/m.Tile[1], x/m.Tile[2], y%m.Tile[1], x%m.Tile[2]
		if m.how.Legacy {
			gx, gy, l, f = gy, gx, m.Tile[2]-1-f, m.Tile[1]-1-l
		}
		want := float32(0)
		if p := [2]int{4 + gx, 2 + gy}; r.voxels[p] != nil {
			want = r.at(p, f, l, z)
		}
		if g != want {
			t.Fatalf("%+v: voxel (%d, %d, %d) is %v, want %v", m.how, z, y, x, g, want)
		}
	}
}

// A-lines are rolled by what the camera and the mirror are behind.
func TestRolls(t *testing.T) {
	const nx, ny, extra, depth, camera, galvo = 60, 11, 12, 6, 9, 17
	r := &raw{nx: nx, ny: ny, extra: extra, repeat: 1, depth: depth, places: [][2]int{{0, 0}, {0, 1}}}
	s := r.make(t)
	lines := nx + extra
	want := map[[2]int][]float32{}
	for p, v := range r.voxels { // as it should be, (frame, A-line, z): dark A-lines at the end, then rolled
		want[p] = slices.Clone(v)
		for i := range v {
			if i/depth%lines >= nx {
				want[p][i] /= 9
			}
		}
		if p[1] == 1 {
			want[p][lines*depth*3] = float32(math.NaN())
		}
		for f := range ny {
			for l := range lines {
				copy(v[(f*lines+(l+lines-galvo)%lines)*depth:][:depth], want[p][(f*lines+l)*depth:][:depth])
			}
		}
		r.tile(t, s.Tiles[p[1]].Path, v, "")
	}
	m := &meter.Meter{}
	_, out, got := written(t, s, Options{Galvo: true, GalvoThreshold: 0.6}, oct.Layout{}, oct.Resources{Workers: 2, Mem: 4 << 20, Meter: m})
	if out.Shift != galvo || out.Galvo.Confidence < 0.99 || m.NonFinite() != 1 {
		t.Errorf("shift %d, confidence %v, %d voxels that are no number", out.Shift, out.Galvo.Confidence, m.NonFinite())
	}
	shape := out.Image.Levels[0].Array.Shape()
	value := func(got []float32, p [2]int, f, l, z int) float32 { return got[(z*shape[1]+l)*shape[2]+p[1]*ny+f] }
	for p := range want {
		for i, w := range want[p] {
			if f, l, z := i/depth/lines, i/depth%lines, i%depth; l < nx {
				if g := value(got, p, f, l, z); g != w && !(g != g && w != w) {
					t.Fatalf("tile %v: frame %d, A-line %d, sample %d is %v, want %v", p, f, l, z, g, w)
				}
			}
		}
	}
	// a threshold above its confidence: nothing is rolled
	if _, out, _ := written(t, s, Options{Galvo: true, GalvoThreshold: 1.1}, oct.Layout{}, octtest.Small()); out.Shift != 0 {
		t.Errorf("shift %d", out.Shift)
	}
	// the camera's brightest A-line comes first, in each tile for itself; its first sample of all is its neighbour's
	for p, v := range r.voxels {
		for z := range depth {
			v[(4*lines+camera+p[1])*depth+z] = 1000
		}
		r.tile(t, s.Tiles[p[1]].Path, v, "")
	}
	_, _, got = written(t, s, Options{Camera: true}, oct.Layout{}, octtest.Small())
	for p, v := range r.voxels {
		for f := range ny {
			for l := range nx {
				for z := range depth {
					from := l
					if f == 0 && l == 0 {
						from = 1
					}
					w := v[(f*lines+(from+camera+p[1])%lines)*depth+z]
					if g := value(got, p, f, l, z); g != w && !(g != g && w != w) {
						t.Fatalf("camera, tile %v: frame %d, A-line %d, sample %d is %v, want %v", p, f, l, z, g, w)
					}
				}
			}
		}
	}
}

// At the centres of equal parts distances are kept: the voxel size is exact. A constant stays constant.
func TestSampling(t *testing.T) {
	r := &raw{nx: 40, ny: 30, repeat: 1, depth: 20, places: [][2]int{{0, 0}}}
	s := r.make(t)
	for i := range r.voxels[[2]int{}] {
		r.voxels[[2]int{}][i] = 42
	}
	r.tile(t, s.Tiles[0].Path, r.voxels[[2]int{}], "dz: 4\n")
	for _, how := range []Options{{Resolution: 7}, {Resolution: 7, Corner: true}, {Resolution: 1.5, Legacy: true}, {Resolution: 500}, {Resolution: 7, Axial: 5}} {
		m, out, got := written(t, s, how, oct.Layout{}, octtest.Small())
		for i, g := range got {
			if math.Abs(float64(g)-42) > 1e-4 {
				t.Fatalf("%+v: voxel %d is %v", how, i, g)
			}
		}
		level := out.Image.Levels[0]
		voxel, n := [3]float64{4, 2, 3}, [3]float64{20, 40, 30}
		if how.Axial > 0 {
			voxel[0] = how.Axial
		}
		if how.Legacy {
			voxel[1], voxel[2], n[1], n[2] = voxel[2], voxel[1], n[2], n[1]
		}
		for d := range voxel {
			length := max(1, math.Floor(n[d]*voxel[d]/how.Resolution))
			if float64(m.Shape[d]) != length {
				t.Errorf("%+v: %d voxels along axis %d, want %v", how, m.Shape[d], d, length)
			}
			want, from := n[d]*voxel[d]/length/1000, 0.0
			if how.Corner {
				want = how.Resolution / 1000
			} else {
				from = (want - voxel[d]/1000) / 2
				if math.Abs(level.Translation[d]-from) > 1e-12 {
					t.Errorf("%+v: axis %d begins at %v mm, want %v", how, d, level.Translation[d], from)
				}
			}
			if math.Abs(level.Scale[d]-want) > 1e-12 {
				t.Errorf("%+v: voxel size %v mm along axis %d, want %v", how, level.Scale[d], d, want)
			}
		}
	}
}

func TestBadTiles(t *testing.T) {
	r := &raw{nx: 8, ny: 6, repeat: 1, depth: 4, places: [][2]int{{0, 0}, {0, 1}}}
	fails := func(s rawtiles.Slice, how Options, kind error, want string) {
		t.Helper()
		_, err := Open(octtest.Ctx, s, how)
		if err == nil || !errors.Is(err, kind) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v, want %s", err, want)
		}
	}
	s := r.make(t)
	r.tile(t, s.Tiles[1].Path, make([]float32, 8*6*4), "dz: 2\n")
	fails(s, Options{}, oct.ErrInput, "tile_x00_y01_z07: axial resolution is 2, but 0 in ")
	wide := *r
	wide.nx = 4
	wide.tile(t, s.Tiles[1].Path, make([]float32, 4*6*4), "")
	fails(s, Options{}, oct.ErrInput, "tile_x00_y01_z07: nx is 4, but 8 in ")
	r.tile(t, s.Tiles[1].Path, make([]float32, 8*7*4), "")
	fails(s, Options{KeepReturn: true}, oct.ErrInput, "number of frames is 7, but 6 in ")
	r.tile(t, s.Tiles[1].Path, make([]float32, 8*5*4), "")
	fails(s, Options{}, oct.ErrInput, "tile_x00_y01_z07: 5 frames in 1 files, fewer than the 6 that info.txt says")
	r.tile(t, s.Tiles[1].Path, make([]float32, 8*6*4-1), "")
	fails(s, Options{}, oct.ErrInput, "image_000.bin: 764 bytes are not whole frames of 128 bytes")
	r.tile(t, s.Tiles[1].Path, make([]float32, 8*6*4), "nx: 9\n")
	fails(s, Options{}, oct.ErrInput, "info.txt:9: nx is 9, but 8 on line 1")
	s.Tiles = append(s.Tiles, s.Tiles[0])
	fails(s, Options{}, oct.ErrInput, "are both the tile at x 0, y 0 of slice 07")
	s.Tiles = s.Tiles[:1]
	fails(s, Options{Resolution: 1e-6}, oct.ErrLayout, "meant to be in µm?")
	fails(s, Options{Resolution: 0.001}, oct.ErrLayout, "meant to be in µm?")
	if err := os.Remove(filepath.Join(s.Tiles[0].Path, "info.txt")); err != nil {
		t.Fatal(err)
	}
	fails(s, Options{}, oct.ErrInput, "info.txt: no such file")
}

// Large tiles are stored as chunks along z, all about as large, unless they are to stay whole.
func TestLargeTiles(t *testing.T) {
	race.Leave(t)
	r := &raw{nx: 600, ny: 500, repeat: 1, depth: 57, places: [][2]int{{0, 0}}} // 65.2 MiB
	s := r.make(t)
	var first []float32
	for _, c := range []struct {
		how    Options
		layout oct.Layout
		res    oct.Resources
		want   []int
	}{
		{Options{}, oct.Layout{Codec: "raw"}, oct.Resources{Workers: 2, Mem: 256 << 20}, []int{29, 600, 500}},
		{Options{}, oct.Layout{Codec: "raw"}, oct.Resources{Workers: 2, Mem: 80 << 20}, []int{29, 600, 500}},
		{Options{Whole: true}, oct.Layout{Codec: "raw"}, oct.Resources{Workers: 2, Mem: 256 << 20}, []int{57, 600, 500}},
		{Options{Sharding: 2}, oct.Layout{Codec: "raw", Chunks: []int{3, 300, 250}}, oct.Resources{Workers: 1, Mem: 64 << 20}, []int{3, 300, 250}},
	} {
		_, out, got := written(t, s, c.how, c.layout, c.res)
		if chunks := out.Image.Levels[0].Array.Chunks(); !slices.Equal(chunks, c.want) {
			t.Errorf("%+v: chunks %v, want %v", c.how, chunks, c.want)
		}
		if first == nil {
			first = got
		}
		octtest.SameBits(t, got, first)
	}
}

// A tile that is cut off while it is read is the input's fault; too little memory is not, and says how much is needed.
func TestWriteFails(t *testing.T) {
	r := &raw{nx: 64, ny: 64, repeat: 1, depth: 32, places: [][2]int{{0, 0}}}
	s := r.make(t)
	m, err := Open(octtest.Ctx, s, Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = m.Write(octtest.Ctx, store.Memory(), oct.Layout{}, oct.Resources{Workers: 2, Mem: 1 << 20})
	if err == nil || errors.Is(err, oct.ErrInput) || !strings.HasSuffix(err.Error(), "making tiles of [32 64 64] voxels, 32 planes at a time, needs 2 MiB of buffers, --mem grants 1 MiB") {
		t.Error(err)
	}
	if _, err = m.Write(octtest.Ctx, store.Memory(), oct.Layout{Chunks: []int{5, 64, 64}}, octtest.Small()); !errors.Is(err, oct.ErrLayout) {
		t.Error(err)
	}
	if err := os.Truncate(filepath.Join(s.Tiles[0].Path, "image_000.bin"), 1000); err != nil {
		t.Fatal(err)
	}
	_, err = m.Write(octtest.Ctx, store.Memory(), oct.Layout{}, octtest.Small())
	if err == nil || !errors.Is(err, oct.ErrInput) || !strings.Contains(err.Error(), "image_000.bin: 1000 bytes are not whole frames") {
		t.Error(err)
	}
}
