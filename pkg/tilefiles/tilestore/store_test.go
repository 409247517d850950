package tilestore

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"image/png"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"strata/pkg/dtype"
	"strata/pkg/ngff"
	"strata/pkg/npy"
	"strata/pkg/tilefiles"
	"strata/pkg/tilegrid"
	"strata/pkg/work"
	"strata/pkg/zarr"
)

// value is the voxel of a tile.
func value(i, j, c, z, y, x int) uint16 { return uint16(20000*i + 5000*j + 1000*c + 100*z + 10*y + x) }

const (
	height, width = 3, 5
)

// put writes a .npy file of a tile: planes of one channel.
func put(t testing.TB, path string, i, j, c, first, planes int) {
	t.Helper()
	var b bytes.Buffer
	if err := npy.WriteHeader(&b, npy.Header{Type: dtype.Uint16, BigEndian: j%2 == 1, Shape: []int{planes, height, width}}); err != nil {
		t.Fatal(err)
	}
	for n := range planes * height * width {
		v := value(i, j, c, first+n/(height*width), n/width%height, n%width)
		if j%2 == 1 {
			b.Write(binary.BigEndian.AppendUint16(nil, v))
		} else {
			b.Write(binary.LittleEndian.AppendUint16(nil, v))
		}
	}
	if err := os.WriteFile(path, b.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
}

func open(t testing.TB, root, pattern string, how tilefiles.Options, opt Options) (*Store, *ngff.Image) {
	t.Helper()
	p, err := tilefiles.ParsePattern(pattern)
	if err != nil {
		t.Fatal(err)
	}
	set, err := tilefiles.Find(t.Context(), root, p, how)
	if err != nil {
		t.Fatal(err)
	}
	st, err := Open(t.Context(), set, &set.Slices[0], opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	im, err := ngff.OpenPresent(t.Context(), st, "")
	if err != nil {
		t.Fatal(err)
	}
	return st, im
}

// Planes come from several files, a file has several planes, and what is missing is 0.
func TestVoxels(t *testing.T) {
	root := t.TempDir()
	for i := range 2 {
		for j := range 2 {
			for c := range 2 {
				for z := range 3 {
					if i == 1 && j == 1 || i == 0 && j == 1 && c == 1 && z == 1 {
						continue
					}
					put(t, filepath.Join(root, fmt.Sprintf("r%dc%d_%d_%d.npy", i, j, c, z)), i, j, c, 2*z, 2)
				}
			}
		}
	}
	overlap := 0.25
	how := tilefiles.Options{Voxel: [3]float64{3, 2, 1}}
	st, im := open(t, root, "r{row}c{col}_{c}_{z}.npy", how, Options{Name: "slice", Overlap: &overlap})
	a := im.Levels[0].Array
	if !slices.Equal(a.Shape(), []int{2, 6, 2 * height, 2 * width}) || !slices.Equal(a.Chunks(), []int{1, 6, height, width}) || !slices.Equal(im.VoxelSize, []float64{1, 3, 2, 1}) || im.Name != "slice" {
		t.Errorf("%v in chunks of %v, %v µm, %q", a.Shape(), a.Chunks(), im.VoxelSize, im.Name)
	}
	if got, ok := tilegrid.Overlap(im.Group.Attributes()); !ok || got != overlap {
		t.Errorf("overlap %v %v", got, ok)
	}
	v := make([]uint16, 2*6*4*height*width)
	if err := zarr.ReadSlice(t.Context(), a, a.Bounds(), v); err != nil {
		t.Fatal(err)
	}
	for n, got := range v {
		x, y, z, c := n%(2*width), n/(2*width)%(2*height), n/(4*width*height)%6, n/(24*width*height)
		i, j := y/height, x/width
		want := value(i, j, c, z, y%height, x%width)
		if i == 1 && j == 1 || i == 0 && j == 1 && c == 1 && z/2 == 1 {
			want = 0
		}
		if got != want {
			t.Fatalf("voxel (%d, %d, %d, %d) is %d, want %d", c, z, y, x, got, want)
		}
	}
	if _, err := st.Get(t.Context(), "0/c/0/0/1/1", nil, -1); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a chunk without a tile: %v", err)
	}
	if got := st.Location("0/c/1/0/0/1"); got != filepath.Join(root, "r0c1_1_0.npy") {
		t.Errorf("location %s", got)
	}
	if got := st.Bytes(); got != 17*2*height*width*2 {
		t.Errorf("%d bytes", got)
	}
	for _, key := range []string{"1/zarr.json", "x", "0/c/0/0/0", "0/c/0/0/0/7", "0/c/a"} {
		if _, err := st.Get(t.Context(), key, nil, -1); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", key, err)
		}
	}
}

// A tile of more than 64 MiB is shown in parts along z, unless it is to be whole.
func TestChunks(t *testing.T) {
	root := t.TempDir()
	var b bytes.Buffer
	if err := npy.WriteHeader(&b, npy.Header{Type: dtype.Float32, Shape: []int{20, 2048, 1024}}); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(root, "1.npy")
	if err := os.WriteFile(path, b.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, int64(b.Len())+20*2048*1024*4); err != nil {
		t.Fatal(err)
	}
	for whole, want := range map[bool][]int{false: {7, 2048, 1024}, true: {20, 2048, 1024}} {
		_, im := open(t, root, "{index}.npy", tilefiles.Options{Grid: [2]int{1, 1}, Voxel: [3]float64{1, 1, 1}}, Options{Whole: whole})
		if got := im.Levels[0].Array.Chunks(); !slices.Equal(got, want) {
			t.Errorf("whole %v: chunks %v, want %v", whole, got, want)
		}
	}
}

// Many files are read at a time, and few stay open.
func TestConcurrent(t *testing.T) {
	root := t.TempDir()
	const n = 200
	for k := range n {
		put(t, filepath.Join(root, fmt.Sprintf("%d.npy", k)), 0, k%4, 0, 0, 4)
	}
	st, im := open(t, root, "{index}.npy", tilefiles.Options{Grid: [2]int{1, n}, Voxel: [3]float64{1, 1, 1}}, Options{})
	a := im.Levels[0].Array
	err := work.Each(t.Context(), 8, 8*n, func(_, k int) error {
		j, z := k%n, k/n%4
		v := make([]uint16, height*width)
		if err := zarr.ReadSlice(t.Context(), a, zarr.Region{Start: []int{z, 0, j * width}, Shape: []int{1, height, width}}, v); err != nil {
			return err
		}
		for p, got := range v {
			if want := value(0, j%4, 0, z, p/width, p%width); got != want {
				return fmt.Errorf("tile %d, plane %d, pixel %d is %d, want %d", j, z, p, got, want)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if open := len(st.open.files); open > mostOpen || len(st.open.idle) != open {
		t.Errorf("%d files are open, %d of them idle", open, len(st.open.idle))
	}
}

// A file that is not like the first, cut off or gone is refused by name, also if nobody inspected it.
func TestBadFiles(t *testing.T) {
	root := t.TempDir()
	for k := range 4 {
		put(t, filepath.Join(root, fmt.Sprintf("%d.npy", k)), 0, k, 0, 0, 2)
	}
	_, im := open(t, root, "{index}.npy", tilefiles.Options{Grid: [2]int{1, 4}, Voxel: [3]float64{1, 1, 1}}, Options{})
	put(t, filepath.Join(root, "1.npy"), 0, 1, 0, 0, 3)
	if err := os.Truncate(filepath.Join(root, "2.npy"), 150); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "3.npy"), []byte("GIF89a"), 0o666); err != nil {
		t.Fatal(err)
	}
	a := im.Levels[0].Array
	for k, want := range []string{"", "has 3 × 5 pixels of uint16 in 3 planes, but 0.npy has 3 × 5 pixels of uint16 in 2 planes", "is cut off: has 22 bytes of elements", `begins with "GIF8"`} {
		v := make([]uint16, 2*height*width)
		err := zarr.ReadSlice(t.Context(), a, zarr.Region{Start: []int{0, 0, k * width}, Shape: []int{2, height, width}}, v)
		var format *zarr.FormatError
		if want == "" && err != nil || want != "" && (!errors.As(err, &format) || !strings.Contains(err.Error(), fmt.Sprintf("%d.npy: ", k)) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n")) {
			t.Errorf("tile %d: %v, want %q", k, err, want)
		}
	}
	if err := os.Remove(filepath.Join(root, "3.npy")); err != nil {
		t.Fatal(err)
	}
	if err := zarr.ReadSlice(t.Context(), a, zarr.Region{Start: []int{0, 0, 3 * width}, Shape: []int{2, height, width}}, make([]uint16, 2*height*width)); err == nil {
		t.Error("a file that is gone is no error")
	}
}

// Grey pictures of 8 and 16 bits, and one of which a value is transparent.
func TestPNG(t *testing.T) {
	root := t.TempDir()
	grey := image.NewGray16(image.Rect(0, 0, width, height))
	for k := range grey.Pix {
		grey.Pix[k] = byte(7 * k)
	}
	var b bytes.Buffer
	if err := png.Encode(&b, grey); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "0.png"), b.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
	_, im := open(t, root, "{index}.png", tilefiles.Options{Grid: [2]int{1, 1}, Voxel: [3]float64{1, 1, 1}}, Options{})
	v := make([]uint16, height*width)
	if err := zarr.ReadSlice(t.Context(), im.Levels[0].Array, im.Levels[0].Array.Bounds(), v); err != nil {
		t.Fatal(err)
	}
	for k, got := range v {
		if want := binary.BigEndian.Uint16(grey.Pix[2*k:]); got != want {
			t.Fatalf("pixel %d is %d, want %d", k, got, want)
		}
	}
}
