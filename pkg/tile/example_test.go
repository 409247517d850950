package tile_test

import (
	"context"
	"fmt"

	"strata/pkg/dtype"
	"strata/pkg/tile"
)

// Ramp is an image that no file holds: pixel (y, x) = 10·y + x. A source of
// one level embeds tile.Image and loads tiles.
type Ramp struct{ tile.Image }

func (r Ramp) LoadTile(_ context.Context, _ int, index []int, dst []byte) error {
	h, w := r.Tile[0], r.Tile[1]
	out := dtype.Slice[uint8](dst)
	for y := range h {
		for x := range w {
			out[y*w+x] = uint8(10*(index[0]*h+y) + index[1]*w + x)
		}
	}
	return nil
}

func newRamp() Ramp {
	return Ramp{tile.Image{Size: []int{4, 6}, Tile: []int{2, 3}, Names: []string{"y", "x"}, Type: dtype.Uint8}}
}

func Example() {
	l, err := tile.New[uint8](newRamp(), tile.Radius(1), tile.Border(tile.Replicate), tile.Ordered())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer l.Close()
	for v, err := range l.AllViews(context.Background(), 0) {
		if err != nil {
			fmt.Println(err)
			return
		}
		most := uint8(0)
		for _, p := range v.Data() {
			most = max(most, p)
		}
		fmt.Println(v.Index, v.ViewShape, "brightest:", most)
		v.Release()
	}
	// Output:
	// [0 0] [4 5] brightest: 23
	// [0 1] [4 5] brightest: 25
	// [1 0] [4 5] brightest: 33
	// [1 1] [4 5] brightest: 35
}

// One view at a time, in the goroutine that asks for it, in the memory of the
// one before. The pixels are converted to what the loader is made for.
func ExampleLoader_Reload() {
	ctx := context.Background()
	l, err := tile.New[float32](newRamp())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer l.Close()
	v, err := l.View(ctx, 0, []int{0, 0})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(v.Data())
	if err := l.Reload(ctx, v, []int{1, 1}); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(v.Data())
	fmt.Println(v.Release(), v.Release())
	// Output:
	// [0 1 2 10 11 12]
	// [23 24 25 33 34 35]
	// <nil> view [1 1] of level 0: view released more often than its release count
}

// Views of the caller's choice, by tiles of a size that the file knows nothing of.
func ExampleNewAdaptive() {
	l, err := tile.NewAdaptive[uint8](newRamp(), [][]int{{3, 4}}, tile.Radii(0, 1), tile.BorderConstant[uint8](99))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer l.Close()
	for v, err := range l.Views(context.Background(), []tile.Request{{Level: 0, Index: []int{1, 0}}}) {
		if err != nil {
			fmt.Println(err)
			return
		}
		for y := range v.ViewShape[0] {
			fmt.Println(v.Data()[y*6 : y*6+6])
		}
		v.Release()
	}
	// Output:
	// [99 30 31 32 33 34]
	// [99 99 99 99 99 99]
	// [99 99 99 99 99 99]
}
