package rawtiles

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"strata/pkg/meter"
	"strata/tests/golden"
)

const settings = "nx: 4\nny: 3\nn_extra: 2\nwidth: 8\nheight: 6\ntop_z: 10\nbottom_z: 14\n"

// tile writes a tile of 3 frames of 6 A-lines of 5 samples, which are numbered, in two files.
func tile(t *testing.T, path, info string) Tile {
	t.Helper()
	if err := os.MkdirAll(path, 0o777); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	for i := range 3 * 6 * 5 {
		binary.Write(&b, binary.LittleEndian, float32(i)+0.5)
	}
	write(t, filepath.Join(path, "info.txt"), []byte(info))
	write(t, filepath.Join(path, "image_00000.bin"), b.Bytes()[:120])
	write(t, filepath.Join(path, "image_00001.bin"), nil)
	write(t, filepath.Join(path, "image_00002.bin"), b.Bytes()[120:])
	out, ok, err := ParseName(path)
	if !ok || err != nil {
		t.Fatal(path, err)
	}
	return out
}

func write(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o666); err != nil {
		t.Fatal(err)
	}
}

// Tiles are found at any depth and by links, a loop of links ends, and what is named otherwise is left alone.
func TestFind(t *testing.T) {
	root := t.TempDir()
	for _, path := range []string{"z02/tile_x01_y00_z02", "z02/tile_x00_y10_z02", "z02/tile_x00_y9_z02", "day 2/z100/tile_x3_y4_z100", "z02/tile_x00_y00", "z02/atile_x00_y00_z02", "tile_x7_y7_z03/tile_x8_y8_z03"} {
		if err := os.MkdirAll(filepath.Join(root, path), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(root, "tile_x00_y00_z09"), []byte("no folder"))
	elsewhere := filepath.Join(t.TempDir(), "other", "tile_x00_y00_z05")
	if err := os.MkdirAll(elsewhere, 0o777); err != nil {
		t.Fatal(err)
	}
	for from, to := range map[string]string{"loop": root, "other": filepath.Dir(elsewhere), "tile_x01_y00_z05": elsewhere, "broken": "nowhere"} {
		if err := os.Symlink(to, filepath.Join(root, from)); err != nil {
			t.Fatal(err)
		}
	}
	lost := filepath.Join(root, "tile_x03_y00_z05") // is no tile that can be left out
	if err := os.Symlink("../gone", lost); err != nil {
		t.Fatal(err)
	}
	if _, err := Find(t.Context(), root); err == nil || !strings.Contains(err.Error(), lost+": is a link to ../gone, which does not exist") {
		t.Errorf("a lost tile: %v", err)
	}
	if err := os.Remove(lost); err != nil {
		t.Fatal(err)
	}
	found, err := Find(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range found {
		got = append(got, fmt.Sprint(s.ID))
		for _, x := range s.Tiles {
			if x.Z != s.ID {
				t.Errorf("%s in slice %d", x.Path, s.ID)
			}
			got = append(got, x.Name())
		}
	}
	want := "2 tile_x00_y9_z02 tile_x00_y10_z02 tile_x01_y00_z02 3 tile_x7_y7_z03 5 tile_x00_y00_z05 tile_x01_y00_z05 100 tile_x3_y4_z100"
	if strings.Join(got, " ") != want {
		t.Errorf("found %s\nwant %s", got, want)
	}

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Find(ctx, root); err == nil {
		t.Error("the end of the context is no error")
	}
	if _, err := Find(t.Context(), filepath.Join(root, "z02", "tile_x00_y00")); err == nil || !strings.HasSuffix(err.Error(), "want tile_x<XX>_y<YY>_z<ZZ>, here or below") {
		t.Error(err)
	}
	if _, err := Find(t.Context(), filepath.Join(root, "none")); !os.IsNotExist(err) {
		t.Error(err)
	}
	if err := os.Mkdir(filepath.Join(root, "tile_x1_y1_z99999999999999999999"), 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := Find(t.Context(), root); err == nil || !strings.Contains(err.Error(), "the number behind z is too large (most: 1000000)") {
		t.Error(err)
	}
}

func TestOf(t *testing.T) {
	root := t.TempDir()
	a, b := filepath.Join(root, "tile_x01_y00_z02"), filepath.Join(root, "tile_x00_y00_z01")
	for _, path := range []string{a, b} {
		if err := os.Mkdir(path, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	found, err := Of([]string{a, b})
	if err != nil || len(found) != 2 || found[0].ID != 1 || found[1].Tiles[0].Path != a {
		t.Errorf("%v, %v", found, err)
	}
	write(t, filepath.Join(root, "tile_x02_y00_z02"), nil)
	for path, want := range map[string]string{root: "is not the name of a tile", filepath.Join(root, "tile_x09_y09_z09"): "no such file", filepath.Join(root, "tile_x02_y00_z02"): "is not a folder"} {
		if _, err := Of([]string{a, path}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", path, err, want)
		}
	}
}

func TestInfo(t *testing.T) {
	i, err := readInfo(strings.NewReader("\xef\xbb\xbf"+settings+"\r\nn_repeat: 2\r\nstage_x_pos_mm: -1.25\nstage_z_pos_mm: 3\ncomment: a: b: c\nobjective:\ndz: 1.36\nnx: 4"), "info.txt")
	want := Info{NX: 4, NY: 3, Extra: 2, Repeat: 2, Depth: 5, Width: 8, Height: 6, Axial: 1.36, Stage: [3]float64{-1.25, 0, 3}, Staged: [3]bool{true, false, true}}
	if err != nil || i != want {
		t.Errorf("%+v, %v, want %+v", i, err, want)
	}
	if x, y := i.Voxel(); x != 2 || y != 2 || i.Lines() != 6 {
		t.Errorf("voxels of %v × %v µm, %d A-lines", x, y, i.Lines())
	}
	for _, c := range []struct{ text, want string }{
		{"", "f: there is no nx"},
		{"nx: 4\n\nn y 3\n", `f:3: "n y 3": want "key: value"`},
		{"nx: four\n" + settings[6:], `f:1: nx is "four" (want a whole number from 1 to 1048576)`},
		{settings + "nx: 5\n", "f:8: nx is 5, but 4 on line 1"},
		{"nx: 4.5\n" + settings[6:], `f:1: nx is "4.5" (want a whole number`},
		{"nx: 0\n" + settings[6:], `f:1: nx is "0" (want`},
		{"nx: 99999999999999999999\n" + settings[6:], "f:1: nx is"},
		{strings.Replace(settings, "n_extra: 2", "n_extra: -1", 1), `f:3: n_extra is "-1" (want a whole number from 0 to`},
		{strings.Replace(settings, "width: 8", "width: nan", 1), `f:4: width is "nan" (want a number`},
		{strings.Replace(settings, "height: 6", "height: 0", 1), `f:5: height is "0" (want a number from 1e-06`},
		{strings.Replace(settings, "bottom_z: 14", "bottom_z: 9", 1), "f:7: bottom_z 9 is 0 planes from top_z 10 (want 1 to 1048576)"},
		{strings.Replace(settings, "bottom_z: 14\n", "", 1), "f: there is no bottom_z"},
		{settings + "n_repeat: 0\n", "f:8: n_repeat is"},
		{settings + "axial_resolution: 0.0035\n", `f:8: axial_resolution is "0.0035" (want a number from 0.01 to 1000)`},
		{settings + "stage_y_pos_mm: here\n", "f:8: stage_y_pos_mm is"},
		{settings + "stage_y_pos_mm: inf\n", "f:8: stage_y_pos_mm is"},
		{strings.Repeat("x", 2<<20), "f:1: the line is longer than 1 MiB"},
	} {
		if _, err := readInfo(strings.NewReader(c.text), "f"); err == nil || !strings.HasPrefix(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%.60q: %v, want %s", c.text, err, c.want)
		}
	}
}

// FuzzInfo: whatever a text says, it is refused in one line, or its numbers are within their limits.
func FuzzInfo(f *testing.F) {
	f.Add([]byte(settings))
	f.Add([]byte(settings + "n_repeat: 2\nstage_x_pos_mm: 1e3\ndz: 3.5\n"))
	f.Add([]byte("\xef\xbb\xbfnx:4\r\nny: \x00\r\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		i, err := readInfo(bytes.NewReader(b), "info.txt")
		if err != nil {
			if i != (Info{}) || strings.Contains(err.Error(), "\n") || !strings.HasPrefix(err.Error(), "info.txt") {
				t.Fatalf("%+v, %q", i, err)
			}
			return
		}
		for _, n := range []int{i.NX, i.NY, i.Repeat, i.Depth, i.Extra + 1} {
			if n < 1 || n > mostCount+1 {
				t.Fatalf("%+v", i)
			}
		}
		for _, v := range []float64{i.Width, i.Height, i.Stage[0], i.Stage[1], i.Stage[2], i.Axial} {
			if v-v != 0 {
				t.Fatalf("%+v", i)
			}
		}
		if !(i.Width > 0 && i.Height > 0 && i.Axial >= 0) {
			t.Fatalf("%+v", i)
		}
	})
}

// Frames are read across files, in pieces of any size.
func TestFrames(t *testing.T) {
	x := tile(t, filepath.Join(t.TempDir(), "tile_x00_y00_z00"), settings)
	i, err := x.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	m := &meter.Meter{}
	f, err := x.Open(t.Context(), i, m)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if f.Len() != 3 || f.FrameLen() != 30 {
		t.Fatalf("%d frames of %d", f.Len(), f.FrameLen())
	}
	for first := range 3 {
		for n := 1; first+n <= 3; n++ {
			got := make([]float32, 30*n)
			if err := f.Read(got, first); err != nil {
				t.Fatal(err)
			}
			for k, v := range got {
				if v != float32(30*first+k)+0.5 {
					t.Fatalf("frames %d to %d: value %d is %v", first, first+n-1, k, v)
				}
			}
		}
	}
	if want := int64(4 * 30 * (3 + 4 + 3)); m.BytesRead() != want {
		t.Errorf("%d bytes were read, want %d", m.BytesRead(), want)
	}
	if f.Read(make([]float32, 60), 2) == nil || f.Read(make([]float32, 30), -1) == nil || f.Read(make([]float32, 31), 0) == nil {
		t.Error("frames that are not there are no error")
	}
	f.Close()
	if err := os.Truncate(filepath.Join(x.Path, "image_00002.bin"), 100); err != nil {
		t.Fatal(err)
	}
	if err := f.Read(make([]float32, 30), 1); err == nil || !strings.HasSuffix(err.Error(), "image_00002.bin: the file became shorter while it was read") {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if f, err := x.Open(ctx, Info{NX: 5, NY: 1, Depth: 5, Repeat: 1}, nil); err == nil && f.Read(make([]float32, 25), 0) == nil {
		t.Error("the end of the context is no error")
	}
}

func TestFramesOfBadTiles(t *testing.T) {
	root := t.TempDir()
	x := tile(t, filepath.Join(root, "tile_x00_y00_z00"), settings)
	good := Info{NX: 4, NY: 3, Extra: 2, Repeat: 1, Depth: 5}
	for _, c := range []struct {
		change func(i *Info)
		want   string
	}{
		{func(i *Info) { i.NX = 5 }, "image_00000.bin: 120 bytes are not whole frames of 140 bytes (5 samples of 7 A-lines, as info.txt says): the file is cut off, or info.txt is wrong"},
		{func(i *Info) { i.NY = 4 }, "tile_x00_y00_z00: 3 frames in 3 files, fewer than the 4 that info.txt says (ny = 4)"},
		{func(i *Info) { i.Repeat = 2 }, "fewer than the 6 that info.txt says (ny = 3 · n_repeat = 2)"},
	} {
		i := good
		c.change(&i)
		if _, err := x.Open(t.Context(), i, nil); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
	if err := os.Truncate(filepath.Join(x.Path, "image_00002.bin"), 119); err != nil {
		t.Fatal(err)
	}
	if _, err := x.Open(t.Context(), good, nil); err == nil || !strings.Contains(err.Error(), "image_00002.bin: 119 bytes are not whole frames of 120 bytes") {
		t.Error(err)
	}
	empty := filepath.Join(root, "tile_x01_y00_z00")
	if err := os.MkdirAll(filepath.Join(empty, "image_0.bin"), 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := (Tile{Path: empty}).Open(t.Context(), good, nil); err == nil || !strings.Contains(err.Error(), "image_0.bin: is not a regular file") {
		t.Error(err)
	}
	if err := os.Remove(filepath.Join(empty, "image_0.bin")); err != nil {
		t.Fatal(err)
	}
	if _, err := (Tile{Path: empty}).Open(t.Context(), good, nil); err == nil || !strings.HasSuffix(err.Error(), "there are no frames in this folder: want image_*.bin") {
		t.Error(err)
	}
	if _, err := (Tile{Path: empty}).Info(t.Context()); !os.IsNotExist(err) {
		t.Error(err)
	}
}

func TestGrid(t *testing.T) {
	s := Slice{ID: 3, Tiles: []Tile{{"a", 2, 5, 3}, {"b", 2, 7, 3}, {"c", 4, 6, 3}}}
	g, err := s.Grid()
	if err != nil {
		t.Fatal(err)
	}
	if g.Origin != [2]int{2, 5} || g.Size != [2]int{3, 3} || !slices.Equal(g.Tiles, []int{0, -1, 1, -1, -1, -1, -1, 2, -1}) || g.At(2, 1) != 2 {
		t.Errorf("%+v", g)
	}
	names, all := g.Missing(3, 2)
	if all != 6 || !slices.Equal(names, []string{"tile_x02_y06_z03", "tile_x03_y05_z03"}) {
		t.Errorf("%d missing: %v", all, names)
	}
	s.Tiles = append(s.Tiles, Tile{"d", 4, 6, 3})
	if _, err := s.Grid(); err == nil || err.Error() != "c and d are both the tile at x 4, y 6 of slice 03" {
		t.Error(err)
	}
	s.Tiles = []Tile{{"a", 0, 0, 3}, {"b", 999_999, 999_999, 3}}
	if _, err := s.Grid(); err == nil || !strings.Contains(err.Error(), "2 tiles in a grid of 1000000 × 1000000 places") {
		t.Error(err)
	}
}

// The confidences are those of linumpy, its shift is one A-line more.
func TestGalvoGolden(t *testing.T) {
	for _, c := range golden.Cases(t, "mosaic_grid") {
		var put struct {
			Shift  int `json:"galvo_shift_put_in"`
			Params struct{ Raw string }
			Config string `json:"slice_config_detect_galvo"`
		}
		if err := json.Unmarshal(c.File, &put); err != nil {
			t.Fatal(err)
		}
		all, err := Find(t.Context(), golden.Unpack(t, put.Params.Raw))
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range all {
			info := func(i int) (Info, error) { return s.Tiles[i].Info(t.Context()) }
			var got Galvo
			for _, workers := range []int{1, 3} {
				g, err := DetectGalvo(t.Context(), s, info, GalvoOptions{Workers: workers, Mem: 1 << 20})
				if err != nil {
					t.Fatal(err)
				}
				if workers > 1 && g != got {
					t.Errorf("%s: %v with %d workers, %v with one", c.Name, g, workers, got)
				}
				got = g
			}
			if shift := got.Applied(0.6); shift != put.Shift {
				t.Errorf("%s: slice %d: shift %d, want %d", c.Name, s.ID, shift, put.Shift)
			}
			if put.Config != "" && !strings.Contains(put.Config, fmt.Sprintf("\n%02d,true,,,%.3f,false,", s.ID, got.Confidence)) {
				t.Errorf("%s: slice %d: confidence %.3f, want that of %s", c.Name, s.ID, got.Confidence, put.Config)
			}
			if c.Name == "galvo" && (got.Confidence != 1 || got.Tiles != 3) {
				t.Errorf("galvo: %+v", got)
			}
		}
	}
}

// Tiles that disagree make an answer less certain; dark ones do not take part.
func TestAgreement(t *testing.T) {
	extra := []int{12, 12, 12, 12}
	g := agreed([]Galvo{{17, 0.9, 1}, {20, 0.5, 1}, {40, 0.8, 1}, {}}, extra)
	if g.Shift != 17 || g.Tiles != 3 || math.Abs(g.Confidence-0.9*math.Sqrt(2./3)) > 1e-12 {
		t.Errorf("%+v", g)
	}
	if g := agreed(make([]Galvo, 3), extra[:3]); g != (Galvo{}) {
		t.Errorf("%+v of dark tiles", g)
	}
	for n, want := range map[int][]int{0: nil, 1: {0}, 2: {0}, 4: {0, 1, 2}, 100: {20, 34, 49, 64, 79}} {
		if got := galvoPick(n); !slices.Equal(got, want) {
			t.Errorf("tiles %v of %d, want %v", got, n, want)
		}
	}
}

// A projection averages repeated frames and leaves out what is no number; the camera's shift is undone on it.
func TestProject(t *testing.T) {
	x := tile(t, filepath.Join(t.TempDir(), "tile_x00_y00_z00"), settings)
	path := filepath.Join(x.Path, "image_00000.bin")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	binary.LittleEndian.PutUint32(b, math.Float32bits(float32(math.NaN())))
	write(t, path, b)
	i := Info{NX: 4, NY: 1, Extra: 2, Repeat: 3, Depth: 5, Width: 1, Height: 1}
	f, err := x.Open(t.Context(), i, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	aip, err := f.Project(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	// the samples of A-line l are 5l+0.5 … 5l+4.5, and 30 more in each frame
	want := []float32{(3*32.5*5 - 0.5) / 14, 37.5, 42.5, 47.5, 52.5, 57.5}
	if !slices.Equal(aip, want) {
		t.Errorf("%v, want %v", aip, want)
	}
	if _, err := f.Project(100); err == nil || !strings.Contains(err.Error(), "MiB of buffers") {
		t.Error(err)
	}
	shift := CameraShift(aip, 6)
	rollCamera(aip, 6, shift)
	if shift != 5 || !slices.Equal(aip, []float32{want[0], want[0], 37.5, 42.5, 47.5, 52.5}) {
		t.Errorf("rolled by %d: %v", shift, aip)
	}
}
