package stitch

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/oct/stitch/affine"
	"strata/pkg/oct/surface"
	"strata/pkg/phantom"
	"strata/pkg/zarr/store"
	"strata/tests/octtest"
)

// checked stitches a mosaic without measuring, and returns what was warned of.
func checked(t *testing.T, in *ngff.Image, opt Options) (warned []string) {
	t.Helper()
	res := octtest.Small()
	res.Warn = func(s string) { warned = append(warned, s) }
	opt.Check = true
	if _, s, err := Run(octtest.Ctx, in, store.Memory(), oct.Layout{}, opt, res); err != nil || len(s.Pairs) != 0 {
		t.Fatalf("%v, %d pairs", err, len(s.Pairs))
	}
	return warned
}

var misfit = regexp.MustCompile(`tiles in the middle overlap by about ([\d.]+) % along y and ([\d.]+) % along x and do not fit where --overlap 0\.\d+ puts them: add --estimate$`)

// Tiles that do not fit where the overlap and the matrix put them are told, with the overlap that would; others are
// not.
func TestCheckOverlap(t *testing.T) {
	stitchAccuracy(t)
	for _, c := range []struct {
		name   string
		truth  float64
		tiles  [2]int
		matrix affine.Matrix // of the tiles
		opt    Options
		y, x   float64 // overlaps to be told in per cent; 0: none
	}{
		{"right", 0.2, [2]int{4, 4}, affine.Identity, Options{Overlap: 0.2}, 0, 0},
		{"a pixel off", 0.2, [2]int{4, 4}, affine.Identity, Options{Overlap: 0.21}, 0, 0},
		{"more than stated", 0.3, [2]int{4, 4}, affine.Identity, Options{Overlap: 0.2}, 30, 30},
		{"less than stated", 0.2, [2]int{4, 4}, affine.Identity, Options{Overlap: 0.3}, 20, 20},
		{"many tiles", 0.3, [2]int{6, 7}, affine.Identity, Options{Overlap: 0.2}, 30, 30},
		{"other along x", 0.2, [2]int{6, 6}, affine.Matrix{{1, 0}, {0, 0.875}}, Options{Overlap: 0.2}, 20, 30},
		{"the matrix says so", 0.2, [2]int{6, 6}, affine.Matrix{{1, 0}, {0, 0.875}}, Options{Overlap: 0.2, Transform: affine.Matrix{{1, 0}, {0, 0.875}}}, 0, 0},
		{"a wrong matrix", 0.2, [2]int{6, 6}, affine.Identity, Options{Overlap: 0.2, Transform: affine.Matrix{{1.1, 0}, {0, 1}}}, 20, 20},
	} {
		cfg := phantom.Default()
		cfg.Tile, cfg.Tiles, cfg.Overlap, cfg.Matrix, cfg.FillTissue = [3]int{24, 128, 128}, c.tiles, c.truth, c.matrix, true
		_, in := stitchSpecimen(t, cfg, phantom.Storage{})
		warned := checked(t, in, c.opt)
		warned = slices.DeleteFunc(warned, func(s string) bool { return !strings.Contains(s, "in the middle") })
		if c.y == 0 {
			if len(warned) > 0 {
				t.Errorf("%s: %q", c.name, warned)
			}
			continue
		}
		if len(warned) != 1 || misfit.FindStringSubmatch(warned[0]) == nil {
			t.Errorf("%s: %q", c.name, warned)
			continue
		}
		for k, want := range []float64{c.y, c.x} {
			if got, err := strconv.ParseFloat(misfit.FindStringSubmatch(warned[0])[1+k], 64); err != nil || math.Abs(got-want) > 1.5 { // tiles err by half a pixel, overviews show two
				t.Errorf("%s: %s", c.name, warned[0])
			}
		}
	}
}

// What shows nothing is not told to lie wrong, whatever the overlap.
func TestCheckOverlapOfNothing(t *testing.T) {
	for name, value := range map[string]func(i int) float32{
		"empty": func(int) float32 { return 0 },
		"noise": func() func(int) float32 {
			rng := rand.New(rand.NewPCG(1, 2))
			return func(int) float32 { return float32(100 + 10*rng.NormFloat64()) }
		}(),
		"the same in all": func(i int) float32 { return float32(50 + i%64 + (i/256)%64) },
		"tiny tiles":      func(i int) float32 { return float32(i % 251) },
	} {
		side := 64
		if name == "tiny tiles" {
			side = 8
		}
		in, _ := octtest.Made(t, []int{8, 4 * side, 4 * side}, []int{8, side, side}, nil, nil, value)
		for _, overlap := range []float64{0.1, 0.2, 0.5} {
			if warned := checked(t, in, Options{Overlap: overlap}); len(warned) > 0 {
				t.Errorf("%s, overlap %g: %q", name, overlap, warned)
			}
		}
	}
	in, _ := octtest.Made(t, []int{8, 64, 64}, []int{8, 64, 64}, nil, nil, func(i int) float32 { return float32(i % 13) })
	if warned := checked(t, in, Options{Overlap: 0.2}); len(warned) > 0 {
		t.Errorf("one tile: %q", warned)
	}
}

// A slice of noise is named, whether tiles are measured or not; tissue, agarose and what nobody asked about are not.
func TestNoiseIsNamed(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	noise, _ := octtest.Made(t, []int{40, 256, 256}, []int{40, 64, 64}, nil, nil, func(int) float32 { return float32(100 * rng.ExpFloat64()) })
	specimen := func(change func(c *phantom.Config)) *ngff.Image {
		cfg := phantom.Default()
		cfg.Tile, cfg.Tiles = [3]int{40, 96, 96}, [2]int{3, 3}
		change(&cfg)
		_, in := stitchSpecimen(t, cfg, phantom.Storage{})
		return in
	}
	for _, c := range []struct {
		name string
		in   *ngff.Image
		opt  Options
		want int
	}{
		{"noise", noise, Options{Overlap: 0.2, Check: true}, 1},
		{"noise, estimated", noise, Options{Overlap: 0.2, Check: true, Estimate: true, MaxRefinement: math.Inf(1)}, 1},
		{"noise, refined", noise, Options{Overlap: 0.2, Check: true, MaxRefinement: 4}, 1},
		{"noise, unasked", noise, Options{Overlap: 0.2}, 0},
		{"tissue", specimen(func(*phantom.Config) {}), Options{Overlap: 0.2, Check: true}, 0},
		{"tissue below its surface, another overlap", specimen(func(c *phantom.Config) { c.Water, c.Relief, c.Bowl, c.FillTissue = 0, 0, 0, true }), Options{Overlap: 0.4, Check: true}, 0},
		{"smooth tissue, no illumination", specimen(func(c *phantom.Config) { c.Texture, c.Vignette, c.FillTissue = 0, 0, true }), Options{Overlap: 0.2, Check: true}, 0},
	} {
		named := 0
		res := octtest.Small()
		res.Warn = func(s string) {
			if strings.Contains(s, surface.BlankText) {
				named++
			}
		}
		if _, _, err := Run(octtest.Ctx, c.in, store.Memory(), oct.Layout{}, c.opt, res); err != nil || named != c.want {
			t.Errorf("%s: %v, named %d times, want %d", c.name, err, named, c.want)
		}
	}
}

// The check costs few tiles, does not count as progress and never makes a run fail that would not; it is off where
// tiles are measured anyway.
func TestCheckOverlapIsNoBurden(t *testing.T) {
	cfg := phantom.Default()
	cfg.Tile, cfg.Tiles, cfg.Overlap, cfg.FillTissue = [3]int{24, 128, 128}, [2]int{4, 4}, 0.3, true
	_, in := stitchSpecimen(t, cfg, phantom.Storage{})
	run := func(ctx context.Context, opt Options, mem int64) (done int64, warned int, err error) {
		var n atomic.Int64
		res := oct.Resources{Workers: 2, Mem: mem, Progress: func(k int64) { n.Add(k) }, Warn: func(s string) {
			if strings.Contains(s, "in the middle") {
				warned++
			}
		}}
		_, _, err = Run(ctx, in, store.Memory(), oct.Layout{}, opt, res)
		return n.Load(), warned, err
	}
	whole := int64(4 * 24 * 512 * 512)
	for _, c := range []struct {
		name   string
		opt    Options
		mem    int64
		done   int64
		warned int
	}{
		{"asked for", Options{Overlap: 0.2, Check: true}, 64 << 20, whole, 1},
		{"not asked for", Options{Overlap: 0.2}, 64 << 20, whole, 0},
		{"measured anyway", Options{Overlap: 0.2, Check: true, Estimate: true}, 64 << 20, 2 * whole, 0},
		{"too little memory to compare", Options{Overlap: 0.2, Check: true}, 4 << 20, whole, 0},
	} {
		if done, warned, err := run(octtest.Ctx, c.opt, c.mem); err != nil || done != c.done || warned != c.warned {
			t.Errorf("%s: %d bytes of %d, %d warnings, %v", c.name, done, c.done, warned, err)
		}
	}
	ctx, cancel := context.WithCancel(octtest.Ctx)
	cancel()
	if _, _, err := run(ctx, Options{Overlap: 0.2, Check: true}, 64<<20); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// The tiles that are checked are in the middle of the grid, and few.
func TestMiddle(t *testing.T) {
	for _, c := range []struct {
		ny, nx, pairs, least, most int // of the tiles' numbers
	}{{1, 1, 0, 0, 0}, {1, 6, 1, 2, 3}, {2, 2, 4, 0, 3}, {3, 3, 4, 0, 4}, {4, 4, 4, 5, 10}, {6, 6, 12, 7, 21}, {9, 9, 12, 30, 50}} {
		g := &grid{ny: c.ny, nx: c.nx}
		all := g.middle()
		if len(all) != c.pairs {
			t.Errorf("%d × %d: %d pairs, want %d", c.ny, c.nx, len(all), c.pairs)
		}
		least, most := c.ny*c.nx, 0
		for _, p := range all {
			least, most = min(least, p.a), max(most, p.b)
		}
		if len(all) > 0 && (least != c.least || most != c.most) {
			t.Errorf("%d × %d: tiles %d to %d, want %d to %d", c.ny, c.nx, least, most, c.least, c.most)
		}
	}
}
