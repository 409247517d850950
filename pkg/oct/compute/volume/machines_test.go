//go:build !nocuda

package volume

import (
	"context"
	"errors"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync/atomic"
	"testing"

	"strata/pkg/filter"
	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/zarr/codec"
	"strata/pkg/zarr/store"
	"strata/tests/octtest"
)

// found is the numbers that operators find.
type found struct {
	N       int64
	Medians [2]float64
	Means   [2][]float32
	Sums    [][]filter.Moments
}

// callAll calls every operator, on planes that lie in an order by chance, as they do after some were given back.
func callAll(t *testing.T, m Memory, rng *rand.Rand, sources [2]*Source, out store.Writer) (f found) {
	t.Helper()
	const depth, ny, nx = 12, 20, 24
	search := &Search{Pairs: []Range{{Lo: 2, Hi: 5}}, Last: ny, Chunk: 8, Strips: func(rows int) []int { return []int{5 * rows * nx, 5 * rows * nx} }}
	overlaps := m.Overlaps(search)
	var ends [2][]Plane
	for i, s := range sources {
		ends[i] = overlaps.Strip(i, 5, ny, nx)
		m.Load(&Box{Source: s, Start: [3]int{7 * (1 - i), 0, 0}, Shape: [3]int{5, ny, nx}, To: ends[i], Gain: 1})
	}
	for y := 0; y < ny; y += 8 {
		rows := oct.Rect(y, min(y+8, ny), 1, nx-1)
		overlaps.Add(0, ends[0], ends[1], rows, rows)
	}
	f.Sums = overlaps.Sums()

	m.Begin(&Canvas{Out: out, Image: imageOf(depth, ny, nx), Least: func(int) int { return 30 }, Mixed: 6, RawArea: ny * nx, RawDepth: 3, Matched: true, Refined: true})
	if n := m.Room(30); n < 30 || m.Err() != nil {
		t.Fatalf("room for %d planes: %v", n, m.Err())
	}
	all := m.Take(30)
	rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	fixed, moving := all[:depth], all[depth:depth+6]
	m.Give(all[depth+6:])

	part := oct.Rect(3, 17, 2, 20)
	m.Clear(fixed, oct.Rectangle{})
	m.Clear(moving, part)
	m.Load(&Box{Source: sources[0], Start: [3]int{0, 2, 1}, Shape: [3]int{depth, part.Height(), part.Width()}, To: fixed, Y: part.Y0, X: part.X0, Gain: 1.25, Anew: true})
	raw := m.Raw(ny, nx)
	for k := 0; k < len(moving); {
		n := min(len(raw), len(moving)-k)
		m.Load(&Box{Source: sources[1], Start: [3]int{1 + k, 0, 0}, Shape: [3]int{n, ny, nx}, To: raw[:n], Gain: 1, Anew: true})
		m.Turn(moving[k:k+n], raw[:n], Turn{Rigid: filter.Rigid{Angle: 0.1, TX: 1.5, TY: -0.5, CX: 12, CY: 10}, NY: ny, NX: nx, Part: part, DY: 1, DX: -2})
		k += n
	}
	m.Scale(moving, part, []float32{1, 1, 2, 2, 0.5, 3})

	medians := m.Medians(part, 6)
	for medians.Next() {
		medians.Add(0, fixed[3:7], moving[:4])
		medians.Add(4, fixed[7:9], moving[4:])
	}
	f.N, f.Medians[0], f.Medians[1] = medians.Values()
	means := m.Means(part)
	means.Add(fixed[3:7], moving[:4])
	means.Add(fixed[7:9], moving[4:])
	a, b := means.Values()
	f.Means = [2][]float32{slices.Clone(a), slices.Clone(b)} // they are in memory of the machine
	mix := &Mix{Part: part, Weights: filter.Hann(6), Gains: []float32{1, 1.5, 1.5, 1.5, 2, 1}, DY: 2, DX: -1}
	m.Mix(mix, 0, fixed[3:7], moving[:4])
	m.Mix(mix, 4, fixed[7:9], moving[4:])
	m.Mix(&Mix{Part: part, Gains: []float32{2, 3}, DY: 1}, 0, fixed[:2], moving[1:3])
	m.Give(moving)
	fixed[10] = Plane{}
	m.Write(fixed[:8])
	m.Write(fixed[8:])
	m.Finish()
	if err := m.Err(); err != nil {
		t.Fatal(err)
	}
	return f
}

// Both machines find the same numbers and write the same voxels, wherever the planes lie.
func TestMachinesAlike(t *testing.T) {
	for trial := range uint64(4) {
		rng := rand.New(rand.NewPCG(trial, 5))
		var arrays [2]*ngff.Image
		for i, chain := range []codec.Chain{nil, {codec.Zstd(1, false)}} {
			arrays[i], _ = octtest.Made(t, []int{12, 20, 24}, []int{5, 8, 9}, nil, chain, func(int) float32 { return float32(rng.IntN(200) - 60) })
		}
		var found [2]found
		var images [2]*ngff.Image
		for i := range 2 {
			var sources [2]*Source
			for k, im := range arrays {
				sources[k] = NewSource(im.Levels[0].Array, "source")
			}
			res := octtest.Small()
			if i == 1 {
				res.Device = octtest.Device(t, 8<<20)
			}
			m, err := Open(octtest.Ctx, sources[:], &res)
			if err != nil {
				t.Fatal(err)
			}
			out := store.Memory()
			found[i] = callAll(t, m, rand.New(rand.NewPCG(trial, 6)), sources, out)
			if err := m.Close(); err != nil {
				t.Fatal(err)
			}
			images[i] = octtest.Open(t, out)
		}
		if !reflect.DeepEqual(found[0].Means, found[1].Means) {
			t.Errorf("trial %d: the device's mean planes are others", trial)
		}
		found[0].Means, found[1].Means = [2][]float32{}, [2][]float32{}
		if !reflect.DeepEqual(found[0], found[1]) || found[0].N < 100 {
			t.Errorf("trial %d: the device finds %+v, the host %+v", trial, found[1], found[0])
		}
		octtest.SameArrays(t, images[1], images[0])
		if v := octtest.Read(t, images[0].Levels[0].Array); !slices.ContainsFunc(v, func(f float32) bool { return f > 0 }) {
			t.Error("nothing was written")
		}
	}
}

// After an error nothing is done any more, whatever planes there are, and the first error stays.
func TestErrorsStick(t *testing.T) {
	im, _ := octtest.Made(t, []int{4, 8, 8}, []int{4, 8, 8}, nil, nil, func(i int) float32 { return float32(i) })
	source := NewSource(im.Levels[0].Array, "source")
	for _, onDevice := range []bool{false, true} {
		res := octtest.Small()
		if onDevice {
			res.Device = octtest.Device(t, 8<<20)
		}
		ctx, cancel := context.WithCancel(octtest.Ctx)
		m, err := Open(ctx, []*Source{source}, &res)
		if err != nil {
			t.Fatal(err)
		}
		m.Begin(&Canvas{Out: store.Memory(), Image: imageOf(8, 8, 8), Least: func(int) int { return 8 }, Mixed: 2, RawArea: 64, RawDepth: 4, Matched: true, Refined: true})
		fixed := m.Take(2)
		if err := m.Err(); err != nil || len(fixed) != 2 {
			t.Fatal(err)
		}
		part := oct.Rect(0, 8, 0, 8)
		medians := m.Medians(part, 2)
		medians.Next()
		cancel()
		m.Load(&Box{Source: source, Shape: [3]int{2, 8, 8}, To: fixed, Gain: 1})
		moving := m.Take(2)
		m.Clear(moving, oct.Rectangle{})
		m.Scale(moving, part, nil)
		m.Turn(moving, nil, Turn{})
		medians.Add(0, fixed, moving)
		means := m.Means(part)
		means.Add(fixed, moving)
		a, b := means.Values()
		m.Mix(&Mix{Part: part}, 0, fixed, moving)
		m.Write(fixed)
		m.Finish()
		if medians.Next() || moving != nil || a != nil || b != nil || m.Room(1) < 0 || m.Overlaps(&Search{Strips: func(int) []int { return nil }}) != nil || !errors.Is(m.Err(), context.Canceled) {
			t.Errorf("on a device %v: goes on after %v", onDevice, m.Err())
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
}

// imageOf is the image of a volume.
func imageOf(depth, ny, nx int) ngff.ImageSpec {
	spec := ngff.ImageSpec{Format: 2, Shape: []int{depth, ny, nx}, Chunks: []int{4, min(ny, 10), min(nx, 12)}, Scale: []float64{1, 1, 1}}
	for _, name := range []string{"z", "y", "x"} {
		spec.Axes = append(spec.Axes, ngff.Axis{Name: name, Type: ngff.TypeSpace})
	}
	return spec
}

// full is a store that has room for some files only.
type full struct {
	store.Writer
	left atomic.Int64
}

var errFull = errors.New("full")

func (f *full) Put(ctx context.Context, key string, parts ...[]byte) error {
	if f.left.Add(-1) < 0 {
		return errFull
	}
	return f.Writer.Put(ctx, key, parts...)
}

// What fails while planes are written is the memory's error, also where that is found later: a caller that waits for
// planes is told.
func TestWriteFails(t *testing.T) {
	im, _ := octtest.Made(t, []int{4, 8, 8}, []int{4, 8, 8}, nil, nil, func(i int) float32 { return float32(i) })
	for _, onDevice := range []bool{false, true} {
		res := octtest.Small()
		if onDevice {
			res.Device = octtest.Device(t, 8<<20)
		}
		source := NewSource(im.Levels[0].Array, "source")
		m, err := Open(octtest.Ctx, []*Source{source}, &res)
		if err != nil {
			t.Fatal(err)
		}
		out := &full{Writer: store.Memory()}
		out.left.Store(4)
		m.Begin(&Canvas{Out: out, Image: imageOf(64, 8, 8), Least: func(int) int { return 4 }})
		for range 16 {
			m.Room(4)
			planes := m.Take(4)
			m.Load(&Box{Source: source, Shape: [3]int{4, 8, 8}, To: planes, Gain: 1})
			m.Write(planes)
		}
		m.Finish()
		if err := m.Err(); !errors.Is(err, errFull) {
			t.Errorf("on a device %v: %v", onDevice, err)
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
}
