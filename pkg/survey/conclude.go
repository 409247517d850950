package survey

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"strata/pkg/filter"
	"strata/pkg/oct/mosaic"
	"strata/pkg/tilefiles"
)

// same is the correlation of consecutive files without a shift above which they show the same place.
const same = 0.7

// planes reports whether consecutive files show the same place, and how well they correlate.
func (m *pictures) planes(ctx context.Context, n int) (bool, float64) {
	var scores []float64
	for _, i := range spread(4, n-1) {
		p, err := m.picture(ctx, i)
		if err != nil {
			return false, 0
		}
		q, err := m.picture(ctx, i+1)
		if err != nil || p == nil || q == nil || len(p.pix) != len(q.pix) {
			return false, 0
		}
		scores = append(scores, filter.NCC(p.pix, q.pix))
	}
	r := better(scores)
	return r >= same, r
}

// verify measures the overlap, and whether rows are columns.
func (t *tileSet) verify(ctx context.Context) error {
	if t.lacks("grid") {
		return nil
	}
	if t.swap {
		if err := t.turn(ctx); err != nil {
			return err
		}
	}
	backward, err := t.measured(ctx, t.mosaic(), t.opt.Overlap)
	if err != nil || backward == [2]bool{} {
		return err
	}
	if t.set.Pattern.Has(tilefiles.Index) && t.set.Options.Grid != [2]int{} || t.opt.Started {
		t.warnBackward(backward)
		return nil
	}
	return t.turnRound(ctx, backward)
}

// turnRound numbers rows or columns from the opposite side if they run backward.
func (t *tileSet) turnRound(ctx context.Context, backward [2]bool) (err error) {
	for axis, is := range backward {
		if is {
			t.evidence("%s: the pictures of neighbours fit that way only", runs[axis])
		}
	}
	how := t.set.Options
	how.Start = tilefiles.CornerAt(backward[0], backward[1])
	if t.set, err = t.find(ctx, t.set.Pattern, &how); err != nil {
		return err
	}
	t.pickRef()
	m, old := t.mosaic(), t.Finding.mosaic
	m.overlap = old.overlap
	for place, k := range old.at { // what was read is not read again
		for axis, is := range backward {
			if is {
				place[axis] = m.grid[axis] - 1 - place[axis]
			}
		}
		if p, ok := old.seen[k]; ok {
			m.seen[m.at[place]] = p
		}
	}
	t.Finding.mosaic = m
	return nil
}

// turn compares pictures of neighbours, for names that say nothing of which number is the row.
func (t *tileSet) turn(ctx context.Context) error {
	m := t.mosaic()
	other := newPictures(m.read)
	other.seen, other.fits, other.grid, other.at = m.seen, m.fits, [2]int{m.grid[1], m.grid[0]}, make(map[[2]int]int, len(m.at))
	for place, k := range m.at {
		other.at[[2]int{place[1], place[0]}] = k
	}
	mine, _, _, err := m.measure(ctx)
	if err != nil {
		return err
	}
	swapped, _, _, err := other.measure(ctx)
	if err != nil {
		return err
	}
	a, b := len(mine[0])+len(mine[1]), len(swapped[0])+len(swapped[1])
	if a == b {
		return nil
	}
	t.Confidence = High
	if a > b {
		t.evidence("pictures agree that rows come before columns in the names: %d pairs of neighbours correlate, %d the other way round", a, b)
		return nil
	}
	t.evidence("pictures show that columns come before rows in the names: %d pairs of neighbours correlate, %d the other way round", b, a)
	return t.exchange(ctx)
}

// lacks reports whether a flag is needed.
func (t *tileSet) lacks(flag string) bool { return slices.Contains(t.Needs, flag) }

// exchange takes rows for columns.
func (t *tileSet) exchange(ctx context.Context) error {
	old := t.Pattern
	t.Pattern = strings.NewReplacer("{row}", "{col}", "{col}", "{row}").Replace(old)
	for k := range t.Alternatives {
		if t.Alternatives[k].Pattern == t.Pattern {
			t.Alternatives[k] = Alternative{old, "rows come before columns"}
		}
	}
	p, err := tilefiles.ParsePattern(t.Pattern)
	if err != nil {
		return err
	}
	how := t.opt.Tiles
	if t.set, err = t.find(ctx, p, &how); err != nil {
		return err
	}
	t.pickRef()
	return nil
}

// conclude describes the findings and proposes the next commands.
func (t *tileSet) conclude() {
	for _, s := range t.set.Slices {
		t.Slices = append(t.Slices, s.ID)
	}
	if !t.set.Pattern.Has(tilefiles.SliceToken) {
		t.Slices = nil
	}
	missingSlices(t.Finding)
	t.Tiles = len(t.ref.Tiles)
	for _, s := range t.set.Slices {
		for _, w := range s.Warnings {
			if t.Slices != nil {
				w = fmt.Sprintf("slice %d: %s", s.ID, w)
			}
			if len(t.Warnings) < 10 {
				t.warn("%s", w)
			}
		}
	}
	where := ""
	if !t.lacks("grid") {
		grid := t.ref.Grid
		t.Grid = &grid
		t.Missing, t.MissingAll = t.ref.Missing(mostMissing)
		where = fmt.Sprintf(" in %d rows and %d columns", grid[0], grid[1])
		if o := t.set.Options; t.Order == nil && t.set.Pattern.Has(tilefiles.Index) && o.Grid != [2]int{} {
			t.Order = &Order{o.Columns, o.Snake, tilefiles.Corners[o.Start], "options"}
		}
	}
	t.What = fmt.Sprintf("%d tiles%s", t.Tiles, where)
	if len(t.Slices) > 1 {
		t.What = fmt.Sprintf("tiles of %d slices: slice %d has %s", len(t.Slices), t.ref.ID, t.What)
	}
	t.commands()
}

// commands writes the commands that make an image of the tiles.
func (t *tileSet) commands() {
	flags := " --pattern " + quote(t.Pattern)
	if t.set.Pattern.Has(tilefiles.Index) && t.set.Options.Grid != [2]int{} {
		flags += t.gridFlags()
	}
	if start := t.set.Options.Start; start != tilefiles.TopLeft {
		flags += " --start " + tilefiles.Corners[start]
	}
	flags += t.voxelFlag()
	if a := t.opt.Tiles.Axes; a != "" {
		flags += " --axes " + a
	}
	flags += t.overlapFlag()
	if len(t.Slices) < 2 && t.Planes < 2 {
		place := " --estimate"
		if t.set.Positions(t.ref) != nil && !t.tenths {
			place = " --positions tiles_positions.json"
		}
		t.Commands = []string{"strata mosaic " + quote(t.l.Root) + " tiles.ome.zarr" + flags, "strata stitch tiles.ome.zarr stitched.ome.zarr" + place, "strata view stitched.ome.zarr --open"}
		return
	}
	mosaics, sections := t.beside("mosaics"), t.beside("slices")
	t.Commands = []string{"strata mosaic " + quote(t.l.Root) + " " + mosaics + " --all" + flags}
	t.Commands = append(t.Commands, t.stitches(mosaics, sections)...)
	t.Commands = append(t.Commands, "strata view "+sections+" --open")
	t.Params = []Param{{"input", mosaics}, {"outdir", "results"}}
	if t.Overlap != nil {
		t.Params = append(t.Params, Param{"stitch_overlap", t.Overlap.Median})
	}
	if len(t.Slices) > 1 {
		t.Params = append(t.Params, Param{"stack_no_xy_shift", true})
		t.Commands = append(t.Commands, "nextflow run nextflow/main.nf -params-file params.yml")
	}
}

// stitches returns the commands that stitch the slices: a line each, or a loop if there are more than a few.
func (t *tileSet) stitches(mosaics, sections string) (out []string) {
	const few = 3
	line := func(s *tilefiles.Slice, grid, section string) string {
		place := " --estimate"
		if t.set.Positions(s) != nil && !t.tenths {
			place = " --positions " + mosaics + "/" + grid + "_positions.json"
		}
		return "strata stitch " + mosaics + "/" + grid + ".ome.zarr " + sections + "/" + section + ".ome.zarr" + place
	}
	if len(t.set.Slices) > few {
		var numbers []string
		for _, s := range t.set.Slices {
			numbers = append(numbers, fmt.Sprintf("%02d", s.ID))
		}
		grid := strings.TrimSuffix(mosaic.Name(0), "00") + "$z"
		return []string{"for z in " + strings.Join(numbers, " ") + "; do " + line(t.ref, grid, "slice_z$z") + "; done"}
	}
	for i := range t.set.Slices {
		s := &t.set.Slices[i]
		out = append(out, line(s, mosaic.Name(int(s.ID)), fmt.Sprintf("slice_z%02d", s.ID)))
	}
	return out
}

// beside returns a name for an output of the proposed commands that differs from the surveyed folder's name.
func (t *tileSet) beside(name string) string {
	if filepath.Base(filepath.Clean(t.l.Root)) == name {
		return "strata-" + name
	}
	return name
}

// voxelFlag returns the flag for the voxel size, with placeholders to fill in if the voxel size is unknown.
func (t *tileSet) voxelFlag() string {
	switch {
	case t.Voxel == nil:
		return " --voxel_size Z,Y,X"
	case t.VoxelFrom == "--voxel_size":
		return fmt.Sprintf(" --voxel_size %g,%g,%g", t.Voxel[0], t.Voxel[1], t.Voxel[2])
	}
	return ""
}

// gridFlags returns the flags of the grid of an index.
func (t *tileSet) gridFlags() string {
	o := t.set.Options
	if t.Grid == nil {
		return " --grid ROWS,COLS"
	}
	text := fmt.Sprintf(" --grid %d,%d", o.Grid[0], o.Grid[1])
	if o.Columns {
		text += " --order columns"
	}
	if o.Snake {
		text += " --snake"
	}
	return text
}
