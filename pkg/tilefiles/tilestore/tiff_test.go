package tilestore

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"strata/pkg/mem"
	"strata/pkg/tiff/tiffstore"
	"strata/pkg/tilefiles"
	"strata/pkg/zarr"
	"strata/tests/tiffcorpus"
)

// read reads all of an array.
func read(t testing.TB, a *zarr.Array) []byte {
	t.Helper()
	b := make([]byte, mem.Product(append(a.Shape(), a.DType().Size())...))
	if err := a.Read(t.Context(), a.Bounds(), b); err != nil {
		if strings.Contains(err.Error(), "libopenjp2") {
			t.Skip(err)
		}
		t.Fatal(err)
	}
	return b
}

var one = tilefiles.Options{Grid: [2]int{1, 1}, Voxel: [3]float64{1, 1, 1}}

// Each file of the corpus is a tile: what is shown is what package tiffstore shows of it, which others confirm.
func TestCorpus(t *testing.T) {
	compared := 0
	for _, c := range tiffcorpus.Files(t) {
		t.Run(c.Name, func(t *testing.T) {
			st, err := tiffstore.Open(t.Context(), tiffcorpus.Open(t, c.Name), c.Name)
			if err != nil {
				t.Fatal(err)
			}
			want, err := zarr.OpenArray(t.Context(), st, "0")
			if err != nil {
				if !strings.HasPrefix(c.Name, "opt_") || !strings.Contains(err.Error(), "is not supported") {
					t.Fatal(err)
				}
				return // a compression that is left to others
			}
			root := t.TempDir()
			if err := os.WriteFile(filepath.Join(root, "1.tif"), tiffcorpus.Bytes(t, c.Name), 0o666); err != nil {
				t.Fatal(err)
			}
			_, im := open(t, root, "{index}.tif", one, Options{})
			got := im.Levels[0].Array
			var lengths [2][]int
			for k, a := range []*zarr.Array{got, want} {
				lengths[k] = slices.DeleteFunc(a.Shape(), func(n int) bool { return n == 1 })
			}
			if !slices.Equal(lengths[0], lengths[1]) || got.DType() != want.DType() {
				t.Fatalf("%v of %s, want %v of %s", got.Shape(), got.DType(), want.Shape(), want.DType())
			}
			if !bytes.Equal(read(t, got), read(t, want)) {
				t.Error("other voxels")
			}
			compared++
		})
	}
	if compared < 100 {
		t.Errorf("only %d files were compared", compared)
	}
}

// Pages are what --axes says they are.
func TestAxes(t *testing.T) {
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "1.tif"), tiffcorpus.Bytes(t, "stack5_u2.tif"), 0o666); err != nil {
		t.Fatal(err)
	}
	how := one
	_, im := open(t, root, "{index}.tif", how, Options{})
	want := read(t, im.Levels[0].Array)
	how.Axes = "cyx"
	_, im = open(t, root, "{index}.tif", how, Options{})
	a := im.Levels[0].Array
	if im.Axes[0].Name != "c" || a.Shape()[0] != 5 || a.Chunks()[0] != 1 || !bytes.Equal(read(t, a), want) {
		t.Errorf("%v in chunks of %v, first axis %s", a.Shape(), a.Chunks(), im.Axes[0].Name)
	}
	how.Axes = "yx"
	p, err := tilefiles.ParsePattern("{index}.tif")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tilefiles.Find(t.Context(), root, p, how); err == nil || !strings.Contains(err.Error(), "--axes: yx: 1.tif has 5 pages: want one") {
		t.Error(err)
	}
}

// What no program should write is an error of one line, whatever was done to a file.
func TestBroken(t *testing.T) {
	p, err := tilefiles.ParsePattern("{index}.tif")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range tiffcorpus.Negatives(t) {
		root := t.TempDir()
		if err := os.WriteFile(filepath.Join(root, "1.tif"), tiffcorpus.Bytes(t, c.Name), 0o666); err != nil {
			t.Fatal(err)
		}
		set, err := tilefiles.Find(t.Context(), root, p, one)
		if err == nil {
			err = set.Inspect(t.Context(), &set.Slices[0], 1)
		}
		if err != nil && (strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "1.tif")) {
			t.Errorf("%s: %v", c.Name, err)
		}
	}
}
