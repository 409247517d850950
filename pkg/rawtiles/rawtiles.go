// Package rawtiles reads what the microscope writes: a folder for each tile, with a text of settings (info.txt)
// and files of A-lines (image_*.bin).
//
//	RAW/z04/tile_x00_y01_z04/info.txt
//	                         image_00000.bin
//	                         image_00001.bin
//
// [Find] lists the slices and tiles below a folder by their names, [Tile.Info] reads the settings of a tile, and
// [Tile.Open] its frames. [Slice.Grid] arranges the tiles of a slice, and [DetectGalvo] finds out whether their
// A-lines begin in the middle of a scan.
//
// A frame (B-scan) is a row of A-lines along the microscope's x. Frames follow each other along its y. A frame has nx
// A-lines of the image, and then n_extra that are recorded while the mirror flies back. On disk a frame is stored
// A-line by A-line: the shape of a tile in C order is (frame, A-line, z), of float32 in little-endian byte order.
//
// Errors are one line and begin with the file, of a text with its line: "info.txt:3: …".
package rawtiles

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"strata/pkg/pattern"
	"strata/pkg/smallfile"
)

// Slice is the tiles of a slice, ordered by x and then y.
type Slice struct {
	ID    int // number behind z in the names of its tiles
	Tiles []Tile
}

// Tile is the folder of a tile.
type Tile struct {
	Path    string
	X, Y, Z int // numbers in its name
}

// Name returns the name of the folder.
func (t Tile) Name() string { return filepath.Base(t.Path) }

var tileName = pattern.Lazy(`^tile_x(\d+)_y(\d+)_z(\d+)$`)

// mostNumber limits the numbers in names: a larger one is a mistake.
const mostNumber = 1_000_000

// ParseName returns the tile whose folder has the given path. ok is false for a name that is not
// tile_x<XX>_y<YY>_z<ZZ>.
func ParseName(path string) (t Tile, ok bool, err error) {
	m := tileName().FindStringSubmatch(filepath.Base(path))
	if m == nil {
		return t, false, nil
	}
	t.Path = path
	for i, to := range []*int{&t.X, &t.Y, &t.Z} {
		if *to, err = strconv.Atoi(m[i+1]); err != nil || *to > mostNumber {
			return t, false, fmt.Errorf("%s: the number behind %c is too large (most: %d)", path, "xyz"[i], mostNumber)
		}
	}
	return t, true, nil
}

// mostDepth is the number of folders below each other that Find looks into.
const mostDepth = 8

// Find lists the tiles anywhere below a folder, by slice in increasing order of numbers. Links to folders are
// followed. A folder without tiles is an error.
func Find(ctx context.Context, root string) ([]Slice, error) {
	w := walk{ctx: ctx}
	if err := w.folder(root); err != nil {
		return nil, err
	}
	if len(w.tiles) == 0 {
		return nil, fmt.Errorf("%s: there are no tiles in this folder: want tile_x<XX>_y<YY>_z<ZZ>, here or below", root)
	}
	return group(w.tiles), nil
}

// Of groups the folders of tiles by slice, like Find.
func Of(paths []string) ([]Slice, error) {
	var tiles []Tile
	for _, path := range paths {
		t, ok, err := ParseName(path)
		if err == nil && !ok {
			err = fmt.Errorf("%s: is not the name of a tile (must be tile_x<XX>_y<YY>_z<ZZ>)", path)
		}
		if err != nil {
			return nil, err
		}
		info, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		if !info.IsDir() {
			return nil, fmt.Errorf("%s: is not a folder", path)
		}
		tiles = append(tiles, t)
	}
	return group(tiles), nil
}

// group sorts tiles and splits them by slice.
func group(tiles []Tile) (out []Slice) {
	slices.SortFunc(tiles, func(a, b Tile) int {
		return cmp.Or(a.Z-b.Z, a.X-b.X, a.Y-b.Y, cmp.Compare(a.Path, b.Path))
	})
	for _, t := range tiles {
		if n := len(out); n == 0 || out[n-1].ID != t.Z {
			out = append(out, Slice{ID: t.Z})
		}
		s := &out[len(out)-1]
		s.Tiles = append(s.Tiles, t)
	}
	return out
}

// walk looks for the folders of tiles.
type walk struct {
	ctx   context.Context
	above []fs.FileInfo // folders that the current one lies in, and itself
	tiles []Tile
}

func (w *walk) folder(path string) error {
	if err := w.ctx.Err(); err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if len(w.above) > mostDepth || slices.ContainsFunc(w.above, func(o fs.FileInfo) bool { return os.SameFile(o, info) }) {
		return nil
	}
	w.above = append(w.above, info)
	defer func() { w.above = w.above[:len(w.above)-1] }()
	entries, err := os.ReadDir(path)
	if err != nil {
		return err
	}
	for _, e := range entries {
		inside := filepath.Join(path, e.Name())
		if !e.IsDir() {
			if e.Type()&fs.ModeSymlink == 0 {
				continue
			}
			info, err := os.Stat(inside)
			if _, tile, _ := ParseName(inside); tile && err != nil {
				return smallfile.Cause(inside, err)
			}
			if err != nil || !info.IsDir() {
				continue
			}
		}
		t, ok, err := ParseName(inside)
		switch {
		case err != nil:
			return err
		case ok:
			w.tiles = append(w.tiles, t)
		default:
			if err := w.folder(inside); err != nil {
				return err
			}
		}
	}
	return nil
}
