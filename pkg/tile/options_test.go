package tile

import (
	"strings"
	"testing"

	"strata/pkg/dtype"
)

// pyramid is a source that says what it is told to.
type pyramid struct {
	*numbers
	levels       int
	sizes, tiles [][]int
}

func (p pyramid) Levels() int               { return p.levels }
func (p pyramid) Shape(level int) []int     { return p.sizes[level] }
func (p pyramid) TileShape(level int) []int { return p.tiles[level] }

// levelsOf is an image of the size, tile and number of axes of its only level.
func levelsOf(axes int, size, tile []int) Source {
	src := newNumbers(make([]int, axes), nil, nil)
	return pyramid{src, 1, [][]int{size}, [][]int{tile}}
}

func TestConfigurationErrors(t *testing.T) {
	good := levelsOf(3, []int{5, 5, 5}, []int{2, 2, 2})
	ones := []int{1, 1, 1}
	cases := map[string]struct {
		src  Source
		opts []Option
		want string // part of the message
	}{
		"no source":           {nil, nil, "no source"},
		"no axes":             {levelsOf(0, nil, nil), nil, "no axes"},
		"no levels":           {pyramid{newNumbers(ones, nil, nil), 0, nil, nil}, nil, "0 pyramid levels"},
		"axes of names":       {levelsOf(2, ones, ones), nil, "2 dimension names"},
		"axes of shape":       {levelsOf(3, []int{1, 1}, ones), nil, "shape [1 1] has 2 axes"},
		"axes of tile":        {levelsOf(3, ones, []int{1, 1, 1, 1}), nil, "tile [1 1 1 1] has 4 axes"},
		"F 000":               {levelsOf(3, []int{0, 0, 0}, ones), nil, "shape [0 0 0]"},
		"F 011":               {levelsOf(3, []int{0, 1, 1}, ones), nil, "shape [0 1 1]"},
		"F 101":               {levelsOf(3, []int{1, 0, 1}, ones), nil, "shape [1 0 1]"},
		"F 110":               {levelsOf(3, []int{1, 1, 0}, ones), nil, "shape [1 1 0]"},
		"T 000":               {levelsOf(3, ones, []int{0, 0, 0}), nil, "tile [0 0 0]"},
		"T 011":               {levelsOf(3, ones, []int{0, 1, 1}), nil, "tile [0 1 1]"},
		"T 101":               {levelsOf(3, ones, []int{1, 0, 1}), nil, "tile [1 0 1]"},
		"T 110":               {levelsOf(3, ones, []int{1, 1, 0}), nil, "tile [1 1 0]"},
		"T negative":          {levelsOf(3, ones, []int{1, -1, 0}), nil, "tile [1 -1 0]"},
		"0 loader threads":    {good, []Option{LoaderThreads(0)}, "0 loader threads"},
		"0 copy threads":      {good, []Option{CopyThreads(0)}, "0 copy threads"},
		"radii":               {good, []Option{Radii(1, 2)}, "2 radii"},
		"no radii":            {good, []Option{Radii()}, "0 radii"},
		"negative radius":     {good, []Option{Radius(-1)}, "radius -1"},
		"negative radii":      {good, []Option{Radii(1, -1, 1)}, "radii [1 -1 1]"},
		"views 0":             {good, []Option{ViewsAvailable(0)}, "0 views available"},
		"views of no level":   {good, []Option{ViewsAvailable()}, "0 views available"},
		"views per level":     {good, []Option{ViewsAvailable(1, 2)}, "2 views available"},
		"release count 0":     {good, []Option{ReleaseCount(0)}, "release count 0"},
		"releases per level":  {good, []Option{ReleaseCount(1, 1, 1)}, "3 release counts"},
		"cache 0":             {good, []Option{CacheBytes(0)}, "cache of 0 bytes"},
		"caches per level":    {good, []Option{CacheBytes(1, 2), Radius(1)}, "2 cache sizes"},
		"no traversal":        {good, []Option{Traverse(nil)}, "traversal is nil"},
		"border mode":         {good, []Option{Border(99)}, "border mode 99"},
		"no border creator":   {good, []Option{BorderCustom[int32](nil)}, "border creator is nil"},
		"border of other":     {good, []Option{BorderConstant[float32](1)}, "int32"},
		"region level":        {good, []Option{Region(1, ones, ones)}, "region of level 1"},
		"region axes":         {good, []Option{Region(0, ones[:2], ones)}, "region"},
		"region empty":        {good, []Option{Region(0, ones, []int{1, 0, 1})}, "region"},
		"region outside":      {good, []Option{Region(0, []int{0, 0, 5}, ones)}, "region"},
		"memory 0":            {good, []Option{MemoryLimit(0)}, "memory limit of 0"},
		"memory too small":    {good, []Option{MemoryLimit(4096), Radius(1)}, "memory limit of 4096"},
		"view beyond memory":  {good, []Option{Radius(1 << 40)}, "too large"},
		"several at once (1)": {good, []Option{ViewsAvailable(0), LoaderThreads(0)}, "0 loader threads"},
		"several at once (2)": {good, []Option{ViewsAvailable(0), LoaderThreads(0)}, "0 views available"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			l, err := New[int32](c.src, c.opts...)
			if err == nil {
				l.Close()
				t.Fatal("accepted")
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v (should mention %q)", err, c.want)
			}
		})
	}
	for name, logical := range map[string][][]int{
		"levels": {{1, 1, 1}, {1, 1, 1}}, "none": nil, "axes": {{1, 1}}, "zero": {{1, 0, 1}},
	} {
		if _, err := NewAdaptive[int32](good, logical); err == nil {
			t.Errorf("adaptive, %s: accepted", name)
		}
	}
	if _, err := NewAdaptive[int32](good, [][]int{{1, 2, 3}}, LogicalCacheBytes(0)); err == nil {
		t.Error("adaptive, cache of logical tiles of 0 bytes: accepted")
	}
	if _, err := NewAdaptive[int32](nil, [][]int{{1, 2, 3}}); err == nil {
		t.Error("adaptive, no source: accepted")
	}
	for _, typ := range []dtype.Type{dtype.Bool, dtype.Float16, dtype.Complex64, dtype.Invalid} {
		src := newNumbers(ones, ones, nil)
		src.Type = typ
		if _, err := New[int32](src); err == nil {
			t.Errorf("pixels of type %s: accepted", typ)
		}
	}
}

// TestSmallerThanATile: an image smaller than its tile is legal.
func TestSmallerThanATile(t *testing.T) {
	src := newNumbers([]int{2, 9}, []int{4, 4}, grid5)
	l, err := New[int32](src, Radius(1), Border(Replicate))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for v, err := range l.AllViews(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range expect(src, src.Tile, []int{1, 1}, v.Index, Replicate, 0) {
			if v.Data()[i] != want {
				t.Fatalf("view %v: pixel %d is %d, want %d", v.Index, i, v.Data()[i], want)
			}
		}
		v.Release()
	}
}

func TestPerLevelSettings(t *testing.T) {
	src := pyramid{newNumbers([]int{8, 8}, []int{4, 4}, grid5), 2, [][]int{{8, 8}, {4, 4}}, [][]int{{4, 4}, {2, 2}}}
	l, err := New[int32](src, Radius(1), CacheBytes(64, 1<<20), ViewsAvailable(1, 3), ReleaseCount(2, 1))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if l.levels[0].cache.capacity != 1 || l.levels[1].cache.capacity != 4 {
		t.Errorf("caches of %d and %d tiles, want 1 and 4 (all)", l.levels[0].cache.capacity, l.levels[1].cache.capacity)
	}
	if got := l.ViewShape(1); got[0] != 4 || got[1] != 4 || l.Levels() != 2 || l.Grid(1)[0] != 2 || l.Shape(1)[0] != 4 || l.TileShape(1)[0] != 2 {
		t.Errorf("level 1: views of %v, %d levels, grid %v", got, l.Levels(), l.Grid(1))
	}
	// pages are the smallest buffers: 1 view and 1 tile, 3 views and 4 tiles
	if l.MaxMemory() != 9*4096 {
		t.Errorf("at most %d bytes, want 9 pages", l.MaxMemory())
	}
}
