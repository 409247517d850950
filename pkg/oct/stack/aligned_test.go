package stack

import (
	"bytes"
	"fmt"
	"math"
	"regexp"
	"strings"
	"testing"

	"strata/pkg/dtype"
	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/phantom"
	"strata/pkg/registration"
	"strata/pkg/zarr"
	"strata/pkg/zarr/codec"
	"strata/pkg/zarr/store"
	"strata/tests/octtest"
	"strata/tests/race"
)

// block is slices of a phantom as a microscope with one tile sees them: 64 planes of 5 µm
// every 200 µm, so that neighbours have 24 in common.
type block struct {
	*phantom.Specimen
	in    Input
	truth [][2]float64 // shifts of moving slices (x, y), mm
}

const (
	blockPlanes  = 64
	blockOverlap = blockPlanes - 40
)

// newBlock makes it. change is given the voxels of each slice before they are stored.
func newBlock(t *testing.T, slices int, change func(k int, v []float32)) *block {
	t.Helper()
	c := phantom.Default()
	c.Seed, c.Slices, c.Tiles, c.Tile, c.Voxel = 9, slices, [2]int{1, 1}, [3]int{blockPlanes, 160, 176}, [3]float64{5, 5, 5}
	c.Jitter, c.Glitch, c.Water, c.Relief, c.Bowl, c.Vignette, c.Shift = 0, 0, 0, 0, 0, 0, 30
	s, err := phantom.New(c)
	if err != nil {
		t.Fatal(err)
	}
	b := &block{Specimen: s}
	for k := range slices {
		raw := make([]byte, 4*c.Tile[0]*c.Tile[1]*c.Tile[2])
		if err := s.RenderTile(raw, k, 0, 0); err != nil {
			t.Fatal(err)
		}
		if change != nil {
			change(k, dtype.Slice[float32](raw))
		}
		st := store.Memory()
		codecs, err := codec.FromFlag("raw", dtype.Float32, 3)
		if err != nil {
			t.Fatal(err)
		}
		w, err := ngff.Create(octtest.Ctx, st, "", ngff.ImageSpec{Format: 3, Shape: c.Tile[:], Chunks: []int{16, 80, 88}, DType: dtype.Float32, Codecs: codecs,
			Axes: ngff.SpaceAxes("zyx", "micrometer"), Scale: c.Voxel[:], Workers: 1, Budget: 8 << 20})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.WriteTile(octtest.Ctx, []int{0, 0, 0}, c.Tile[:], raw); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(octtest.Ctx); err != nil {
			t.Fatal(err)
		}
		b.in.Slices = append(b.in.Slices, Slice{k, fmt.Sprintf("slice_z%02d", k), octtest.Open(t, st)})
	}
	var csv bytes.Buffer
	if err := s.WriteShifts(&csv); err != nil {
		t.Fatal(err)
	}
	if b.in.Shifts, err = registration.ReadShifts(&csv, "shifts.csv"); err != nil {
		t.Fatal(err)
	}
	for _, p := range b.in.Shifts.Pairs() {
		b.truth = append(b.truth, [2]float64{p.X, p.Y})
	}
	return b
}

// wrong is the shifts with one of them off by (x, y) millimetres.
func (b *block) wrong(t *testing.T, moving int, x, y float64) *registration.Shifts {
	rows := ""
	for _, p := range b.in.Shifts.Pairs() {
		if p.Moving == moving {
			p.X, p.Y = p.X+x, p.Y+y
		}
		rows += fmt.Sprintf("%d,%d,0,0,%v,%v\n", p.Fixed, p.Moving, p.X, p.Y)
	}
	return shiftsOf(t, rows)
}

func aligned() Options {
	o := DefaultStackOptions()
	o.MovingZFirstIndex, o.PyramidResolutions = 2, nil
	return o
}

// Overlaps are found where slices are moved to where they lie, also where the slicing
// interval is given wrong, and though slices attenuate and have speckle. The search of the centres does not find them.
func TestAlignedOverlap(t *testing.T) {
	b := newBlock(t, 4, nil)
	intervals := []float64{0.2, 0.16, 0.23}
	if race.Enabled() {
		intervals = intervals[1:2]
	}
	for _, interval := range intervals {
		opt := aligned()
		opt.SlicingIntervalMM = interval
		var told []string
		res := octtest.Small()
		res.Warn = func(m string) { told = append(told, m) }
		got, err := Run(octtest.Ctx, b.in, opt, store.Memory(), oct.Layout{}, res)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range got.Decisions {
			if m.Source != "correlation" || m.Overlap < blockOverlap-2-1 || m.Overlap > blockOverlap-2+1 {
				t.Errorf("interval %v mm: %+v, want an overlap of %d planes", interval, m, blockOverlap-2)
			}
		}
		if want := blockPlanes + 3*40; got.Shape[0] < want-1 || got.Shape[0] > want+1 {
			t.Errorf("interval %v mm: %d planes, want %d", interval, got.Shape[0], want)
		}
		if n := len(regexp.MustCompile(`overlap by \d+\.\d planes, which correlate by 0\.\d+; \d+ were expected`).FindAllString(strings.Join(told, "\n"), -1)); n != 3 && interval != 0.2 || n != 0 && interval == 0.2 {
			t.Errorf("interval %v mm: %q", interval, told)
		}
	}
	opt := aligned()
	opt.OverlapSearch, opt.ZOverlapMinCorr = SearchCentre, 0
	got, err := Run(octtest.Ctx, b.in, opt, store.Memory(), oct.Layout{}, octtest.Small())
	if err != nil {
		t.Fatal(err)
	}
	off := 0
	for _, m := range got.Decisions {
		off += max(m.Overlap-(blockOverlap-2), blockOverlap-2-m.Overlap)
	}
	if off <= 3 {
		t.Errorf("the centres are right as well: %+v: this block shows nothing", got.Decisions)
	}
}

// A recorded shift that the slices contradict is told with both, or repaired; those that
// are right are neither.
func TestRepairShifts(t *testing.T) {
	race.Leave(t)
	b := newBlock(t, 4, nil)
	right, err := Run(octtest.Ctx, b.in, aligned(), store.Memory(), oct.Layout{}, octtest.Small())
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range right.Shifts {
		if s.Contradicted || math.Hypot(s.Found[0]-b.truth[i][0], s.Found[1]-b.truth[i][1]) > 0.004 {
			t.Errorf("%+v, the truth is %v", s, b.truth[i])
		}
	}
	in := b.in
	in.Shifts = b.wrong(t, 2, 0.25, -0.1)
	for _, how := range []RepairShifts{RepairOff, RepairWarn, RepairFix} {
		opt := aligned()
		opt.RepairShifts = how
		var told []string
		res := octtest.Small()
		res.Warn = func(m string) { told = append(told, m) }
		got, err := Run(octtest.Ctx, in, opt, store.Memory(), oct.Layout{}, res)
		if err != nil {
			t.Fatal(err)
		}
		warned := regexp.MustCompile(`slices 1 and 2: recorded \(-?\d\.\d{3}, -?\d\.\d{3}\) mm apart, where their pictures correlate by -?0\.\d\d; they show \(-?\d\.\d{3}, -?\d\.\d{3}\) mm, where they correlate by 0\.\d\d: `)
		if n := len(warned.FindAllString(strings.Join(told, "\n"), -1)); n != 1 && how != RepairOff || len(told) != n+1 { // and that there is no pyramid
			t.Errorf("%s: %q", how, told)
		}
		// where slices lie from the first
		for k := 1; k < 4; k++ {
			want := [2]float64{right.Position[k][0] - right.Position[0][0], right.Position[k][1] - right.Position[0][1]}
			if k >= 2 && how != RepairFix {
				want[0], want[1] = want[0]+50, want[1]-20
			}
			d := [2]float64{got.Position[k][0] - got.Position[0][0] - want[0], got.Position[k][1] - got.Position[0][1] - want[1]}
			if math.Hypot(d[0], d[1]) > 0.8 {
				t.Errorf("%s: slice %d lies %v px from where it should", how, k, d)
			}
		}
		// what is measured does not suffer
		for _, m := range got.Decisions {
			if how != RepairOff && (m.Overlap < blockOverlap-3 || m.Overlap > blockOverlap-1) {
				t.Errorf("%s: %+v", how, m)
			}
		}
	}
}

// Slices that were said to share a frame, and do not, are not cut off where they are moved to.
func TestRepairOneFrame(t *testing.T) {
	race.Leave(t)
	opt := aligned()
	opt.NoXYShift, opt.RepairShifts = true, RepairFix
	b := newBlock(t, 4, nil)
	got, err := Run(octtest.Ctx, b.in, opt, store.Memory(), oct.Layout{}, octtest.Small())
	if err != nil {
		t.Fatal(err)
	}
	repaired := false
	for _, s := range got.Shifts {
		repaired = repaired || s.Repaired
	}
	for id, at := range got.Position {
		if at[0] < 0 || at[1] < 0 {
			t.Errorf("slice %d lies at %v, beyond the canvas", id, at)
		}
	}
	if !repaired || got.Shape[1] == 160 && got.Shape[2] == 176 {
		t.Errorf("repaired %v, canvas %v", repaired, got.Shape)
	}
}

// The translations of slices are part of where they lie.
func TestStackOrigins(t *testing.T) {
	race.Leave(t)
	b := newBlock(t, 2, nil)
	plain, err := Run(octtest.Ctx, b.in, aligned(), store.Memory(), oct.Layout{}, octtest.Small())
	if err != nil {
		t.Fatal(err)
	}
	b.in.Slices[1].Image.Levels[0].Translation = []float64{0, 15, -10} // µm: 3 px down, 2 px left
	for _, ignore := range []bool{false, true} {
		opt := aligned()
		opt.IgnoreOrigins, opt.RepairShifts = ignore, RepairOff
		got, err := Run(octtest.Ctx, b.in, opt, store.Memory(), oct.Layout{}, octtest.Small())
		if err != nil {
			t.Fatal(err)
		}
		for d, want := range [2]float64{-2, 3} {
			if ignore {
				want = 0
			}
			is := got.Position[1][d] - got.Position[0][d] - (plain.Position[1][d] - plain.Position[0][d])
			if math.Abs(is-want) > 1e-9 {
				t.Errorf("ignored %v: axis %d moved by %v px, want %v", ignore, d, is, want)
			}
		}
	}
}

// meanOf is the mean of the middle of a plane.
func meanOf(v []float32, ny, nx, z int) float64 {
	sum, n := 0.0, 0
	for y := ny / 5; y < 4*ny/5; y++ {
		for x := nx / 5; x < 4*nx/5; x++ {
			sum += float64(v[(z*ny+y)*nx+x])
			n++
		}
	}
	return sum / float64(n)
}

// Slices that the microscope made darker or brighter become as bright as each other again,
// and those that are alike stay so: attenuation is no reason to make them darker and darker. By depth it goes as well.
func TestBlendMatch(t *testing.T) {
	race.Leave(t)
	volume := func(factors []float32, how BlendMatch) func(z int) float64 {
		b := newBlock(t, 5, func(k int, v []float32) {
			for i := range v {
				v[i] *= factors[k]
			}
		})
		opt := aligned()
		opt.Blend, opt.BlendMatch = true, how
		got, err := Run(octtest.Ctx, b.in, opt, store.Memory(), oct.Layout{Codec: "raw"}, octtest.Small())
		if err != nil {
			t.Fatal(err)
		}
		a := got.Image.Levels[0].Array
		shape := a.Shape()
		v := make([]float32, shape[0]*shape[1]*shape[2])
		if err := a.Read(octtest.Ctx, zarr.Region{Start: []int{0, 0, 0}, Shape: shape}, dtype.Bytes(v)); err != nil {
			t.Fatal(err)
		}
		return func(z int) float64 { return meanOf(v, shape[1], shape[2], z) }
	}
	same, shone := []float32{1, 1, 1, 1, 1}, []float32{1, 0.6, 1.3, 1, 0.8}
	plain := volume(same, MatchNone)
	for _, how := range []BlendMatch{MatchNone, MatchWhole, MatchDepth} {
		alike, unlike := volume(same, how), volume(shone, how)
		// where slices are blended with none: planes 26 to 38
		spread := func(a, b func(z int) float64) float64 {
			lo, hi := math.Inf(1), math.Inf(-1)
			for k := range 5 {
				for z := 40*k + 26; z < 40*k+38; z++ {
					lo, hi = min(lo, a(z)/b(z)), max(hi, a(z)/b(z))
				}
			}
			return (hi - lo) / (hi + lo)
		}
		if s := spread(unlike, alike); how != MatchNone && s > 0.03 || how == MatchNone && s < 0.3 {
			t.Errorf("%s: slices that were made darker or brighter differ by ±%.1f %%", how, 100*s)
		}
		if s := spread(alike, plain); how == MatchWhole && s > 0.03 {
			t.Errorf("%s: slices that are alike differ by ±%.1f %%", how, 100*s)
		}
		first, last := 0.0, 0.0
		for k := range 5 { // where the slice above ends, and before the next one begins: 55 µm deeper
			first, last = first+alike(40*k+26), last+alike(40*k+37)
		}
		if fall := 1 - last/first; how == MatchDepth && math.Abs(fall) > 0.05 || how == MatchWhole && fall < 0.1 {
			t.Errorf("%s: it becomes %.1f %% darker along z", how, 100*fall)
		}
	}
}
