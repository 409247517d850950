package tile

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"strata/pkg/dtype"
)

// numbers is an image whose pixels are a function of their position. Unused
// parts of edge tiles hold junk, which must never show.
type numbers struct {
	Image
	pixel func(pos []int) int32
	loads atomic.Int64
	fault func(index []int) error
}

const junk = -77

func newNumbers(size, tile []int, pixel func(pos []int) int32) *numbers {
	names := make([]string, len(size))
	for a := range names {
		names[a] = fmt.Sprint("axis", a)
	}
	return &numbers{Image: Image{size, tile, names, dtype.Int32}, pixel: pixel}
}

func (s *numbers) LoadTile(ctx context.Context, level int, index []int, dst []byte) error {
	s.loads.Add(1)
	if s.fault != nil {
		if err := s.fault(index); err != nil {
			return err
		}
	}
	out := dtype.Slice[int32](dst)
	n := len(index)
	pos, zero := make([]int, n), make([]int, n)
	at := make([]int, n)
	for i := range out {
		inside := true
		for a := range n {
			at[a] = index[a]*s.Tile[a] + pos[a]
			inside = inside && at[a] < s.Size[a]
		}
		if out[i] = junk; inside {
			out[i] = s.pixel(at)
		}
		next(pos, zero, s.Tile)
	}
	return nil
}

// grid5 is the pixel of the specification's examples.
func grid5(pos []int) int32 { return int32(10*pos[0] + pos[1] + 1) }

type viewLine struct {
	Case     string `json:"case"`
	Index    []int  `json:"index"`
	Front    []int  `json:"front"`
	Back     []int  `json:"back"`
	MinTile  []int  `json:"min_tile"`
	MaxTile  []int  `json:"max_tile"`
	Tiles    int    `json:"tiles_to_load"`
	ViewDims []int  `json:"view_dims"`
	TileReal []int  `json:"tile_real"`
	ViewReal []int  `json:"view_real"`
	View     []int32
}

// reverse is the caller's own traversal of the examples.
func reverse(grid []int) [][]int {
	out := Naive(grid)
	slices.Reverse(out)
	return out
}

// nearest is the caller's own border of the examples: the nearest pixel of the
// image, from the pixels in the view.
type nearest struct{}

func (nearest) Copies(Geometry) []Copy { return nil }

func (nearest) Fill(v *View[int32]) {
	data, strides := v.Data(), v.Strides()
	for y := range v.ViewShape[0] {
		for x := range v.ViewShape[1] {
			sy := min(max(y, v.Front[0]), v.Front[0]+v.ViewReal[0]-1)
			sx := min(max(x, v.Front[1]), v.Front[1]+v.ViewReal[1]-1)
			data[y*strides[0]+x] = data[sy*strides[0]+sx]
		}
	}
}

func TestRecordedViews(t *testing.T) {
	minus := BorderConstant[int32](-1)
	square := newNumbers([]int{5, 5}, []int{2, 2}, grid5)
	cases := map[string]struct {
		src     *numbers
		logical []int
		opts    []Option
	}{
		"default_r0":                  {src: square},
		"default_r1":                  {src: square, opts: []Option{Radius(1)}},
		"default_r2":                  {src: square, opts: []Option{Radius(2)}},
		"default_r3":                  {src: square, opts: []Option{Radius(3)}},
		"constant-1_r1":               {src: square, opts: []Option{Radius(1), minus}},
		"constant-1_radii_0_2":        {src: square, opts: []Option{Radii(0, 2), minus}},
		"custom_replicate_r1":         {src: square, opts: []Option{Radius(1), BorderCustom[int32](nearest{})}},
		"custom_traversal_reverse_r1": {src: square, opts: []Option{Radius(1), Traverse(reverse)}},
		"release_count_2_r1":          {src: square, opts: []Option{Radius(1), ReleaseCount(2)}},
		"adaptive_3x4_r1":             {src: square, logical: []int{3, 4}, opts: []Option{Radius(1), minus}},
		"const-1_3x7_tile3x2_r1":      {src: newNumbers([]int{3, 7}, []int{3, 2}, grid5), opts: []Option{Radius(1), minus}},
		"filling_DEFAULT_r1_stale":    {src: square, opts: []Option{Radius(1), Border(Undefined)}},
	}
	lines := map[string][]viewLine{}
	var order []string
	f, err := os.Open("testdata/views.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for sc := bufio.NewScanner(f); sc.Scan(); {
		var l viewLine
		if err := json.Unmarshal(sc.Bytes(), &l); err != nil {
			t.Fatal(err)
		}
		if len(lines[l.Case]) == 0 {
			order = append(order, l.Case)
		}
		lines[l.Case] = append(lines[l.Case], l)
	}
	if len(order) != len(cases) {
		t.Fatalf("%d cases in the file, %d known", len(order), len(cases))
	}
	for _, name := range order {
		for _, how := range []string{"streamed", "threads", "inline"} {
			t.Run(name+"/"+how, func(t *testing.T) {
				c := cases[name]
				opts := append(slices.Clone(c.opts), Ordered())
				switch how {
				case "threads":
					opts = append(opts, LoaderThreads(3), ViewsAvailable(4))
				case "inline":
					opts = append(opts, Inline())
				}
				var l *Loader[int32]
				var err error
				if c.logical != nil {
					l, err = NewAdaptive[int32](c.src, [][]int{c.logical}, opts...)
				} else {
					l, err = New[int32](c.src, opts...)
				}
				if err != nil {
					t.Fatal(err)
				}
				defer l.Close()
				byIndex := map[string]viewLine{}
				for _, want := range lines[name] {
					byIndex[fmt.Sprint(want.Index)] = want
				}
				var indices [][]int
				for v, err := range l.AllViews(t.Context(), 0) {
					if err != nil {
						t.Fatal(err)
					}
					indices = append(indices, slices.Clone(v.Index))
					want, ok := byIndex[fmt.Sprint(v.Index)]
					if !ok {
						t.Fatalf("view %v is not in the file", v.Index)
					}
					got := viewLine{name, v.Index, v.Front, v.Back, v.MinTile, v.MaxTile, v.Tiles(),
						v.ViewShape, v.TileReal, v.ViewReal, v.Data()}
					if name == "filling_DEFAULT_r1_stale" { // its border is undefined
						got.View, want.View = nil, nil
					}
					if d := cmp.Diff(want, got); d != "" {
						t.Errorf("view %v (-want +got):\n%s", v.Index, d)
					}
					for range l.cfg.release[0] {
						if err := v.Release(); err != nil {
							t.Error(err)
						}
					}
				}
				wantOrder := Naive(l.Grid(0))
				if name == "custom_traversal_reverse_r1" {
					wantOrder = reverse(l.Grid(0))
				}
				if d := cmp.Diff(wantOrder, indices); d != "" {
					t.Errorf("order (-want +got):\n%s", d)
				}
				if len(indices) != len(lines[name]) {
					t.Errorf("%d views, the file has %d", len(indices), len(lines[name]))
				}
			})
		}
	}
}
