package stitch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"strata/pkg/dtype"
	"strata/pkg/filter"
	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/oct/stitch/affine"
	"strata/pkg/oct/stitch/consensus"
	"strata/pkg/oct/stitch/overview"
	"strata/pkg/phantom"
	"strata/pkg/registration"
	"strata/pkg/tilegrid"
	"strata/pkg/zarr"
	"strata/pkg/zarr/store"
	"strata/tests/octtest"
)

// scanned is a slide scan whose truth is known: a plane of a phantom's tiles, which overlap irregularly.
type scanned struct {
	phantom *phantom.Specimen
	voxel   float64      // µm
	tiles   [][2]int     // of the phantom
	truth   [][2]float64 // px
	scan    tilegrid.Scan
}

// noiseChannel, tissueChannel and negativeChannel are what the channels of a scan show. Nothing is found by the first.
const noiseChannel, tissueChannel, negativeChannel = 0, 1, 2

// newScan makes a scan of ny × nx tiles, without those that are left out, whose recorded positions are wrong by err px
// (standard deviation along an axis).
func newScan(t *testing.T, ny, nx, side int, err float64, without ...[2]int) *scanned {
	t.Helper()
	c := phantom.Default().Ideal()
	c.Tiles, c.Tile, c.Voxel, c.FillTissue, c.Jitter, c.Overlap = [2]int{ny, nx}, [3]int{3, side, side}, [3]float64{3.5, 2, 2}, true, 0.02*float64(side), 0.2
	c.Water, c.Gain, c.DType = 0, 20000, dtype.Uint16
	p, e := phantom.New(c)
	if e != nil {
		t.Fatal(e)
	}
	s := &scanned{phantom: p, voxel: 0.5}
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range ny {
		for j := range nx {
			if slices.Contains(without, [2]int{i, j}) {
				continue
			}
			at := p.TilePosition(0, i, j)
			s.tiles, s.truth = append(s.tiles, [2]int{i, j}), append(s.truth, at)
			var recorded [2]float64
			for d := range 2 {
				recorded[d] = (at[d] + 1000 + err*rng.NormFloat64()) * s.voxel
			}
			s.scan.Positions = append(s.scan.Positions, recorded)
		}
	}
	s.scan.Name, s.scan.Tile, s.scan.Voxel, s.scan.DType = "scan", [2]int{side, side}, [3]float64{1, s.voxel, s.voxel}, dtype.Uint16
	s.scan.Channels, s.scan.Read = 3, s.read
	return s
}

// read is a plane of a tile.
func (s *scanned) read(_ context.Context, tile, _, c, z int, dst []byte) error {
	side := s.scan.Tile[0]
	raw := make([]byte, 3*len(dst))
	if err := s.phantom.RenderTile(raw, 0, s.tiles[tile][0], s.tiles[tile][1]); err != nil {
		return err
	}
	copy(dst, raw[(2-z%2)*len(dst):])
	rng := rand.New(rand.NewPCG(uint64(tile), 9))
	for i, v := range dtype.Slice[uint16](dst)[:side*side] {
		switch c {
		case noiseChannel:
			dtype.Slice[uint16](dst)[i] = uint16(1 + rng.IntN(60000))
		case negativeChannel:
			dtype.Slice[uint16](dst)[i] = 65535 - v
		}
	}
	return nil
}

// write makes the mosaic of a scan.
func (s *scanned) write(t *testing.T, scan tilegrid.Scan) (*ngff.Image, *registration.TilePositions) {
	t.Helper()
	st := store.Memory()
	p, err := scan.Write(octtest.Ctx, st, tilegrid.Storage{Format: 3, Workers: 2, Mem: 64 << 20})
	if err != nil {
		t.Fatal(err)
	}
	return octtest.Open(t, st), p
}

// errors are how far tiles lie from their true places, up to a translation of all: root mean square along an axis,
// and the largest along either.
func (s *scanned) errors(t *testing.T, st *Result, p *registration.TilePositions) (rms, most float64) {
	t.Helper()
	at := map[[2]int][2]float64{} // truth by place of the grid
	for k, r := range p.Tiles {
		at[r.Tile] = s.truth[k]
	}
	if len(st.Tiles) != len(s.truth) {
		t.Fatalf("%d tiles of %d", len(st.Tiles), len(s.truth))
	}
	for d := range 2 {
		mean := 0.0
		for _, tile := range st.Tiles {
			mean += (tile.Position[d] - at[tile.Tile][d]) / float64(len(st.Tiles))
		}
		for _, tile := range st.Tiles {
			e := tile.Position[d] - at[tile.Tile][d] - mean
			rms += e * e
			most = max(most, math.Abs(e))
		}
	}
	return math.Sqrt(rms / float64(2*len(st.Tiles))), most
}

// seamError is the mean difference at the seams, as a part of what is there.
func seamError(st *Result) float64 {
	sum, n := 0.0, 0.0
	for _, s := range st.Seams {
		sum, n = sum+s.Relative*float64(s.Voxels), n+float64(s.Voxels)
	}
	return sum / n
}

// The truth of a scan whose stage errs comes back, by the channel that shows something.
func TestRecordedPositionsAreCorrected(t *testing.T) {
	for _, c := range []struct {
		name      string
		err       float64 // px
		tolerance float64 // µm
		without   [][2]int
	}{
		{"a whole grid", 3, 8, nil},
		{"tiles are missing", 3, 8, [][2]int{{0, 0}, {0, 1}, {2, 2}}},
		{"larger errors", 6, 20, nil},
		{"errors as large as the overlap", 9, 30, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newScan(t, 4, 5, 128, c.err, c.without...)
			in, p := s.write(t, s.scan)
			stitched := func(tolerance float64) *Result {
				res := octtest.Small()
				res.Warn = func(m string) {
					if !strings.Contains(m, "hang on one overlap that nothing checks") {
						t.Error(m)
					}
				}
				_, st, err := Run(octtest.Ctx, in, store.Memory(), oct.Layout{}, Options{Positions: p, Tolerance: tolerance, Channel: tissueChannel, Seams: true}, res)
				if err != nil {
					t.Fatal(err)
				}
				return st
			}
			recorded, found := stitched(0), stitched(c.tolerance)
			before, worst := s.errors(t, recorded, p)
			after, most := s.errors(t, found, p)
			t.Logf("position error %.2f px rms (%.2f at most) as recorded, %.3f (%.3f) as found; seams %.2f %% and %.2f %%", before, worst, after, most, 100*seamError(recorded), 100*seamError(found))
			if before < 0.7*c.err || after > 0.1 || most > 0.5 {
				t.Errorf("position error %.2f px as recorded, %.3f px rms and %.3f px at most as found", before, after, most)
			}
			if a, b := seamError(found), seamError(recorded); a > 0.3*b {
				t.Errorf("seams differ by %.4f, as recorded by %.4f", a, b)
			}
		})
	}
}

// Every channel, plane and time goes where one channel was found to lie, and is what it is alone.
func TestChannelsAreStitchedAlike(t *testing.T) {
	s := newScan(t, 3, 3, 96, 2, [2]int{1, 2})
	for _, shape := range []struct{ times, planes, together int }{{0, 0, 1}, {0, 2, 1}, {2, 2, 3}} {
		scan := s.scan
		scan.Times, scan.Planes, scan.Together = shape.times, shape.planes, shape.together
		scan.Omero = &ngff.Omero{Channels: []ngff.Channel{{Label: "noise"}, {Label: "tissue"}, {Label: "negative"}}}
		scan.Read = func(ctx context.Context, tile, time, c, z int, dst []byte) error {
			n := len(dst) / shape.together
			for k := range shape.together {
				if err := s.read(ctx, tile, time, c+k, z+time, dst[k*n:][:n]); err != nil {
					return err
				}
			}
			return nil
		}
		in, p := s.write(t, scan)
		opt := Options{Positions: p, Tolerance: 10, Channel: tissueChannel, Seams: true}
		chunks := []int{1, 40, 56}[btoi(shape.planes == 0):]
		out, st, err := Run(octtest.Ctx, in, store.Memory(), oct.Layout{Levels: 1, Chunks: chunks}, opt, octtest.Small())
		if err != nil {
			t.Fatal(err)
		}
		if err, _ := s.errors(t, st, p); err > 0.15 {
			t.Errorf("%+v: position error %.2f px", shape, err)
		}
		if len(out.Axes) != len(in.Axes) || out.Omero == nil || len(out.Omero.Channels) != 3 || out.Omero.Channels[1].Label != "tissue" || out.DType() != dtype.Uint16 {
			t.Errorf("%+v: axes %v, channels %+v, %v", shape, out.Axes, out.Omero, out.DType())
		}
		lead := 1 + btoi(shape.times > 0)
		for frame := range 3 * max(shape.times, 1) {
			at := []int{frame / 3, frame % 3}[2-lead:]
			alone := scan
			alone.Times, alone.Channels, alone.Together, alone.Omero = 0, 0, 0, nil
			alone.Read = func(ctx context.Context, tile, _, _, z int, dst []byte) error {
				return s.read(ctx, tile, frame/3, frame%3, z+frame/3, dst)
			}
			one, _ := s.write(t, alone)
			// by the positions that were found
			found := &registration.TilePositions{Pixels: true}
			for _, tile := range st.Tiles {
				found.Tiles = append(found.Tiles, registration.TilePosition{Tile: tile.Tile, Position: tile.Position})
			}
			want, _, err := Run(octtest.Ctx, one, store.Memory(), oct.Layout{Levels: 1}, Options{Positions: found}, octtest.Small())
			if err != nil {
				t.Fatal(err)
			}
			for k := range out.Levels {
				if got, want := frameOf(t, out.Levels[k].Array, at), stitchBytesOf(t, want.Levels[k].Array); !bytes.Equal(got, want) {
					t.Errorf("%+v: frame %v, level %d differs from the channel alone", shape, at, k)
				}
			}
		}
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// frameOf reads one frame of an array.
func frameOf(t *testing.T, a *zarr.Array, at []int) []byte {
	t.Helper()
	r := a.Bounds()
	n := a.DType().Size()
	for d := range r.Shape {
		if d < len(at) {
			r.Start[d], r.Shape[d] = at[d], 1
		}
		n *= r.Shape[d]
	}
	b := make([]byte, n)
	if err := a.Read(octtest.Ctx, r, b); err != nil {
		t.Fatal(err)
	}
	return b
}

// Several channels in one chunk are read, channel by channel.
func TestChannelsInOneChunk(t *testing.T) {
	var want []byte
	for _, chunk := range [][]int{{1, 20, 24}, {3, 20, 24}} {
		st := store.Memory()
		spec := ngff.ImageSpec{Format: 3, Shape: []int{3, 40, 72}, Chunks: chunk, DType: dtype.Uint8, Axes: append([]ngff.Axis{{Name: "c", Type: ngff.TypeChannel}}, ngff.SpaceAxes("yx", "micrometer")...), Scale: []float64{1, 1, 1}}
		w, err := ngff.Create(octtest.Ctx, st, "", spec)
		if err != nil {
			t.Fatal(err)
		}
		data := make([]byte, 3*40*72)
		for i := range data {
			data[i] = byte(i * 7919 % 251)
		}
		if err := w.WriteTile(octtest.Ctx, []int{0, 0, 0}, spec.Shape, data); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(octtest.Ctx); err != nil {
			t.Fatal(err)
		}
		out, _, err := Run(octtest.Ctx, octtest.Open(t, st), store.Memory(), oct.Layout{}, Options{Overlap: 0.25}, octtest.Small())
		if err != nil {
			t.Fatal(err)
		}
		got := stitchBytesOf(t, out.Levels[0].Array)
		if want == nil {
			want = got
		}
		if shape := out.Levels[0].Array.Shape(); !slices.Equal(shape, []int{3, 35, 60}) || !bytes.Equal(got, want) {
			t.Errorf("chunks %v: %v voxels that differ", chunk, shape)
		}
	}
}

// What is measured badly does not make positions worse than the record: pairs that contradict each other by pixels
// count less than their correlation says, and the record more.
func TestBadPairsLeaveTheRecord(t *testing.T) {
	const n, wrong, stage = 8, 5.0, 3.0
	g := &grid{ny: n, nx: n, tile: [2]int{100, 100}, shape: [2]int{100 * n, 100 * n}}
	rng := rand.New(rand.NewPCG(11, 5))
	expected := byAxis([2][2]float64{{90, 0}, {0, 90}})
	truth := make([][2]float64, n*n) // against the record
	for k := range truth {
		truth[k] = [2]float64{stage * rng.NormFloat64(), stage * rng.NormFloat64()}
	}
	recorded := 0.0
	for _, v := range truth {
		recorded += (v[0]*v[0] + v[1]*v[1]) / (2 * n * n)
	}
	recorded = math.Sqrt(recorded)
	rms := func(noise float64, how refinement) float64 {
		var all []measure
		for _, p := range g.pairs() {
			e := expected(p)
			m := measure{pair: p, precision: consensus.Diagonal(400)} // so it says
			for k := range 2 {
				m.d[k] = e[k] + truth[p.b][k] - truth[p.a][k] + noise*rng.NormFloat64()
			}
			all = append(all, m)
		}
		sum, mean := 0.0, [2]float64{}
		at := g.nominals(affine.Matrix{{0.9, 0}, {0, 0.9}}, 0)
		r := refine(at, all, how).Residuals(at)
		for k := range r {
			for d := range 2 {
				mean[d] += (r[k][d] - truth[k][d]) / (n * n)
			}
		}
		for k := range r {
			sum += math.Pow(r[k][0]-truth[k][0]-mean[0], 2) + math.Pow(r[k][1]-truth[k][1]-mean[1], 2)
		}
		return math.Sqrt(sum / (2 * n * n))
	}
	record := refinement{farthest: 40, most: 20, recorded: true}
	bad, alone := rms(wrong, record), rms(wrong, refinement{farthest: 40, most: 1e6})
	good := rms(0.05, record)
	for k := range truth { // a camera that is turned against the stage: neighbours are 6 px off, far tiles by many times that
		truth[k][0] += 6 * float64(k%n)
		truth[k][1] -= 6 * float64(k/n)
	}
	if turned := rms(0.05, record); turned > 0.15 {
		t.Errorf("error %.3f px with good pairs where the camera is turned", turned)
	}
	t.Logf("error %.2f px by the record, %.2f px with pairs that are %g px wrong (%.2f px by these alone), %.3f px with good pairs", recorded, bad, wrong, alone, good)
	if bad > 0.95*recorded || good > 0.07 {
		t.Errorf("error %.2f px with bad pairs, %.2f px by them alone, %.3f px with good ones", bad, alone, good)
	}
}

// A slide scan's rows of large tiles are compared in the memory that programs have by default.
func TestRowsOfLargeTiles(t *testing.T) {
	const ny, nx, side, step = 3, 40, 2048, 1843
	m := &oct.Mosaic{Shape: [3]int{1, ny * side, nx * side}, Chunk: [3]int{1, side, side}, DType: dtype.Uint16}
	for i := range ny * nx {
		m.Recorded = append(m.Recorded, [2]float64{float64(i / nx * step), float64(i % nx * step)})
	}
	m.Absent = make([]bool, ny*nx)
	for _, workers := range []int{1, 2, 32} {
		a, err := newRecordedAligner(m, affine.Identity, 62, oct.Resources{Workers: workers, Mem: 512 << 20})
		if err != nil {
			t.Errorf("%d workers: %v", workers, err)
			continue
		}
		if a.keep || a.workers < 1 || a.flying() > 128<<20 || len(a.pairs) != ny*(nx-1)+nx*(ny-1) {
			t.Errorf("%d workers: %d compare, %d tiles at a time, %d MiB, %d pairs", workers, a.workers, a.batch, a.flying()>>20, len(a.pairs))
		}
	}
	if _, err := newAligners([]*oct.Mosaic{m}, 0.1, oct.Resources{Workers: 1, Mem: 512 << 20}); err == nil {
		t.Error("so are whole tiles")
	}
}

// Positions do not depend on workers and memory; strips of tiles are held, not tiles.
func TestRecordedIsTheSameHoweverDone(t *testing.T) {
	s := newScan(t, 3, 4, 256, 2)
	in, p := s.write(t, s.scan)
	opt := Options{Positions: p, Tolerance: 6, Channel: tissueChannel}
	var first []TilePlan
	for _, res := range []oct.Resources{{Workers: 1, Mem: 256 << 20}, {Workers: 3, Mem: 64 << 20}, {Workers: 1, Mem: 12 << 20}} {
		_, st, err := Run(octtest.Ctx, in, store.Memory(), oct.Layout{Chunks: []int{64, 64}}, opt, res)
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = st.Tiles
		}
		if !slices.Equal(st.Tiles, first) {
			t.Errorf("%d workers in %d MiB: %+v, not %+v", res.Workers, res.Mem>>20, st.Tiles, first)
		}
	}
	// the whole tiles do not fit
	if _, _, err := Run(octtest.Ctx, in, store.Memory(), oct.Layout{Chunks: []int{64, 64}}, Options{Channel: tissueChannel, MaxRefinement: 4}, oct.Resources{Workers: 1, Mem: 12 << 20}); err == nil || !strings.Contains(err.Error(), "--mem grants 12 MiB") {
		t.Errorf("whole tiles in 12 MiB: %v", err)
	}
}

// Tiles that no pair measured follow those beside them, pairs beyond the tolerance have no say, and no tile moves
// further against its neighbours than they allow.
func TestSilentTilesKeepTheirRecord(t *testing.T) {
	at := (&grid{ny: 1, nx: 5, tile: [2]int{100, 100}}).nominals(affine.Identity, 0)
	sure := consensus.Diagonal(100)
	all := []measure{ // tiles in a row: 1 and 2 moved by 4 px, 3 shows nothing, 4 is said to be far away
		{pair: pair{0, 1, 1}, d: [2]float64{0, 104}, precision: sure},
		{pair: pair{1, 2, 1}, d: [2]float64{0, 100}, precision: sure},
		{pair: pair{2, 3, 1}, d: [2]float64{0, 100}, reason: "no tissue in common"},
		{pair: pair{3, 4, 1}, d: [2]float64{0, 130}, precision: sure},
		{pair: pair{0, 2, 1}, d: [2]float64{0, 104}, precision: sure},
	}
	r := refine(at, all, refinement{farthest: 11, most: 10, recorded: true}).Residuals(at)
	x := func(k int) float64 { return r[k][1] - r[0][1] + 2 }
	if math.Abs(x(1)-x(0)-4) > 0.05 || math.Abs(x(2)-x(1)) > 0.05 || !(0 < x(4) && x(4) < x(3) && x(3) < x(2)) {
		t.Errorf("tiles moved by %v", r)
	}
	if all[3].reason == "" {
		t.Error("a pair beyond the tolerance votes")
	}
}

// Rows that are shifted by half a tile against each other have two neighbours above each tile.
func TestPairsOfShiftedRows(t *testing.T) {
	g := &grid{ny: 2, nx: 4, tile: [2]int{100, 100}, shape: [2]int{200, 400}, absent: []bool{false, true, false, true, true, false, true, false},
		recorded: [][2]float64{{0, 0}, {}, {0, 80}, {}, {}, {80, 40}, {}, {80, 120}}}
	got := fmt.Sprint(g.overlappingPairs(affine.Identity))
	if want := "[{0 2 1} {0 5 0} {2 5 0} {2 7 0} {5 7 1}] <nil>"; got != want {
		t.Errorf("pairs %v, want %v", got, want)
	}
}

func TestBadRecords(t *testing.T) {
	in, _ := octtest.Made(t, []int{1, 40, 60}, []int{1, 20, 20}, nil, nil, func(i int) uint8 { return uint8(i) })
	at := func(i, j int, y, x float64) registration.TilePosition {
		return registration.TilePosition{Tile: [2]int{i, j}, Position: [2]float64{y, x}}
	}
	for _, c := range []struct {
		p    registration.TilePositions
		want string
	}{
		{registration.TilePositions{Name: "p.json", Grid: [2]int{2, 2}, Tiles: []registration.TilePosition{at(0, 0, 0, 0)}}, "p.json: is of 2 × 2 tiles"},
		{registration.TilePositions{Name: "p.csv", Tiles: []registration.TilePosition{at(0, 3, 0, 0)}}, "p.csv: there is no tile (0, 3) in"},
		{registration.TilePositions{Name: "p.csv", Tiles: []registration.TilePosition{at(0, 0, 0, 0), at(0, 1, 0, 1e7)}}, "check --positions and --transform"},
	} {
		_, _, err := Run(octtest.Ctx, in, store.Memory(), oct.Layout{}, Options{Positions: &c.p}, octtest.Small())
		if !errors.Is(err, oct.ErrInput) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.p, err, c.want)
		}
	}
	// all tiles at one place
	pile, _ := octtest.Made(t, []int{1, 40, 600}, []int{1, 2, 20}, nil, nil, func(i int) uint8 { return uint8(i) })
	one := &registration.TilePositions{Name: "p.csv", Grid: [2]int{20, 30}}
	for k := range 600 {
		one.Tiles = append(one.Tiles, at(k/30, k%30, 0, 0))
	}
	if _, _, err := Run(octtest.Ctx, pile, store.Memory(), oct.Layout{}, Options{Positions: one}, octtest.Small()); !errors.Is(err, oct.ErrInput) || !strings.Contains(err.Error(), "more than 256 tiles lie on tile") {
		t.Errorf("a pile of tiles: %v", err)
	}
	for _, opt := range []Options{{Channel: 1}, {Positions: &registration.TilePositions{}, Estimate: true}} {
		if _, _, err := Run(octtest.Ctx, in, store.Memory(), oct.Layout{}, opt, octtest.Small()); !errors.Is(err, oct.ErrLayout) {
			t.Errorf("%+v: %v", opt, err)
		}
	}
	// what a table leaves out is said
	var warned []string
	res := octtest.Small()
	res.Warn = func(m string) { warned = append(warned, m) }
	p := &registration.TilePositions{Name: "p.csv", Pixels: true, Tiles: []registration.TilePosition{at(0, 0, 5, 5), at(1, 1, 25, 5)}}
	out, st, err := Run(octtest.Ctx, in, store.Memory(), oct.Layout{}, Options{Positions: p}, res)
	if err != nil {
		t.Fatal(err)
	}
	if len(warned) != 1 || !strings.Contains(warned[0], "p.csv: has no position for 4 of the 6 tiles") || len(st.Tiles) != 2 ||
		!slices.Equal(out.Levels[0].Array.Shape(), []int{1, 40, 20}) || st.Origin != [2]int{5, 5} {
		t.Errorf("warned of %q, tiles %+v, shape %v at %v", warned, st.Tiles, out.Levels[0].Array.Shape(), st.Origin)
	}
}

// A pair is found within reach however little the overlap as recorded shows of it, in strips as in whole tiles.
func TestCompareLooksBeyondTheOverlap(t *testing.T) {
	const side, step, reach = 96, 66, 24
	rng := rand.New(rand.NewPCG(6, 6))
	block := make([]float32, 3*side*3*side)
	for i := range block {
		block[i] = rng.Float32()
	}
	block = overview.BoxMean(block, [2]int{3 * side, 3 * side}, [2]int{1, 1})
	tile := func(y, x int) []float32 { return filter.Crop(block, 3*side, [2]int{y, x}, side, side) }
	whole := neighbours{pair: pair{0, 1, 1}, va: view{v: tile(50, 50), n: [2]int{side, side}}, vb: view{v: tile(53, 50+step), n: [2]int{side, side}}}
	for _, off := range [][2]float64{{0, 0}, {-20, 22}, {20, -22}, {3, 23}} {
		expected := func(pair) [2]float64 { return [2]float64{3 + off[0], step + off[1]} }
		a := &aligner{grid: grid{ny: 1, nx: 2, tile: [2]int{side, side}, shape: [2]int{side, 2 * side}}}
		a.strip = func(p pair) strips {
			e := expected(p)
			s, _ := displaced([2]int{side, side}, [2]int{side, side}, [2]int{int(e[0]), int(e[1])}, reach+stripMargin, 1)
			return s
		}
		strip := neighbours{pair: whole.pair, va: a.view(whole.va.v, 0, whole.pair), vb: a.view(whole.vb.v, 1, whole.pair)}
		for name, n := range map[string]neighbours{"whole tiles": whole, "strips": strip} {
			m := compare(filter.NewPhase(), nil, n, expected, reach, reach)
			if m.reason == "too far from where it should be" && math.Hypot(off[0], off[1]) > reach {
				m.reason = ""
			}
			if m.reason != "" || math.Hypot(m.d[0]-3, m.d[1]-step) > 0.1 {
				t.Errorf("%s, expected %v off: %+v", name, off, m)
			}
		}
	}
}
