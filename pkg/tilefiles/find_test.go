package tilefiles

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"strata/pkg/dtype"
	"strata/pkg/npy"
)

// put writes .npy files of a shape.
func put(t testing.TB, root string, shape []int, names ...string) {
	t.Helper()
	h := npy.Header{Type: dtype.Uint8, Shape: shape}
	n, err := h.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := npy.WriteHeader(&b, h); err != nil {
		t.Fatal(err)
	}
	b.Write(make([]byte, n))
	for _, name := range names {
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(b.String()), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

func find(t testing.TB, root, pattern string, opt Options) (*Set, error) {
	t.Helper()
	p, err := ParsePattern(pattern)
	if err != nil {
		t.Fatal(err)
	}
	return Find(t.Context(), root, p, opt)
}

var voxel = [3]float64{2, 0.5, 0.5}

// describe returns the places of a slice as rows of a table: the first file's name at each.
func describe(s *Slice) string {
	rows := make([][]string, s.Grid[0])
	for i := range rows {
		rows[i] = slices.Repeat([]string{"."}, s.Grid[1])
	}
	for _, t := range s.Tiles {
		rows[t.Place[0]][t.Place[1]] = strings.TrimSuffix(t.first(), ".npy")
	}
	var lines []string
	for _, r := range rows {
		lines = append(lines, strings.Join(r, " "))
	}
	return strings.Join(lines, "|")
}

func numbered(format string, first, n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprintf(format, first+i))
	}
	return names
}

func TestGrids(t *testing.T) {
	for _, c := range []struct {
		name, pattern string
		files         []string
		opt           Options
		want, warning string
	}{
		{"rows and columns from 0", "{row}-{col}.npy", []string{"0-0.npy", "0-1.npy", "1-0.npy", "1-1.npy"}, Options{}, "0-0 0-1|1-0 1-1", ""},
		{"from 1", "{row}-{col}.npy", []string{"1-1.npy", "1-2.npy", "2-1.npy", "2-2.npy"}, Options{}, "1-1 1-2|2-1 2-2", ""},
		{"signs", "{row}_{col}.npy", []string{"-1_0.npy", "0_-1.npy"}, Options{}, ". -1_0|0_-1 .", "2 of 4 places have no tile and become 0 (counted from 0): row 0 column 0, row 1 column 1"},
		{"a grid that is given", "{row}_{col}.npy", []string{"2_2.npy", "3_1.npy"}, Options{Grid: [2]int{3, 2}}, ". .|. 2_2|3_1 .", "4 of 6 places"},
		{"from 0, the first missing", "{row}_{col}.npy", []string{"1_1.npy", "0_1.npy"}, Options{Grid: [2]int{2, 2}}, "0_1 .|1_1 .", "2 of 4 places"},
		{"an index", "{index}.npy", numbered("%d.npy", 0, 6), Options{Grid: [2]int{2, 3}}, "0 1 2|3 4 5", ""},
		{"from 1, by columns", "{index}.npy", numbered("%02d.npy", 1, 6), Options{Grid: [2]int{2, 3}, Columns: true}, "01 03 05|02 04 06", ""},
		{"a snake", "{index}.npy", numbered("%d.npy", 0, 6), Options{Grid: [2]int{3, 2}, Snake: true}, "0 1|3 2|4 5", ""},
		{"a snake by columns from below", "{index}.npy", numbered("%d.npy", 0, 6), Options{Grid: [2]int{3, 2}, Snake: true, Columns: true, Start: BottomLeft}, "2 3|1 4|0 5", ""},
		{"from the right", "{index}.npy", numbered("%d.npy", 0, 6), Options{Grid: [2]int{2, 3}, Start: TopRight}, "2 1 0|5 4 3", ""},
		{"from the last corner", "{index}.npy", numbered("%d.npy", 0, 6), Options{Grid: [2]int{2, 3}, Start: BottomRight}, "5 4 3|2 1 0", ""},
		{"one that is missing", "{index}.npy", slices.Delete(numbered("%d.npy", 0, 6), 2, 3), Options{Grid: [2]int{2, 3}}, "0 1 .|3 4 5", "1 of 6 places have no tile and become 0 (counted from 0): row 0 column 2"},
		{"a scan that was stopped", "{index}.npy", numbered("%d.npy", 1, 5), Options{Grid: [2]int{2, 3}}, "1 2 3|4 5 .", "1 of 6 places"},
		{"positions", "x{x_um}y{y_um}.npy", []string{"x10y5.npy", "x10y0.npy", "x0.5y0.25.npy"}, Options{}, "x0.5y0.25 x10y0|. x10y5", "1 of 4 places"},
	} {
		root := t.TempDir()
		put(t, root, []int{12, 24}, c.files...)
		put(t, root, []int{1, 1}, "other.npy", "deeper/0-0.npy")
		c.opt.Voxel = voxel
		s, err := find(t, root, c.pattern, c.opt)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if got := describe(&s.Slices[0]); got != c.want || len(s.Slices) != 1 {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
		if got := strings.Join(s.Slices[0].Warnings, "; "); !strings.HasPrefix(got, c.warning) || c.warning == "" && got != "" {
			t.Errorf("%s: warnings %q, want %q", c.name, got, c.warning)
		}
		if s.Files != len(c.files) || s.Others != 2 {
			t.Errorf("%s: %d files and %d others", c.name, s.Files, s.Others)
		}
	}
}

// Slices, times, channels and planes in folders and names; what is missing is said.
func TestFrames(t *testing.T) {
	root := t.TempDir()
	for _, sl := range []int{3, 12} {
		for _, c := range []int{488, 561} {
			for z := range 3 {
				if sl == 12 && c == 561 && z == 1 {
					continue
				}
				put(t, root, []int{4, 4}, fmt.Sprintf("sl%02d/ch%d/t%d_z%03d.npy", sl, c, sl+1, 10*z))
			}
		}
	}
	put(t, root, []int{4, 4}, "sl03/ch488/t5_z000.npy")
	s, err := find(t, root, "sl{slice}/ch{c}/t{index}_z{z}.npy", Options{Voxel: voxel, Grid: [2]int{1, 2}})
	if err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(s.Channels, s.Planes, s.Times, len(s.Slices), s.Slices[0].ID, s.Slices[1].ID) != "[488 561] [0 10 20] [] 2 3 12" {
		t.Errorf("%v %v %v, %d slices", s.Channels, s.Planes, s.Times, len(s.Slices))
	}
	if got := strings.Join(s.Slices[0].Warnings, "; "); got != "slice 3: 5 of 12 files are missing and become 0: c 488 z 10 of the tile of sl03/ch488/t5_z000.npy, c 488 z 20 of the tile of "+
		"sl03/ch488/t5_z000.npy, c 561 z 0 of the tile of sl03/ch488/t5_z000.npy, c 561 z 10 of the tile of sl03/ch488/t5_z000.npy, c 561 z 20 of the tile of sl03/ch488/t5_z000.npy" {
		t.Error(got)
	}
	// the index runs on from slice to slice
	if got := strings.Join(s.Slices[1].Warnings, "; "); got != "slice 12: 1 of 2 places have no tile and become 0 (counted from 0): row 0 column 1; "+
		"slice 12: 1 of 6 files are missing and become 0: c 561 z 10 of the tile of sl12/ch488/t13_z000.npy" {
		t.Error(got)
	}
	if f := s.Slices[1].Tiles[0].Files; f[3] != "sl12/ch561/t13_z000.npy" || f[4] != "" || f[5] != "sl12/ch561/t13_z020.npy" {
		t.Errorf("files %q", f)
	}
}

func TestBadFolders(t *testing.T) {
	grid := [2]int{2, 3}
	for _, c := range []struct {
		name, pattern string
		files         []string
		opt           Options
		want          string
		option        string
	}{
		{"nothing", "t_{row}_{col}.tif", []string{"t_0_0.npy", "t_0_1.npy", "u_0_0.npy"}, Options{}, `--pattern: "t_{row}_{col}.tif" matches none of 3 names in ROOT, which has t_0_0.npy, t_0_1.npy …`, "pattern"},
		{"no file", "sl{slice}/t_{index}.npy", []string{"sl1/x.npy", "sl2/t_.npy"}, Options{}, `which has sl2/t_.npy …`, "pattern"},
		{"a tile twice", "{row}_{col}.npy", []string{"1_2.npy", "1_02.npy"}, Options{}, "ROOT: 1_02.npy and 1_2.npy are both the tile at row 1, column 2", ""},
		{"an index twice", "sl{slice}_{index}.npy", []string{"sl1_2.npy", "sl1_02.npy"}, Options{Grid: grid}, "ROOT: sl1_02.npy and sl1_2.npy are both the tile 2 of slice 1", ""},
		{"a position twice", "{x_um}_{y_um}.npy", []string{"1.0_2.npy", "1_2.npy"}, Options{}, "are both the tile at x 1, y 2 µm", ""},
		{"two grids", "*_{row}_{col}.npy", []string{"a_0_0.npy", "b_0_0.npy", "a_0_1.npy", "b_0_1.npy"}, Options{},
			"ROOT: two grids in one folder: a_0_0.npy and b_0_0.npy are both the tile at row 0, column 0: put what tells them apart into the pattern in place of a *, or {channel} if it is the name of a channel", ""},
		{"two grids by numbers", "{row}_{col}.npy", []string{"0_0.npy", "0_1.npy", "90_0.npy", "90_80.npy"}, Options{}, "ROOT: 4 tiles in a grid of 91 × 81 places: a number in a name is wrong, or there are two grids", ""},
		{"a number gone wrong", "{row}_{col}.npy", []string{"0_0.npy", "0_99999999.npy"}, Options{}, "{col} runs from 0 to 99999999: a number in a name is wrong", ""},
		{"a plane gone wrong", "{index}_{z}.npy", []string{"0_0.npy", "0_1.npy", "0_99999999.npy"}, Options{Grid: [2]int{1, 1}}, "{z}: 3 numbers from 0 to 99999999: a number in a name is wrong", ""},
		{"gaps", "{index}.npy", []string{"0.npy", "10.npy", "20.npy", "30.npy"}, Options{Grid: grid}, "ROOT: the index has gaps: it runs from 0 to 30 for 4 tiles, without 1 to 9: --grid 2,3 has 6 places", ""},
		{"more than a grid has", "{index}.npy", numbered("%d.npy", 0, 7), Options{Grid: grid}, "--grid: 2,3 has 6 places, ROOT has 7 tiles, whose index runs from 0 to 6", "grid"},
		{"fewer than a grid has", "sl{slice}_{index}.npy", numbered("sl1_%d.npy", 1, 3), Options{Grid: grid}, "--grid: 2,3 has 6 places, ROOT has 3 tiles of slice 1, whose index runs from 1 to 3", "grid"},
		{"a row too many", "{row}_{col}.npy", []string{"0_0.npy", "2_0.npy"}, Options{Grid: grid}, "--grid: 2,3 does not fit ROOT: {row} runs from 0 to 2", "grid"},
		{"no grid", "{index}.npy", []string{"0.npy", "1.npy"}, Options{}, "--grid: is missing: {index} does not say how many rows and columns there are, and ROOT/0.npy records no position", "grid"},
		{"another grid than positions make", "{x_um}_{y_um}.npy", []string{"0_0.npy", "2_0.npy"}, Options{Grid: grid}, "--grid: 2,3 does not fit ROOT: the positions make 1 rows and 2 columns", "grid"},
		{"a vast grid", "{index}.npy", []string{"0.npy"}, Options{Grid: [2]int{1 << 20, 1 << 20}}, "--grid: 1048576,1048576: want rows and columns", "grid"},
		{"an order without index", "{row}_{col}.npy", []string{"0_0.npy"}, Options{Snake: true}, "--snake: is about {index}, which the pattern {row}_{col}.npy does not have", "snake"},
		{"axes", "{row}_{col}.npy", []string{"0_0.npy"}, Options{Axes: "xyz"}, `--axes: "xyz": want zyx, cyx or yx`, "axes"},
	} {
		root := t.TempDir()
		put(t, root, []int{4, 4}, c.files...)
		c.opt.Voxel = voxel
		_, err := find(t, root, c.pattern, c.opt)
		var option *OptionError
		got := ""
		if err != nil {
			got = strings.ReplaceAll(err.Error(), root, "ROOT")
		}
		if errors.As(err, &option); !strings.Contains(got, c.want) || strings.Contains(got, "\n") || (option != nil) != (c.option != "") || option != nil && option.Option != c.option {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
	if _, err := find(t, filepath.Join(t.TempDir(), "none"), "{index}", Options{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no folder: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p, err := ParsePattern("{index}")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Find(ctx, t.TempDir(), p, Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("stopped: %v", err)
	}
}

// A size of voxels is that of the option, else that of the file; along z it is needed where there are planes.
func TestVoxel(t *testing.T) {
	root := t.TempDir()
	put(t, root, []int{3, 4, 4}, "0_0.npy")
	s, err := find(t, root, "{row}_{col}.npy", Options{})
	if err != nil {
		t.Fatal(err)
	}
	var option *OptionError
	if _, err := s.Voxel(); !errors.As(err, &option) || option.Option != "voxel_size" || !strings.Contains(err.Error(), "0_0.npy state a size along z: give Z,Y,X in µm") {
		t.Error(err)
	}
	s.Header.Voxel, s.Header.Planes = [3]float64{0, 0.5, 0.25}, 1
	if v, err := s.Voxel(); err != nil || v != [3]float64{0, 0.5, 0.25} {
		t.Error(v, err)
	}
	s.Options.Voxel = [3]float64{1, 2, 3}
	if v, err := s.Voxel(); err != nil || v != [3]float64{1, 2, 3} {
		t.Error(v, err)
	}
	s.Options.Voxel[2] = 1e12
	if _, err := s.Voxel(); !errors.As(err, &option) {
		t.Error(err)
	}
}

// Files that are cut off or of another kind are counted, and some are named.
func TestInspect(t *testing.T) {
	root := t.TempDir()
	put(t, root, []int{4, 4}, numbered("%d.npy", 0, 9)...)
	put(t, root, []int{4, 5}, "7.npy")
	for _, name := range []string{"0.npy", "3.npy", "5.npy"} {
		if err := os.Truncate(filepath.Join(root, name), 130); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Truncate(filepath.Join(root, "8.npy"), 0); err != nil {
		t.Fatal(err)
	}
	s, err := find(t, root, "{index}.npy", Options{Grid: [2]int{3, 3}, Voxel: voxel})
	if err != nil {
		t.Fatal(err)
	}
	err = s.Inspect(t.Context(), &s.Slices[0], 3)
	const want = "ROOT: 5 of 9 files cannot be used: 0.npy: is cut off: has 2 bytes of elements, [4 4] of uint8 take 16; 3.npy: is cut off: has 2 bytes of elements, [4 4] of uint8 take 16; " +
		"5.npy: is cut off: has 2 bytes of elements, [4 4] of uint8 take 16 and 2 more"
	if err == nil || strings.ReplaceAll(err.Error(), root, "ROOT") != want {
		t.Errorf("%v, want %s", err, want)
	}
	put(t, root, []int{4, 4}, "0.npy", "3.npy", "5.npy", "8.npy")
	if err := s.Inspect(t.Context(), &s.Slices[0], 3); err == nil || !strings.HasSuffix(err.Error(), "/7.npy: has 4 × 5 pixels of uint8, but 0.npy has 4 × 4 pixels of uint8: the tiles of a mosaic are alike") {
		t.Error(err)
	}
	put(t, root, []int{4, 4}, "7.npy")
	if err := s.Inspect(t.Context(), &s.Slices[0], 3); err != nil || s.Positions(&s.Slices[0]) != nil {
		t.Error(err)
	}
}

// Positions that run against the places of tiles are turned round, once.
func TestOrient(t *testing.T) {
	s := Slice{Grid: [2]int{2, 2}}
	for k := range 4 {
		i, j := k/2, k%2
		s.Tiles = append(s.Tiles, Tile{Place: [2]int{i, j}, Position: &[2]float64{float64(-10*i + j), float64(20 * j)}})
	}
	for range 2 {
		s.orient()
		if got := *s.Tiles[3].Position; got != [2]float64{9, 20} || len(s.Warnings) != 1 || s.Warnings[0] != "recorded positions decrease along the rows: the axis y of the stage is taken for reversed" {
			t.Errorf("%v %q", got, s.Warnings)
		}
	}
}

// FuzzFind: names make a grid of tiles at different places, or an error of one line.
func FuzzFind(f *testing.F) {
	f.Add("{row}_{col}.npy", "0_0.npy\n0_1.npy\n1_0.npy", uint8(0), uint8(0))
	f.Add("{index}*", "1\n2 \n3é", uint8(2), uint8(2))
	f.Add("{x_um} {y_um} {z}", "1.5 2 0\n-1 2 1\n1 1 2", uint8(0), uint8(0))
	f.Add("s{slice}_{index}_{t}_{c}", "s1_1_0_0\ns1_2_0_0\ns2_3_1_5", uint8(1), uint8(2))
	f.Fuzz(func(t *testing.T, pattern, names string, rows, columns uint8) {
		p, err := ParsePattern(pattern)
		if err != nil || strings.Contains(pattern, "/") {
			return
		}
		root := t.TempDir()
		for _, name := range strings.Split(names, "\n")[:min(strings.Count(names, "\n")+1, 20)] {
			if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") || len(name) > 200 {
				return
			}
			put(t, root, []int{2, 2}, name)
		}
		opt := Options{Voxel: voxel}
		if rows > 0 && columns > 0 {
			opt.Grid = [2]int{int(rows), int(columns)}
		}
		s, err := Find(t.Context(), root, p, opt)
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("an error of two lines: %q", err)
			}
			return
		}
		files := 0
		for _, sl := range s.Slices {
			seen := map[[2]int]bool{}
			for _, tile := range sl.Tiles {
				at := tile.Place
				if seen[at] || at[0] < 0 || at[1] < 0 || at[0] >= sl.Grid[0] || at[1] >= sl.Grid[1] {
					t.Errorf("a tile at %v of %v", at, sl.Grid)
				}
				seen[at] = true
				for _, f := range tile.Files {
					if f != "" {
						files++
					}
				}
			}
			for _, w := range sl.Warnings {
				if strings.Contains(w, "\n") {
					t.Errorf("a warning of two lines: %q", w)
				}
			}
		}
		if files != s.Files {
			t.Errorf("%d files have places, %d match", files, s.Files)
		}
	})
}

func BenchmarkFind(b *testing.B) {
	root := b.TempDir()
	var names []string
	for i := range 100_000 {
		names = append(names, fmt.Sprintf("sl%03d_tile%02d-%02d.npy", i/1000, i/25%40, i%25))
	}
	put(b, root, []int{2, 2}, names...)
	b.ResetTimer()
	for b.Loop() {
		if s, err := find(b, root, "sl{slice}_tile{row}-{col}.npy", Options{Voxel: voxel}); err != nil || len(s.Slices) != 100 {
			b.Fatal(err)
		}
	}
}
