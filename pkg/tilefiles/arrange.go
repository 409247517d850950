package tilefiles

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"strata/pkg/tilegrid"
)

const (
	// sparse is the maximum number of places of a grid for each tile, beyond a few: more is a name gone wrong.
	sparse, few = 16, 1024
	// mostLine and mostPlaces bound the rows or columns, and the places, of a grid.
	mostLine, mostPlaces = 1 << 20, 1 << 26
)

// key identifies a tile of a slice: row and column, index, or x and y in µm. It is zero if there is only one tile.
type key [2]float64

// key returns the key of a file.
func (s *Set) key(f *file) key {
	switch p := s.Pattern; {
	case p.Has(Row):
		return key{float64(f.Whole[Row]), float64(f.Whole[Col])}
	case p.Has(Index):
		return key{float64(f.Whole[Index]), 0}
	case p.Single():
		return key{}
	}
	return key{f.UM[1], f.UM[0]}
}

// arrange makes slices of files.
func (s *Set) arrange(ctx context.Context, files []file) (err error) {
	if s.Times, err = spaced(s.numbers(files, T)); err != nil {
		return fmt.Errorf("%s: {t}: %w", s.Root, err)
	}
	if s.Planes, err = spaced(s.numbers(files, Z)); err != nil {
		return fmt.Errorf("%s: {z}: %w", s.Root, err)
	}
	s.channels(files)
	if n := float64(max(1, len(s.Times))) * float64(max(1, len(s.Channels))) * float64(max(1, len(s.Planes))); n > float64(sparse*len(files)+few) {
		return fmt.Errorf("%s: %d files for %d times, %d channels and %d planes: a number in a name is wrong", s.Root, len(files), len(s.Times), len(s.Channels), len(s.Planes))
	}
	if err := s.readFirst(ctx, files); err != nil {
		return err
	}
	slices.SortStableFunc(files, func(a, b file) int { return cmp.Compare(a.Whole[SliceToken], b.Whole[SliceToken]) })
	var keys [][]key // of the tiles of each slice
	for len(files) > 0 {
		n := slices.IndexFunc(files, func(f file) bool { return f.Whole[SliceToken] != files[0].Whole[SliceToken] })
		if n < 0 {
			n = len(files)
		}
		sl := Slice{ID: files[0].Whole[SliceToken]}
		k, err := s.group(&sl, files[:n])
		if err != nil {
			return err
		}
		s.Slices, keys, files = append(s.Slices, sl), append(keys, k), files[n:]
	}
	return s.place(ctx, keys)
}

// channels numbers the channels of files.
func (s *Set) channels(files []file) {
	if !s.Pattern.Has(Channel) {
		s.Channels = s.numbers(files, C)
		return
	}
	number := map[string]int64{}
	for i := range files {
		if name := files[i].Channel; number[name] == 0 {
			number[name] = 1
			s.Names = append(s.Names, name)
		}
	}
	slices.SortFunc(s.Names, byNumber)
	for k, name := range s.Names {
		number[name] = int64(k)
		s.Channels = append(s.Channels, int64(k))
	}
	for i := range files {
		files[i].Whole[C] = number[files[i].Channel]
	}
}

// byNumber compares names of channels: whole numbers, such as wavelengths, by their value, and other names as text.
func byNumber(a, b string) int {
	v, err := strconv.ParseUint(a, 10, 32)
	w, other := strconv.ParseUint(b, 10, 32)
	if err == nil && other == nil && v != w {
		return cmp.Compare(v, w)
	}
	return strings.Compare(a, b)
}

// group makes the tiles of a slice, and returns their keys.
func (s *Set) group(sl *Slice, files []file) (keys []key, err error) {
	at := map[key]int{}
	frames := max(1, len(s.Times)) * max(1, len(s.Channels)) * max(1, len(s.Planes))
	if tiles := s.count(files); tiles*frames > sparse*len(files)+few {
		return nil, fmt.Errorf("%s: %d files for %d tiles of %d times, channels and planes: a number in a name is wrong", s.Root, len(files), tiles, frames)
	}
	stars := make(map[string]string, len(files))
	for i := range files {
		f := &files[i]
		k, ok := at[s.key(f)]
		if !ok {
			k = len(sl.Tiles)
			at[s.key(f)] = k
			t := Tile{Files: make([]string, frames)}
			if s.Pattern.Has(XUM) {
				t.Position = &[2]float64{f.UM[1], f.UM[0]}
			}
			sl.Tiles, keys = append(sl.Tiles, t), append(keys, s.key(f))
		}
		frame := &sl.Tiles[k].Files[s.frame(f)]
		if *frame != "" {
			return nil, s.twice(sl, f, *frame, stars[*frame])
		}
		*frame = f.path
		if f.stars != "" {
			stars[f.path] = f.stars
		}
	}
	return keys, nil
}

// count returns the number of tiles in files.
func (s *Set) count(files []file) int {
	seen := map[key]bool{}
	for i := range files {
		seen[s.key(&files[i])] = true
	}
	return len(seen)
}

// frame returns the place of a file among those of its tile.
func (s *Set) frame(f *file) int {
	find := func(list []int64, t Token) int {
		k, _ := slices.BinarySearch(list, f.Whole[t])
		return k
	}
	return (find(s.Times, T)*max(1, len(s.Channels))+find(s.Channels, C))*max(1, len(s.Planes)) + find(s.Planes, Z)
}

// twice returns the error for two files of the same tile.
func (s *Set) twice(sl *Slice, f *file, other, stars string) error {
	what := "tile"
	switch p := s.Pattern; {
	case p.Has(Row):
		what = fmt.Sprintf("tile at row %d, column %d", f.Whole[Row], f.Whole[Col])
	case p.Has(Index):
		what = fmt.Sprintf("tile %d", f.Whole[Index])
	case p.Has(XUM):
		what = fmt.Sprintf("tile at x %g, y %g µm", f.UM[0], f.UM[1])
	}
	if s.Pattern.Has(SliceToken) {
		what += fmt.Sprintf(" of slice %d", sl.ID)
	}
	if f.stars != stars {
		return fmt.Errorf("%s: two grids in one folder: %s and %s are both the %s: put what tells them apart into the pattern in place of a *, or {channel} if it is the name of a channel", s.Root, Name(other), Name(f.path), what)
	}
	return fmt.Errorf("%s: %s and %s are both the %s", s.Root, Name(other), Name(f.path), what)
}

// place gives the tiles of all slices their places in grids.
func (s *Set) place(ctx context.Context, keys [][]key) error {
	p := s.Pattern
	positions := !p.Has(Row) && !p.Single() && (!p.Has(Index) || s.Options.Grid == [2]int{})
	for i := range s.Slices {
		sl := &s.Slices[i]
		var err error
		switch {
		case positions:
			err = s.byPosition(ctx, sl)
		case p.Has(Row), p.Single():
			err = s.byRow(sl, keys[i], keys)
		default:
			err = s.byIndex(sl, keys[i], keys)
		}
		if err != nil {
			return err
		}
		slices.SortFunc(sl.Tiles, func(a, b Tile) int { return cmp.Or(a.Place[0]-b.Place[0], a.Place[1]-b.Place[1]) })
	}
	return nil
}

// extent returns the smallest and the largest number along an axis of keys.
func extent(keys [][]key, axis int) (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, list := range keys {
		for _, k := range list {
			low, high = min(low, k[axis]), max(high, k[axis])
		}
	}
	return low, high
}

// byRow places tiles by their rows and columns. All slices count from the same numbers.
func (s *Set) byRow(sl *Slice, keys []key, all [][]key) error {
	var base [2]float64
	for d, axis := range []string{"row", "col"} {
		low, high := extent(all, d)
		base[d] = low
		_, last := extent([][]key{keys}, d)
		n := last - low + 1
		if want := s.Options.Grid[d]; want > 0 {
			if low > 1 && high <= float64(want) {
				base[d] = 1
			}
			if high-base[d] >= float64(want) {
				return badOption("grid", "%d,%d does not fit %s: {%s} runs from %.0f to %.0f", s.Options.Grid[0], s.Options.Grid[1], s.Root, axis, low, high)
			}
			n = float64(want)
		}
		if n > mostLine {
			return fmt.Errorf("%s: {%s} runs from %.0f to %.0f: a number in a name is wrong", s.Root, axis, low, last)
		}
		sl.Grid[d] = int(n)
	}
	if n := float64(sl.Grid[0]) * float64(sl.Grid[1]); s.Options.Grid == [2]int{} && n > float64(sparse*len(sl.Tiles)+few) {
		return fmt.Errorf("%s: %d tiles in a grid of %d × %d places: a number in a name is wrong, or there are two grids", s.Root, len(sl.Tiles), sl.Grid[0], sl.Grid[1])
	}
	for i, k := range keys {
		sl.Tiles[i].Place = s.Options.turned([2]int{int(k[0] - base[0]), int(k[1] - base[1])}, sl.Grid)
	}
	return nil
}

// byIndex places tiles by their index in a grid whose size is known.
func (s *Set) byIndex(sl *Slice, keys []key, all [][]key) error {
	o := &s.Options
	sl.Grid = o.Grid
	places := float64(o.Grid[0]) * float64(o.Grid[1])
	line := float64(o.Grid[1])
	if o.Columns {
		line = float64(o.Grid[0])
	}
	base, high := extent(all, 0)
	first, last := extent([][]key{keys}, 0)
	switch {
	case base == 1, base > 1 && high <= places:
		base = 1
	case high-base >= places: // the index runs on from slice to slice
		base = first
	}
	of := ""
	if s.Pattern.Has(SliceToken) {
		of = fmt.Sprintf(" of slice %d", sl.ID)
	}
	span := last - base + 1
	skipped := gap(keys)
	switch {
	case span > places && float64(len(keys)) <= places && skipped != "":
		return fmt.Errorf("%s: the index%s has gaps: it runs from %.0f to %.0f for %d tiles, without %s: --grid %d,%d has %.0f places",
			s.Root, of, first, last, len(keys), skipped, o.Grid[0], o.Grid[1], places)
	case span > places || span <= places-line:
		return badOption("grid", "%d,%d has %.0f places, %s has %d tiles%s, whose index runs from %.0f to %.0f", o.Grid[0], o.Grid[1], places, s.Root, len(keys), of, first, last)
	}
	for i, k := range keys {
		sl.Tiles[i].Place = o.at(int(k[0] - base))
	}
	return nil
}

// gap returns the first numbers that an index leaves out, "" if it leaves out none.
func gap(keys []key) string {
	sorted := slices.Clone(keys)
	slices.SortFunc(sorted, func(a, b key) int { return cmp.Compare(a[0], b[0]) })
	for i := 1; i < len(sorted); i++ {
		switch from, to := sorted[i-1][0]+1, sorted[i][0]-1; {
		case from == to:
			return fmt.Sprintf("%.0f", from)
		case from < to:
			return fmt.Sprintf("%.0f to %.0f", from, to)
		}
	}
	return ""
}

// at returns the row and column of the n-th tile.
func (o *Options) at(n int) [2]int {
	along := o.Grid[1]
	if o.Columns {
		along = o.Grid[0]
	}
	line, i := n/along, n%along
	if o.Snake && line%2 == 1 {
		i = along - 1 - i
	}
	row, column := line, i
	if o.Columns {
		row, column = i, line
	}
	return o.turned([2]int{row, column}, o.Grid)
}

// turned returns a place that is counted from the corner o.Start of a grid as one that is counted from the top left.
func (o *Options) turned(place, grid [2]int) [2]int {
	if o.Start.bottom() {
		place[0] = grid[0] - 1 - place[0]
	}
	if o.Start.right() {
		place[1] = grid[1] - 1 - place[1]
	}
	return place
}

// byPosition places tiles by their positions.
func (s *Set) byPosition(ctx context.Context, sl *Slice) error {
	if !s.Pattern.Has(XUM) {
		if s.Header.Stage == nil {
			return badOption("grid", "is missing: {index} does not say how many rows and columns there are, and %s records no position", Name(s.Header.Path))
		}
		if err := s.Inspect(ctx, sl, 0); err != nil {
			return err
		}
	}
	var positions [][2]float64
	for k, t := range sl.Tiles {
		if t.Position == nil {
			return fmt.Errorf("%s: %s records no position, as other tiles do: give --grid", s.Root, Name(t.first()))
		}
		at := *t.Position
		for d, against := range [2]bool{s.Options.Start.bottom(), s.Options.Start.right()} {
			if against {
				at[d] = -at[d]
			}
		}
		sl.Tiles[k].Position = &at
		positions = append(positions, at)
	}
	v, err := s.Voxel()
	if err != nil {
		return err
	}
	g, err := tilegrid.NewGrid(positions, [2]float64{float64(float64(s.Header.Height) * v[1]), float64(float64(s.Header.Width) * v[2])})
	if err != nil {
		return fmt.Errorf("%s: %w", s.Root, err)
	}
	if want := s.Options.Grid; want != [2]int{} && want != g.Places {
		return badOption("grid", "%d,%d does not fit %s: the positions make %d rows and %d columns", want[0], want[1], s.Root, g.Places[0], g.Places[1])
	}
	sl.Grid = g.Places
	for k := range sl.Tiles {
		sl.Tiles[k].Place = g.Tiles[k]
	}
	return nil
}

// first returns the first file of a tile.
func (t *Tile) first() string {
	for _, f := range t.Files {
		if f != "" {
			return f
		}
	}
	return ""
}
