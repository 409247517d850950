package benchczi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"image"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"strata/cmd/internal/benchkit"
	"strata/pkg/address"
	"strata/pkg/bench"
	"strata/pkg/cli"
	"strata/pkg/czi"
	"strata/pkg/filelayer"
	"strata/pkg/runrecord"
	"strata/pkg/settings"
	"strata/pkg/units"
	"strata/pkg/zarr/store"
)

// scan is a CZI file with the tiles to read.
type scan struct {
	path    string
	far     bool // it lies on a server
	cold    bool // the page cache forgets it before each repetition
	http    settings.HTTP
	file    *czi.File // for what is not measured
	close   func() error
	tiles   []int // numbers of sub-blocks, in the order of the directory
	scene   int   // that was chosen; -1: none
	image   bench.Image
	largest int // bytes of a tile's pixels
}

// look opens the file that the argument names, and selects its tiles by the flags.
func look(ctx context.Context, r *cli.Run) (*scan, error) {
	path, err := r.Input(r.Arg("FILE"))
	if err != nil {
		return nil, err
	}
	s := newScan(r, path)
	path = s.path
	s.cold = r.Bool("cold") && !s.far
	if s.far && r.Bool("cold") && r.IsSet("cold") {
		return nil, cli.Usage("flag --cold: the caches of a server cannot be emptied from here: leave it out for %s", path)
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return nil, cli.BadInputf("%s: is a folder (must be a CZI file)", path)
	}
	if s.file, s.close, err = s.open(ctx); err != nil {
		return nil, err
	}
	if err := s.choose(r); err != nil {
		return nil, errors.Join(err, s.close())
	}
	for _, w := range s.file.Warnings {
		r.Warn("%s: %s", path, w)
	}
	r.Read(runrecord.Dataset{Path: address.Address(path), Shape: []int{s.image.Height, s.image.Width}, Bytes: s.image.FileBytes})
	return s, nil
}

// newScan returns a scan of a file that has not been read.
func newScan(r *cli.Run, path string) *scan {
	path = strings.TrimPrefix(path, "file://")
	return &scan{path: path, far: strings.Contains(path, "://"), http: r.Options.HTTP}
}

// open opens the file anew, as everything measured does.
func (s *scan) open(ctx context.Context) (*czi.File, func() error, error) {
	o, err := s.source(ctx)
	if err != nil {
		return nil, nil, cli.BadInput(err)
	}
	f, err := czi.Open(ctx, o, s.path)
	if err != nil {
		return nil, nil, cli.BadInput(errors.Join(err, o.Close()))
	}
	return f, o.Close, nil
}

func (s *scan) source(ctx context.Context) (store.Object, error) {
	if s.far {
		return store.OpenFile(ctx, s.path, store.Settings(s.http))
	}
	return store.Folder(filepath.Dir(s.path)).Open(ctx, filepath.Base(s.path))
}

// choose selects the tiles.
func (s *scan) choose(r *cli.Run) error {
	f := s.file
	wanted := func(flag string, has int) bool { return !r.IsSet(flag) || has == r.Int(flag) }
	most := r.Int("max_tiles")
	im := &s.image
	s.scene = -1
	if r.IsSet("scene") {
		s.scene = r.Int("scene")
	}
	for i := range f.Len() {
		sb := f.SubBlock(i)
		if !sb.Level0() {
			continue
		}
		im.Tiles++
		if !wanted("channel", sb.C) || !wanted("scene", sb.S) || most > 0 && len(s.tiles) == most {
			continue
		}
		s.tiles = append(s.tiles, i)
		n := sb.Bytes()
		s.largest = max(s.largest, n)
		im.Pixels += int64(sb.StoredWidth) * int64(sb.StoredHeight)
		im.Bytes += int64(n)
		im.TileWidth, im.TileHeight = max(im.TileWidth, sb.StoredWidth), max(im.TileHeight, sb.StoredHeight)
		im.PixelTypes, im.Compression = with(im.PixelTypes, sb.Pixels.String()), with(im.Compression, sb.Compression.String())
	}
	if len(s.tiles) == 0 {
		return s.none(r)
	}
	all := f.Bounds(czi.AllScenes)
	im.Width, im.Height = all.Dx(), all.Dy()
	im.Channels, im.Scenes = len(f.Channels()), len(f.Scenes())
	im.Depths, im.Times = s.extent('Z'), s.extent('T')
	im.TilesRead, im.FileBytes = len(s.tiles), f.Source().Size()
	return nil
}

func with(list []string, name string) []string {
	if slices.Contains(list, name) {
		return list
	}
	return append(list, name)
}

// extent returns the number of positions that the file has along a dimension.
func (s *scan) extent(name byte) int {
	if start, end, ok := s.file.Dimension(name); ok {
		return end - start
	}
	return 1
}

// none returns the error of a file without tiles, or of flags that leave none.
func (s *scan) none(r *cli.Run) error {
	if s.image.Tiles == 0 {
		return cli.BadInputf("%s: has no tiles of level 0", s.path)
	}
	var asked []string
	for _, flag := range []string{"channel", "scene"} {
		if !r.IsSet(flag) {
			continue
		}
		start, end, ok := s.file.Dimension(strings.ToUpper(flag)[0])
		if !ok {
			start, end = 0, 1
		}
		asked = append(asked, fmt.Sprintf("--%s %d", flag, r.Int(flag)))
		if n := r.Int(flag); n < start || n >= end {
			return cli.Usage("flag --%s %d: %s has %d to %d", flag, n, s.path, start, end-1)
		}
	}
	return cli.Usage("%s: %s has no tile of both", strings.Join(asked, " and "), s.path)
}

// String describes the tiles in one line.
func (s *scan) String() string {
	im := &s.image
	read := "all read"
	if im.TilesRead < im.Tiles {
		read = fmt.Sprintf("%d read", im.TilesRead)
	}
	return fmt.Sprintf("%s of level 0, up to %d × %d pixels, %s, %s; %s: %s Mpx, %s", counted(im.Tiles), im.TileWidth, im.TileHeight,
		strings.Join(im.PixelTypes, " and "), strings.Join(im.Compression, " and "), read, bench.Ratio(float64(im.Pixels)/1e6), units.FormatSize(im.Bytes))
}

// forget drops the file from the page cache, and returns the fraction of it that remains.
func (s *scan) forget() (float64, error) { return benchkit.Forget([]string{s.path}) }

// overlap reports whether any two of the selected tiles overlap.
func (s *scan) overlap() bool {
	by := map[czi.Plane][]image.Rectangle{}
	for _, i := range s.tiles {
		sb := s.file.SubBlock(i)
		by[sb.Plane()] = append(by[sb.Plane()], sb.Rect)
	}
	for _, list := range by {
		// From left to right, those that reach as far as the next one begins.
		slices.SortFunc(list, func(a, b image.Rectangle) int { return cmp.Compare(a.Min.X, b.Min.X) })
		var open []image.Rectangle
		for _, r := range list {
			open = slices.DeleteFunc(open, func(o image.Rectangle) bool { return o.Max.X <= r.Min.X })
			if slices.ContainsFunc(open, r.Overlaps) {
				return true
			}
			open = append(open, r)
		}
	}
	return false
}

// cached returns the fraction of the file in the page cache, or −1 if the system does not tell.
func (s *scan) cached() float64 {
	if s.far || s.image.FileBytes == 0 {
		return -1
	}
	f, err := os.Open(s.path)
	if err != nil {
		return -1
	}
	defer f.Close()
	n, err := filelayer.Cached(f, 0, 0)
	if err != nil {
		return -1
	}
	return min(float64(n)/float64(s.image.FileBytes), 1)
}
