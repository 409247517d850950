package survey

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"strata/pkg/dtype"
	"strata/pkg/filter"
	"strata/pkg/phantom"
	"strata/pkg/tiff"
	"strata/pkg/tilefiles"
)

// tiles are those of a phantom, row by row, of 1 × 160 × 160 voxels.
type tiles struct {
	grid    [2]int
	overlap float64
	data    [][]byte
}

const tileSide = 160

// render makes tiles of tissue with the faults of a microscope: jitter, speckle, vignetting.
func render(t testing.TB, grid [2]int, overlap float64) *tiles {
	t.Helper()
	c := phantom.Default().Ideal()
	c.Tiles, c.Tile, c.Overlap, c.FillTissue, c.DType, c.Gain = grid, [3]int{1, tileSide, tileSide}, overlap, true, dtype.Uint16, 20000
	c.Water, c.Jitter, c.Speckle, c.Vignette, c.Anatomy = 0, 1.5, 0.05, 0.15, 0.5
	s, err := phantom.New(c)
	if err != nil {
		t.Fatal(err)
	}
	out := &tiles{grid: grid, overlap: overlap}
	for k := range grid[0] * grid[1] {
		data := make([]byte, 2*tileSide*tileSide)
		if err := s.RenderTile(data, 0, k/grid[1], k%grid[1]); err != nil {
			t.Fatal(err)
		}
		out.data = append(out.data, data)
	}
	return out
}

// write writes a tile as a TIFF file of 2 µm pixels.
func (m *tiles) write(t testing.TB, path string, i, j int) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := tiff.NewWriter(f, false)
	spec := tiff.PageSpec{XUM: 2, YUM: 2, Layout: tiff.Layout{Width: tileSide, Height: tileSide, Depth: 1, Samples: 1, Bits: 16, Type: dtype.Uint16,
		TileWidth: tileSide, TileHeight: tileSide, TileDepth: 1, Compression: 1, Predictor: 1, Photometric: tiff.MinIsBlack, FillOrder: 1}}
	if err := w.Put(w.AddPage(spec, -1), 0, m.data[i*m.grid[1]+j]); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// index returns the index of a place, as a microscope counts that goes through the grid in a way.
func index(grid [2]int, i, j int, columns, snake bool, start tilefiles.Corner) int {
	if start == tilefiles.BottomLeft || start == tilefiles.BottomRight {
		i = grid[0] - 1 - i
	}
	if start == tilefiles.TopRight || start == tilefiles.BottomRight {
		j = grid[1] - 1 - j
	}
	line, at, n := i, j, grid[1]
	if columns {
		line, at, n = j, i, grid[0]
	}
	if snake && line%2 == 1 {
		at = n - 1 - at
	}
	return line*n + at
}

func look(t testing.TB, root string, opt Options) *Finding {
	t.Helper()
	l, err := List(context.Background(), root)
	if err != nil {
		t.Fatal(err)
	}
	found, err := Look(context.Background(), l, opt)
	if err != nil {
		t.Fatal(err)
	}
	return found[0]
}

// The grid of an index, its order, its turns and its first corner are those in which tiles were written, whichever
// these are; and so is the overlap.
func TestOrder(t *testing.T) {
	for _, grid := range [][2]int{{4, 5}, {3, 6}} {
		m := render(t, grid, 0.12)
		for _, columns := range []bool{false, true} {
			for _, snake := range []bool{false, true} {
				for start := range tilefiles.Corner(len(tilefiles.Corners)) {
					root := t.TempDir()
					for i := range grid[0] {
						for j := range grid[1] {
							m.write(t, filepath.Join(root, fmt.Sprintf("tile_%03d.tif", 1+index(grid, i, j, columns, snake, start))), i, j)
						}
					}
					f := look(t, root, Options{})
					want := Order{columns, snake, tilefiles.Corners[start], "pictures"}
					if f.Grid == nil || *f.Grid != grid || f.Order == nil || *f.Order != want {
						t.Errorf("%v %+v: grid %v, order %+v: %q %q", grid, want, f.Grid, f.Order, f.Evidence, f.Warnings)
						continue
					}
					checkOverlap(t, f, m.overlap)
				}
			}
		}
	}
}

func checkOverlap(t *testing.T, f *Finding, want float64) {
	t.Helper()
	if o := f.Overlap; o == nil || math.Abs(o.Median-want) > 0.015 || o.Low > o.Median || o.High < o.Median || o.Pairs < 4 {
		t.Errorf("overlap %+v: want %g", o, want)
	}
}

// One line of tiles, and a last line that is not complete.
func TestOddGrids(t *testing.T) {
	m := render(t, [2]int{1, 7}, 0.2)
	root := t.TempDir()
	for j := range 7 {
		m.write(t, filepath.Join(root, fmt.Sprintf("t%d.tif", j)), 0, j)
	}
	if f := look(t, root, Options{}); f.Grid == nil || *f.Grid != [2]int{1, 7} {
		t.Errorf("%v: %q", f.Grid, f.Evidence)
	}
	m = render(t, [2]int{4, 5}, 0.2)
	root = t.TempDir()
	for k := range 19 { // a prime
		m.write(t, filepath.Join(root, fmt.Sprintf("t%02d.tif", k)), k/5, k%5)
	}
	if f := look(t, root, Options{}); f.Grid == nil || *f.Grid != [2]int{4, 5} || f.MissingAll != 1 {
		t.Errorf("%v, %d missing: %q", f.Grid, f.MissingAll, f.Evidence)
	}
}

// Names that say nothing of which number is the row are told apart by pictures.
func TestTurn(t *testing.T) {
	m := render(t, [2]int{3, 4}, 0.15)
	for _, swap := range []bool{false, true} {
		root := t.TempDir()
		for i := range 3 {
			for j := range 4 {
				name, want := fmt.Sprintf("%02d_%02d.tif", i, j), "{row}_{col}.tif"
				if swap {
					name, want = fmt.Sprintf("%02d_%02d.tif", j, i), "{col}_{row}.tif"
				}
				m.write(t, filepath.Join(root, name), i, j)
				if i*j == 6 {
					f := look(t, root, Options{})
					if f.Pattern != want || f.Confidence != High || f.Grid == nil || *f.Grid != m.grid {
						t.Errorf("%q, %s, %v: want %q: %q", f.Pattern, f.Confidence, f.Grid, want, f.Evidence)
					}
					checkOverlap(t, f, m.overlap)
					im, n, err := f.Preview(context.Background())
					if err != nil || n != 12 {
						t.Fatal(n, err)
					}
					for d, tiles := range m.grid {
						side, want := im.Levels[0].Array.Shape()[d], (float64(tiles-1)*(1-m.overlap)+1)*tileSide
						if math.Abs(float64(side)-want) > 10 || im.VoxelSize[d] != 2 {
							t.Errorf("the preview has %d pixels of %g µm along axis %d: want %g of 2", side, im.VoxelSize[d], d, want)
						}
					}
				}
			}
		}
	}
}

// Rows and columns, or positions, that count from another corner are turned round, and the commands say from which.
func TestTurnRound(t *testing.T) {
	m := render(t, [2]int{3, 4}, 0.15)
	for _, names := range []string{"r%d_c%d.tif", "y%g_x%g.tif"} {
		for start := range tilefiles.Corner(len(tilefiles.Corners)) {
			root := t.TempDir()
			for i := range 3 {
				for j := range 4 {
					k := index(m.grid, i, j, false, false, start)
					name := fmt.Sprintf("r%d_c%d.tif", k/4, k%4)
					if names[0] == 'y' {
						step := 2 * tileSide * (1 - m.overlap)
						name = fmt.Sprintf("y%.1f_x%.1f.tif", step*float64(k/4), step*float64(k%4))
					}
					m.write(t, filepath.Join(root, name), i, j)
				}
			}
			f := look(t, root, Options{})
			flag := ""
			if start != tilefiles.TopLeft {
				flag = " --start " + tilefiles.Corners[start]
			}
			_, got, _ := strings.Cut(f.Commands[0], ".tif'")
			if i := strings.Index(got, " --start"); i >= 0 {
				got, _, _ = strings.Cut(got[i:], " --overlap")
			} else {
				got = ""
			}
			if got != flag || len(f.Warnings) > 0 || *f.Grid != m.grid {
				t.Errorf("%s from %s: %q, %q", names, tilefiles.Corners[start], f.Commands, f.Warnings)
			}
			checkOverlap(t, f, m.overlap)
			overlap := 0.15 // what a flag says of the overlap says nothing of the corner
			if c := look(t, root, Options{Overlap: &overlap}).Commands[0]; !strings.Contains(c, flag+" --overlap 0.15") {
				t.Errorf("%s from %s, with --overlap: %q", names, tilefiles.Corners[start], c)
			}
			p, err := f.mosaic.picture(t.Context(), f.mosaic.at[[2]int{0, 1}])
			if err != nil || !slices.Equal(p.pix, pixels(m.data[1])) {
				t.Errorf("%s from %s: the preview has another tile at row 0, column 1 (%v)", names, tilefiles.Corners[start], err)
			}
		}
	}
}

// pixels returns 16-bit pixels as numbers.
func pixels(data []byte) []float32 {
	v := make([]float32, len(data)/2)
	filter.FromStored(dtype.Uint16, v, data)
	return v
}

// Channels that names tell apart are channels of one mosaic.
func TestChannels(t *testing.T) {
	m := render(t, [2]int{2, 3}, 0.15)
	root := t.TempDir()
	for _, dye := range []string{"DAPI", "Cy5", "AF488"} {
		for k := range 6 {
			m.write(t, filepath.Join(root, fmt.Sprintf("t_r%d_c%d_%s.tif", k/3, k%3, dye)), k/3, k%3)
		}
	}
	f := look(t, root, Options{})
	if f.Pattern != "t_r{row}_c{col}_{channel}.tif" || f.Channels != 3 || f.Tiles != 6 || f.Confidence != High || len(f.Warnings) > 0 {
		t.Errorf("%+v", f)
	}
	checkOverlap(t, f, m.overlap)
}

// What flags say holds, and the rest is found.
func TestOverruled(t *testing.T) {
	m := render(t, [2]int{4, 5}, 0.12)
	root := t.TempDir()
	for k := range 20 {
		j := k % 5
		if k/5%2 == 1 {
			j = 4 - j
		}
		m.write(t, filepath.Join(root, fmt.Sprintf("t%02d.tif", k)), k/5, j)
	}
	overlap := 0.3
	f := look(t, root, Options{Tiles: tilefiles.Options{Grid: [2]int{4, 5}, Voxel: [3]float64{0, 3, 3}}, Overlap: &overlap})
	if *f.Order != (Order{false, true, "top-left", "pictures"}) || f.Overlap.Median != 0.3 || f.Overlap.From != "--overlap" || f.Voxel[1] != 3 || f.VoxelFrom != "--voxel_size" {
		t.Errorf("%+v, %+v, %v", f.Order, f.Overlap, f.Voxel)
	}
	all := Options{Pattern: "t{index}.tif", Ordered: true, Snaked: true, Started: true, Tiles: tilefiles.Options{Grid: [2]int{5, 4}, Columns: true, Start: tilefiles.BottomRight}}
	f = look(t, root, all)
	if *f.Order != (Order{true, false, "bottom-right", "options"}) || *f.Grid != [2]int{5, 4} || !strings.Contains(f.Commands[0], "--grid 5,4 --order columns --start bottom-right") {
		t.Errorf("%+v, %v, %q", f.Order, f.Grid, f.Commands)
	}
}

// Tiles that show nothing tell of no grid, and the commands have a blank for it.
func TestDark(t *testing.T) {
	m := &tiles{grid: [2]int{2, 3}}
	root := t.TempDir()
	for k := range 6 {
		m.data = append(m.data, make([]byte, 2*tileSide*tileSide))
		m.write(t, filepath.Join(root, fmt.Sprintf("t%d.tif", k)), k/3, k%3)
	}
	f := look(t, root, Options{})
	if f.Grid != nil || f.Confidence != Low || len(f.Needs) != 1 || f.Needs[0] != "grid" || !strings.Contains(f.Commands[0], "--grid ROWS,COLS") {
		t.Errorf("%+v", f)
	}
}

// Files of planes of one volume are no tiles.
func TestPlanes(t *testing.T) {
	m := render(t, [2]int{1, 1}, 0)
	root := t.TempDir()
	for k := range 6 {
		m.write(t, filepath.Join(root, fmt.Sprintf("s_%02d.tif", k)), 0, 0)
	}
	if f := look(t, root, Options{}); f.Kind != Stack {
		t.Errorf("%s: %s", f.Kind, f.What)
	}
}

// However many tiles there are, few are read.
func TestBounded(t *testing.T) {
	m := newPictures(func(_ context.Context, k int) (*picture, error) {
		return &picture{ny: 64, nx: 64, pix: make([]float32, 64*64)}, nil
	})
	if _, ok, err := m.order(context.Background(), 90_000, Options{}); ok || err != nil && err != errEnough {
		t.Error(ok, err)
	}
	m.grid, m.at = [2]int{300, 300}, map[[2]int]int{}
	for k := range 90_000 {
		m.at[[2]int{k / 300, k % 300}] = k
	}
	if _, _, compared, err := m.measure(context.Background()); err != nil || compared > 2*mostPairs {
		t.Error(compared, err)
	}
	if len(m.seen) > mostPictures {
		t.Errorf("%d tiles were read", len(m.seen))
	}
}

// A hundred thousand names cost one listing; no file but a few is opened.
func TestMany(t *testing.T) {
	root := t.TempDir()
	l := &Listing{Root: root}
	for k := range 100_000 {
		l.Files = append(l.Files, fmt.Sprintf("t_r%03d_c%03d.tif", k/400, k%400))
	}
	m := render(t, [2]int{1, 1}, 0)
	for k, name := range l.Files { // a file has so many links at most
		from := filepath.Join(root, l.Files[k/20_000*20_000])
		if k%20_000 == 0 {
			m.write(t, from, 0, 0)
		} else if err := os.Link(from, filepath.Join(root, name)); err != nil {
			t.Skip(err)
		}
	}
	f := look(t, root, Options{})
	if f.Kind != Tiles || f.Tiles != 100_000 || *f.Grid != [2]int{250, 400} {
		t.Errorf("%+v", f)
	}
	if n := len(f.mosaic.seen); n > 4*mostPairs {
		t.Errorf("%d files were read", n)
	}
}
