package mosaic

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"path"
	"strings"
	"testing"

	"strata/pkg/mem"
	"strata/pkg/meter"
	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/oct/aip"
	"strata/pkg/oct/compute"
	"strata/pkg/oct/resample"
	"strata/pkg/rawtiles"
	"strata/pkg/zarr/store"
	"strata/tests/octtest"
)

// objects returns what a store holds, by key.
func objects(t *testing.T, st *store.MemoryStore) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	var below func(prefix string)
	below = func(prefix string) {
		entries, err := st.List(octtest.Ctx, prefix)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			key := path.Join(prefix, e.Name)
			if e.Dir {
				below(key)
				continue
			}
			b, err := st.Get(octtest.Ctx, key, nil, 1<<30)
			if err != nil {
				t.Fatal(err)
			}
			all[key] = b
		}
	}
	below("")
	return all
}

func sameObjects(t *testing.T, what string, got, want *store.MemoryStore) {
	t.Helper()
	a, b := objects(t, got), objects(t, want)
	if len(a) != len(b) || len(b) < 3 {
		t.Errorf("%s: %d objects, want %d", what, len(a), len(b))
	}
	for key := range b {
		if !bytes.Equal(a[key], b[key]) {
			t.Errorf("%s: %s differs", what, key)
		}
	}
}

// products of a mosaic, and what they are written to.
type products struct {
	projection, resampled *store.MemoryStore
	png                   bytes.Buffer
}

func (p *products) list(layout [2]oct.Layout, to resample.Options) []Product {
	p.projection, p.resampled = store.Memory(), store.Memory()
	return []Product{
		{p.projection, func(ctx context.Context, in *ngff.Image, out store.Writer, res oct.Resources) (*compute.Feed, error) {
			return aip.Feed(ctx, in, out, layout[0], &aip.Picture{To: &p.png, ScaleBar: true}, res)
		}},
		{p.resampled, func(ctx context.Context, in *ngff.Image, out store.Writer, res oct.Resources) (*compute.Feed, error) {
			return resample.Feed(ctx, in, out, to, layout[1], res)
		}},
	}
}

// random returns tiles of which one is missing, with a NaN in each; the mirror's way back lies 7 A-lines before their
// ends.
func random(t *testing.T, depth int) rawtiles.Slice {
	t.Helper()
	r := &raw{nx: 60, ny: 40, extra: 12, repeat: 1, depth: depth, places: [][2]int{{4, 2}, {4, 3}, {5, 3}, {6, 2}, {6, 3}}}
	s := r.make(t)
	lines := r.nx + r.extra
	for k, p := range r.places {
		v := r.voxels[p]
		for i := range v {
			if (i/depth%lines+7)%lines >= r.nx {
				v[i] /= 9
			}
		}
		v[(k*lines+9)*depth+k] = float32(math.NaN())
		r.tile(t, s.Tiles[k].Path, v, "")
	}
	return s
}

// leaves returns the bytes of buffers that each call of run leaves: the least of a few calls, since codecs keep what a
// first one takes.
func leaves(run func()) int64 {
	least := int64(math.MaxInt64)
	for range 4 {
		held := mem.InUse()
		run()
		least = min(least, mem.InUse()-held)
	}
	return least
}

// What is made of tiles in hand is byte for byte what aip and resample make of the written mosaic, and so is the
// mosaic: with a missing tile, a galvo shift, NaN, chunks smaller than tiles, shards, pyramids, both formats, and
// memory for a part of a tile only.
func TestProducts(t *testing.T) {
	to := resample.Options{Resolution: [3]float64{9, 5, 7}}
	whole, parts, fewer := oct.Resources{Workers: 2, Mem: 64 << 20}, oct.Resources{Workers: 3, Mem: 9 << 20}, oct.Resources{Workers: 1, Mem: 6 << 20}
	none := [2]oct.Layout{}
	small, large := random(t, 25), random(t, 300)
	shifted := false
	for name, c := range map[string]struct {
		how    Options
		layout oct.Layout
		others [2]oct.Layout
		to     resample.Options
		res    oct.Resources
	}{
		"whole tiles":     {Options{Galvo: true, GalvoThreshold: 0.6}, oct.Layout{}, [2]oct.Layout{{Levels: 2}, {Levels: 2}}, to, whole},
		"parts of tiles":  {Options{Galvo: true, GalvoThreshold: 0.6}, oct.Layout{Chunks: []int{3, 60, 40}, Levels: 1}, [2]oct.Layout{{Levels: 5}, {}}, to, parts},
		"legacy, zstd":    {Options{Legacy: true}, oct.Layout{Format: 2, Codec: "zstd:3"}, [2]oct.Layout{{Format: 2, Codec: "raw"}, {Format: 2, Codec: "gzip:1", Levels: 1}}, to, whole},
		"resampled twice": {Options{Resolution: 4}, oct.Layout{}, [2]oct.Layout{{Codec: "zstd:1", Levels: 1}, {Levels: 1}}, resample.Options{Resolution: [3]float64{11, 11, 11}}, whole},
		"small chunks":    {Options{}, oct.Layout{Chunks: []int{5, 20, 10}}, [2]oct.Layout{{Levels: 1}, {Levels: 1}}, to, whole},
		"parts of small":  {Options{Camera: true}, oct.Layout{Chunks: []int{5, 20, 8}, Codec: "raw"}, none, to, fewer},
		"corner, shards": {Options{Resolution: 5, Corner: true, Sharding: 2}, oct.Layout{Levels: 1}, [2]oct.Layout{{}, {Levels: 1}},
			resample.Options{Resolution: [3]float64{10, 10, 12}, Corner: true}, whole},
	} {
		t.Run(name, func(t *testing.T) {
			s := small
			if c.res.Mem < whole.Mem {
				s = large
			}
			m, err := Open(octtest.Ctx, s, c.how)
			if err != nil {
				t.Fatal(err)
			}
			if name == "corner, shards" { // by the shape that tiles have
				c.others[0].Shard = []int{2 * m.Tile[1], m.Tile[2]}
				c.others[1].Shard = nil
			}
			alone := store.Memory()
			written, err := m.Write(octtest.Ctx, alone, c.layout, c.res)
			if err != nil {
				t.Fatal(err)
			}
			shifted = shifted || written.Shift != 0
			want := products{projection: store.Memory(), resampled: store.Memory()}
			if _, err := aip.Run(octtest.Ctx, written.Image, want.projection, c.others[0], &aip.Picture{To: &want.png, ScaleBar: true}, octtest.Small()); err != nil {
				t.Fatal(err)
			}
			if _, err := resample.Run(octtest.Ctx, written.Image, want.resampled, c.to, c.others[1], octtest.Small()); err != nil {
				t.Fatal(err)
			}
			for _, keep := range []bool{true, false} {
				var got products
				var out store.Writer
				kept := store.Memory()
				if keep {
					out = kept
				}
				held := mem.InUse()
				var decided []string
				count := &meter.Meter{}
				res := c.res
				res.Meter = count
				res.Debug = func(m string) { decided = append(decided, m) }
				result, err := m.Write(octtest.Ctx, out, c.layout, res, got.list(c.others, c.to)...)
				if err != nil {
					t.Fatal(err)
				}
				if all := strings.Contains(strings.Join(decided, ";"), fmt.Sprintf("%d of %d planes", m.Tile[0], m.Tile[0])); keep && all == (c.res.Mem < whole.Mem) {
					t.Errorf("%q", decided)
				}
				if mem.InUse() != held { // codecs keep some, which a leak would add to each time
					var again products
					if n := leaves(func() { _, err = m.Write(octtest.Ctx, store.Memory(), c.layout, c.res, again.list(c.others, c.to)...) }); err != nil || n > 0 {
						t.Errorf("%v: %d bytes of buffers are left", err, n)
					}
				}
				if keep {
					sameObjects(t, "mosaic", kept, alone)
				} else if result.Image != nil {
					t.Error("a mosaic that is not kept")
				}
				if len(result.Products) != 2 || count.NonFinite() == 0 {
					t.Errorf("%d products, %d voxels that are no number", len(result.Products), count.NonFinite())
				}
				sameObjects(t, "projection", got.projection, want.projection)
				sameObjects(t, "resampled", got.resampled, want.resampled)
				if !bytes.Equal(got.png.Bytes(), want.png.Bytes()) || want.png.Len() == 0 {
					t.Error("the picture differs")
				}
			}
		})
	}
	if !shifted {
		t.Error("no tile was rolled")
	}
}

// A run that fails in the midst of a tile leaves no buffers, and says what is wrong with a product before it reads: by
// the names of its flags.
func TestProductFails(t *testing.T) {
	s := random(t, 300)
	m, err := Open(octtest.Ctx, s, Options{})
	if err != nil {
		t.Fatal(err)
	}
	to := resample.Options{Resolution: [3]float64{9, 5, 7}}
	for want, c := range map[string]struct {
		layout [2]oct.Layout
		to     resample.Options
		res    oct.Resources
	}{
		"--aip_chunks [7 7] does not divide the output's tile [60 40]":         {[2]oct.Layout{{Chunks: []int{7, 7}, Prefix: "aip_"}}, to, octtest.Small()},
		"--resampled_shard has 1 axes, the output has 3":                       {[2]oct.Layout{{}, {Shard: []int{7}, Prefix: "resampled_"}}, to, octtest.Small()},
		"mosaic_grid_3d_z07: --resampled_resolution [0.01 0.01 0.01] µm makes": {[2]oct.Layout{{}, {Prefix: "resampled_"}}, resample.Options{Resolution: [3]float64{0.01, 0.01, 0.01}}, octtest.Small()},
		"300 planes at a time, needs 11 MiB of buffers, --mem grants 4 MiB":    {[2]oct.Layout{}, to, oct.Resources{Workers: 1, Mem: 4 << 20}},
	} {
		var p products
		list := p.list(c.layout, c.to)
		err := m.Enough(octtest.Ctx, true, oct.Layout{}, c.res, list...)
		if err == nil || !strings.Contains(err.Error(), want) || errors.Is(err, oct.ErrLayout) == strings.Contains(want, "buffers") {
			t.Errorf("%v, want %s", err, want)
		}
		if n := len(objects(t, p.projection)) + len(objects(t, p.resampled)); n != 0 {
			t.Errorf("%s: a trial stored %d objects", want, n)
		}
	}
	if n := leaves(func() {
		ctx, cancel := context.WithCancel(octtest.Ctx)
		defer cancel()
		var p products
		res := oct.Resources{Workers: 1, Mem: 9 << 20, Progress: func(int64) { cancel() }} // after a part of the first tile
		if _, err := m.Write(ctx, store.Memory(), oct.Layout{Chunks: []int{3, 60, 40}, Levels: 1}, res, p.list([2]oct.Layout{}, to)...); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}); n > 0 {
		t.Errorf("%d bytes of buffers are left", n)
	}
}

// Frames are read once where memory holds one whole tile, though it has more workers for parts of tiles.
func TestProductsReadOnce(t *testing.T) {
	m, err := Open(octtest.Ctx, random(t, 300), Options{})
	if err != nil {
		t.Fatal(err)
	}
	var decided []string
	res := oct.Resources{Workers: 3, Mem: 14 << 20, Meter: &meter.Meter{}, Debug: func(m string) { decided = append(decided, m) }}
	var p products
	if _, err := m.Write(octtest.Ctx, nil, oct.Layout{Chunks: []int{3, 60, 40}}, res, p.list([2]oct.Layout{}, resample.Options{Resolution: [3]float64{9, 5, 7}})...); err != nil {
		t.Fatal(err)
	}
	if made := int64(len(objects(t, p.projection))); made < 3 {
		t.Errorf("%d objects", made)
	}
	// besides the frames only the small projection is read, for its picture
	if n := res.Meter.BytesRead(); n < m.Bytes() || n > m.Bytes()+m.Bytes()/10 || len(decided) == 0 || !strings.Contains(decided[0], "300 of 300 planes") || strings.Contains(decided[0], "3 at a time") {
		t.Errorf("%d bytes read of %d; %q", n, m.Bytes(), decided)
	}
}
