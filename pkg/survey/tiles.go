package survey

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"strata/pkg/ngff"
	"strata/pkg/tilefiles"
	"strata/pkg/tilefiles/guess"
	"strata/pkg/tilefiles/tilestore"
	"strata/pkg/zarr"
)

// tileNames are the ends of names of files that may be tiles.
var tileNames = []string{".tif", ".tiff", ".stk", ".png", ".npy"}

// mostStaged is the number of files whose headers are read for the positions of the stage.
const mostStaged = 4096

// tileSet collects the findings about tiles in files.
type tileSet struct {
	*Finding
	l       *Listing
	opt     Options
	swap    bool // rows and columns may be exchanged
	tenths  bool // positions are in tenths of µm
	guessed bool
	matches *tilefiles.Matches
	set     *tilefiles.Set
	ref     *tilefiles.Slice // of the most tiles
}

// lookTiles looks at tiles in files.
func lookTiles(ctx context.Context, l *Listing, opt Options) ([]*Finding, error) {
	if opt.Pattern != "" {
		t := &tileSet{Finding: &Finding{Kind: Tiles, Confidence: High, Pattern: opt.Pattern}, l: l, opt: opt}
		t.evidence("the pattern is --pattern")
		if err := t.look(ctx); err != nil {
			return nil, err
		}
		return []*Finding{t.Finding}, nil
	}
	var names []string
	for _, name := range l.Files {
		if slices.Contains(tileNames, strings.ToLower(filepath.Ext(name))) {
			names = append(names, name)
		}
	}
	all := guess.Names(names)
	for k, s := range all {
		if len(s.Proposals) == 0 {
			continue
		}
		f, err := tilesOf(ctx, l, s, opt)
		if err != nil || f == nil {
			return nil, err
		}
		for j, o := range all {
			if j != k && o.Files > 1 {
				f.Alternatives = append(f.Alternatives, other(o))
			}
		}
		return []*Finding{f}, nil
	}
	return nil, nil
}

// other describes a further series of files in the folder.
func other(s guess.Series) Alternative {
	if len(s.Proposals) == 0 {
		return Alternative{Why: fmt.Sprintf("%d more files, such as %s, whose numbers name no tiles", s.Files, tilefiles.Name(s.Example))}
	}
	return Alternative{Pattern: s.Proposals[0].Pattern, Why: fmt.Sprintf("%d more files, such as %s", s.Files, tilefiles.Name(s.Example))}
}

// tilesOf looks at a series of files: the first proposal that files can be arranged by. It is nil if the files are
// images of their own.
func tilesOf(ctx context.Context, l *Listing, s guess.Series, opt Options) (*Finding, error) {
	if pyramid(ctx, filepath.Join(l.Root, filepath.FromSlash(s.Example))) {
		return nil, nil
	}
	var first error
	for _, p := range s.Proposals {
		t := &tileSet{Finding: &Finding{Kind: Tiles, Confidence: p.Confidence, Pattern: p.Pattern}, l: l, opt: opt, swap: p.Swap, tenths: p.Tenths, guessed: true}
		t.evidence("%d files have names such as %s: %s", p.Files, tilefiles.Name(s.Example), p.Why)
		for _, f := range s.Fields {
			if !f.Twice && f.Token != "" {
				t.evidence("{%s} has %d values, %g to %g", f.Token, f.Values, f.Low, f.High)
			}
		}
		for _, o := range s.Proposals {
			if o.Pattern != p.Pattern {
				t.Alternatives = append(t.Alternatives, Alternative{o.Pattern, o.Why})
			}
		}
		err := t.look(ctx)
		if err == nil {
			return t.Finding, nil
		}
		var option *tilefiles.OptionError
		if ctx.Err() != nil || errors.As(err, &option) && (option.Option == "grid" && opt.Tiles.Grid != [2]int{} || option.Option == "axes") {
			return nil, err
		}
		if first == nil {
			first = err
		}
	}
	f := &Finding{Kind: Tiles, What: fmt.Sprintf("%d files with numbers in their names, which do not make a mosaic", s.Files), Confidence: Low, Pattern: s.Proposals[0].Pattern, Needs: []string{"pattern"}}
	f.warn("%v", first)
	return f, nil
}

// pyramid reports whether a file is an image of several levels, as slide scanners write them, and no tile.
func pyramid(ctx context.Context, name string) bool {
	im, err := openImage(ctx, name)
	if err != nil {
		return false
	}
	defer im.Levels[0].Array.Store().Close()
	return len(im.Levels) > 1
}

// look arranges the files in a grid, and measures what their names do not state.
func (t *tileSet) look(ctx context.Context) error {
	p, err := tilefiles.ParsePattern(t.Pattern)
	if err != nil {
		return err
	}
	how := t.opt.Tiles
	indexed := p.Has(tilefiles.Index)
	if !indexed && (t.opt.Ordered || t.opt.Snaked) {
		return &tilefiles.OptionError{Option: map[bool]string{true: "order", false: "snake"}[t.opt.Ordered],
			Err: fmt.Errorf("is about {index}, which the pattern %s does not have", p)}
	}
	known := how.Grid != [2]int{} && t.opt.Ordered && t.opt.Snaked && t.opt.Started
	if indexed && !known {
		how, err = t.line(ctx, p, how)
		if err != nil {
			return err
		}
	}
	if t.set, err = t.find(ctx, p, &how); err != nil {
		return err
	}
	t.header()
	if p.Single() {
		t.volume()
		return nil
	}
	if indexed && !known && !t.staged(ctx, p) {
		if err := t.byPictures(ctx, p); err != nil {
			return err
		}
	}
	if t.Kind == Stack {
		return nil
	}
	t.pickRef()
	if err := t.verify(ctx); err != nil {
		return err
	}
	t.conclude()
	return nil
}

// find arranges the files of a pattern, which takes the size of voxels where positions make the grid.
func (t *tileSet) find(ctx context.Context, p *tilefiles.Pattern, how *tilefiles.Options) (*tilefiles.Set, error) {
	if t.matches == nil || t.matches.Pattern() != p {
		var err error
		if t.matches, err = t.match(ctx, p); err != nil {
			return nil, err
		}
	}
	set, err := t.matches.Arrange(ctx, *how)
	var option *tilefiles.OptionError
	if errors.As(err, &option) && option.Option == "voxel_size" {
		t.need("voxel_size")
		how.Voxel = [3]float64{1, 1, 1} // positions are arranged by their distances; commands have a blank for the size
		set, err = t.matches.Arrange(ctx, *how)
	}
	return set, err
}

// match finds the files of a pattern: among those that were listed if the pattern was made from them.
func (t *tileSet) match(ctx context.Context, p *tilefiles.Pattern) (*tilefiles.Matches, error) {
	if t.guessed {
		return tilefiles.MatchNames(t.l.Root, p, t.l.Files)
	}
	return tilefiles.Match(ctx, t.l.Root, p)
}

func (t *tileSet) need(flag string) {
	if !slices.Contains(t.Needs, flag) {
		t.Needs = append(t.Needs, flag)
	}
}

// line returns options by which the tiles of an index lie in one row, so that they can be read.
func (t *tileSet) line(ctx context.Context, p *tilefiles.Pattern, how tilefiles.Options) (_ tilefiles.Options, err error) {
	if t.matches, err = t.match(ctx, p); err != nil {
		return how, err
	}
	most := t.matches.Span(tilefiles.Index)
	if most > 1<<24 {
		return how, fmt.Errorf("%s: {index} of %s runs over %d numbers: a number in a name is wrong", t.l.Root, p, most)
	}
	how.Grid, how.Columns, how.Snake, how.Start = [2]int{1, int(most)}, false, false, tilefiles.TopLeft
	return how, nil
}

// pickRef selects the slice with the most tiles for measurements.
func (t *tileSet) pickRef() {
	t.ref = &t.set.Slices[0]
	for i := range t.set.Slices {
		if s := &t.set.Slices[i]; len(s.Tiles) > len(t.ref.Tiles) {
			t.ref = s
		}
	}
}

// header copies the header of the first file into the finding.
func (t *tileSet) header() {
	h := t.set.Header
	t.Shape, t.DType, t.Axes = []int{h.Planes * max(1, len(t.set.Planes)), h.Height, h.Width}, h.Type.String(), []string{"z", "y", "x"}
	t.Channels, t.Planes, t.Times = h.Channels*max(1, len(t.set.Channels)), t.Shape[0], h.Times*max(1, len(t.set.Times))
	t.evidence("%s is a %s file: %d × %d pixels of %s, %s, %s", tilefiles.Name(h.Path), h.Format, h.Height, h.Width, h.Type, count(h.Planes, "plane"), count(h.Channels, "channel"))
	t.voxel()
}

// voxel takes over the voxel size that a flag or the first file states.
func (t *tileSet) voxel() {
	h := t.set.Header
	if t.opt.Tiles.Voxel != [3]float64{} {
		v := t.opt.Tiles.Voxel
		t.Voxel, t.VoxelFrom = &v, "--voxel_size"
		return
	}
	set := *t.set
	set.Options.Voxel = [3]float64{}
	if v, err := set.Voxel(); err == nil {
		t.Voxel, t.VoxelFrom = &v, h.VoxelFrom+" of "+filepath.Base(h.Path)
	} else {
		t.need("voxel_size")
	}
}

// staged arranges the tiles of an index by the positions that their files record, and reports whether they do.
func (t *tileSet) staged(ctx context.Context, p *tilefiles.Pattern) bool {
	if t.set.Header.Stage == nil || t.opt.Tiles.Grid != [2]int{} || t.opt.Ordered || t.opt.Snaked {
		return false
	}
	if t.set.Files > mostStaged {
		t.warn("%s records a position of the stage, but positions of %d files are not read here", tilefiles.Name(t.set.Header.Path), t.set.Files)
		return false
	}
	how := t.opt.Tiles
	set, err := t.find(ctx, p, &how)
	if err != nil {
		t.warn("%v", err)
		return false
	}
	t.set = set
	t.evidence("files record positions of the stage (%s), which make the grid", set.Header.StageFrom)
	return true
}

// byPictures finds the grid of an index from pictures.
func (t *tileSet) byPictures(ctx context.Context, p *tilefiles.Pattern) error {
	t.pickRef()
	n := t.ref.Grid[1]
	m := t.mosaic()
	if t.guessed && n > 1 && t.Planes == 1 {
		if planes, r := m.planes(ctx, n); planes {
			return t.planesOf(ctx, r)
		}
	}
	f, ok, err := found{}, false, error(nil)
	if n > 1 {
		if f, ok, err = m.order(ctx, n, t.opt); err != nil && !errors.Is(err, errEnough) {
			return err
		}
	} else {
		f.opt.Grid, ok = [2]int{1, 1}, true
	}
	for _, fault := range m.faults[:min(len(m.faults), 2)] {
		t.warn("%v", fault)
	}
	how := t.opt.Tiles
	if !ok {
		if how.Grid == [2]int{} {
			t.need("grid")
			t.Confidence = Low
			t.warn("the pictures of %d tiles do not show how {index} runs through the grid (neighbours correlate by %.2f): give --grid ROWS,COLS, --order, --snake and --start", n, f.along)
			return nil
		}
		t.warn("the pictures do not show how {index} runs through the grid: it is taken for rows from the top left, unless --order, --snake and --start say otherwise")
		t.Confidence = Low
	} else {
		how.Grid, how.Columns, how.Snake, how.Start = f.opt.Grid, f.opt.Columns, f.opt.Snake, f.opt.Start
		if n > 1 {
			t.evidence("the grid is %d rows × %d columns: %s", how.Grid[0], how.Grid[1], f)
		}
		if f.across < f.second+0.1 && n > 2 && t.Confidence == High {
			t.Confidence = Medium
		}
	}
	if t.set, err = t.find(ctx, p, &how); err != nil {
		return err
	}
	t.Order = &Order{how.Columns, how.Snake, tilefiles.Corners[how.Start], "pictures"}
	if !ok {
		t.Order.From = "default"
	}
	return nil
}

// planesOf records that the files of an index are planes of one volume.
func (t *tileSet) planesOf(ctx context.Context, r float64) error {
	t.evidence("consecutive files show the same place: they correlate by %.2f without a shift; if they are tiles all the same, give --pattern '%s'", r, t.Pattern)
	t.Pattern = strings.Replace(t.Pattern, "{index}", "{z}", 1)
	p, err := tilefiles.ParsePattern(t.Pattern)
	if err != nil {
		return err
	}
	how := t.opt.Tiles
	if t.set, err = t.find(ctx, p, &how); err != nil {
		return err
	}
	t.Confidence, t.Needs, t.Alternatives, t.Voxel, t.VoxelFrom = Medium, nil, nil, nil, ""
	t.voxel()
	t.volume()
	return nil
}

// volume records that the files are planes, channels and times of one volume, or of one volume per slice.
func (t *tileSet) volume() {
	t.Kind = Stack
	s := &t.set.Slices[0]
	t.What = fmt.Sprintf("%d planes of one volume, in a file each", t.set.Files)
	which := ""
	if len(t.set.Slices) > 1 {
		t.What = fmt.Sprintf("%d planes of %d volumes, in a file each", t.set.Files, len(t.set.Slices))
		which = fmt.Sprintf(" --slice %d", s.ID)
	}
	t.Planes, t.Shape[0] = t.set.Header.Planes*max(1, len(t.set.Planes)), t.set.Header.Planes*max(1, len(t.set.Planes))
	t.image = t.set.Path(s.First())
	out := t.beside("volume") + ".ome.zarr"
	t.Commands = []string{"strata stitch " + quote(t.l.Root) + " " + out + " --pattern " + quote(t.Pattern) + which + t.voxelFlag(), "strata view " + out + " --open"}
}

// mosaic returns the tiles of the slice looked at. Tiles of an index that lie in one line are numbered along it.
func (t *tileSet) mosaic() *pictures {
	tiles := map[int]*tilefiles.Tile{}
	columns := t.ref.Grid[1]
	m := newPictures(nil)
	m.grid, m.at = t.ref.Grid, make(map[[2]int]int, len(t.ref.Tiles))
	for i := range t.ref.Tiles {
		tile := &t.ref.Tiles[i]
		k := tile.Place[0]*columns + tile.Place[1]
		tiles[k], m.at[tile.Place] = tile, k
	}
	m.read = func(ctx context.Context, k int) (*picture, error) {
		tile := tiles[k]
		if tile == nil {
			return nil, nil
		}
		return t.read(ctx, tile)
	}
	return m
}

// read reads the middle plane of a tile: of the file in which it is.
func (t *tileSet) read(ctx context.Context, tile *tilefiles.Tile) (*picture, error) {
	name := tile.Files[len(t.set.Planes)/2]
	if name == "" {
		k := slices.IndexFunc(tile.Files, func(f string) bool { return f != "" })
		name = tile.Files[k]
	}
	if t.set.Header.Format == tilefiles.TIFF {
		return readFile(ctx, t.set.Path(name))
	}
	one := *t.set
	one.Slices, one.Times, one.Channels, one.Planes, one.Names = nil, nil, nil, nil, nil
	one.Options.Voxel = [3]float64{1, 1, 1}
	slice := tilefiles.Slice{Grid: [2]int{1, 1}, Tiles: []tilefiles.Tile{{Files: []string{name}}}}
	st, err := tilestore.Open(ctx, &one, &slice, tilestore.Options{})
	if err != nil {
		return nil, err
	}
	defer st.Close()
	im, err := ngff.OpenPresent(ctx, st, "", zarr.Workers(1))
	if err != nil {
		return nil, err
	}
	return readRegion(ctx, im.Levels[0].Array, middle(im, im.Levels[0].Array))
}
