package compute

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"strata/pkg/dtype"
	"strata/pkg/filter"
	"strata/pkg/mem"
	"strata/pkg/meter"
	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/oct/compute/transfer"
	"strata/pkg/work"
	"strata/pkg/zarr/store"
	"strata/tests/octtest"
)

// machines are those that the tests run on.
var machines = map[string]func(t *testing.T) *oct.Resources{
	"host": func(*testing.T) *oct.Resources { return &oct.Resources{Workers: 2, Mem: 64 << 20} },
}

// onMachines runs a test on each machine, which has all its memory back in the end.
func onMachines(t *testing.T, test func(t *testing.T, res *oct.Resources)) {
	for name, resources := range machines {
		t.Run(name, func(t *testing.T) {
			before := mem.InUse()
			t.Cleanup(func() { // after the device is closed, which finds what of its memory is missing
				if n := mem.InUse() - before; n != 0 {
					t.Errorf("%d bytes of the host were not given back", n)
				}
			})
			test(t, resources(t))
		})
	}
}

// planOf is a plan for the projections of a mosaic's six tiles.
func planOf(t *testing.T, res *oct.Resources) *Plan {
	t.Helper()
	s := sourceOf(t, res)
	n := s.Pixels()
	return &Plan{What: "projecting", Source: s, Memory: Memory{Host: res.Mem, Blocks: []int64{8 * n, 4 * n}, Brought: 4 * n}}
}

func sourceOf(t *testing.T, res *oct.Resources) *Source {
	t.Helper()
	in, _ := octtest.Made(t, []int{8, 64, 96}, []int{4, 32, 32}, nil, nil, octtest.Uneven[uint16])
	m, err := oct.OpenMosaic(in)
	if err != nil {
		t.Fatal(err)
	}
	s, err := NewSource(m, res, new(meter.Meter))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// project brings the projection of a tile.
func project(w Projector, tile oct.Rectangle, f func(mean []float32)) {
	sums, mean := w.Block(0), w.Block(1)
	w.Stream(tile, func(z, n int, planes Block) { w.AddPlanes(sums, planes, n, tile.Area(), z == 0) })
	w.Mean(mean, sums, 8, tile.Area())
	w.Bring(mean, func(b []byte) { f(dtype.Slice[float32](b)) })
}

// The pieces of a worker are handed over in their order, each with what is its own.
func TestPieces(t *testing.T) {
	_, want := octtest.Made(t, []int{8, 64, 96}, []int{4, 32, 32}, nil, nil, octtest.Uneven[uint16])
	onMachines(t, func(t *testing.T, res *oct.Resources) {
		p := planOf(t, res)
		p.Most = 1
		var tiles []oct.Rectangle
		err := Run(octtest.Ctx, p, p.Source.mosaic.EachTile(), func(w Projector, tile oct.Rectangle) {
			project(w, tile, func(mean []float32) {
				tiles = append(tiles, tile)
				for i, v := range mean {
					if y, x := tile.Y0+i/tile.Width(), tile.X0+i%tile.Width(); v != want[y*96+x] {
						t.Fatalf("pixel (%d, %d) is %v, want %v", y, x, v, want[y*96+x])
					}
				}
			})
		})
		if err != nil || len(tiles) != 6 {
			t.Fatalf("%d tiles, %v", len(tiles), err)
		}
		next := p.Source.mosaic.EachTile()
		for i, tile := range tiles {
			if w, _ := next(); tile != w {
				t.Errorf("tile %d is %v, want %v", i, tile, w)
			}
		}
	})
}

// Workers that find no piece of work end.
func TestNoPieces(t *testing.T) {
	onMachines(t, func(t *testing.T, res *oct.Resources) {
		p := planOf(t, res)
		asked := 0
		err := Run(octtest.Ctx, p, func() (int, bool) { asked++; return 0, false }, func(Worker, int) { t.Error("a piece of work") })
		if err != nil || asked != res.Workers {
			t.Errorf("asked %d times for a piece, %v", asked, err)
		}
	})
}

// After an error a worker does nothing any more, not even for pieces that are on their way, and Run returns that error:
// also where it shows while the worker waits for a place for the next piece.
func TestErrorsStick(t *testing.T) {
	onMachines(t, func(t *testing.T, res *oct.Resources) {
		for _, reads := range []bool{true, false} {
			p := planOf(t, res)
			p.Most, p.Memory.Brought = 1, 2*p.Memory.Brought
			failure := errors.New("a full disk")
			var begun, handed int
			err := Run(octtest.Ctx, p, func() (int, bool) { begun++; return begun, begun < 100 }, func(w Projector, k int) {
				take := func([]float32) {
					if handed++; k > 3 {
						t.Errorf("piece %d is handed over", k)
					}
				}
				if reads {
					project(w, p.Source.mosaic.Extent(k%2, k%3), take)
				} else {
					w.Bring(w.Block(1), func([]byte) { take(nil) })
				}
				w.Then(func() error {
					if k == 3 {
						return fmt.Errorf("piece %d: %w", k, failure)
					}
					return nil
				})
				w.Then(func() error {
					if k >= 3 {
						t.Errorf("piece %d goes on", k)
					}
					return nil
				})
				w.Bring(w.Block(1), func([]byte) {
					if k >= 3 {
						t.Errorf("something of piece %d is handed over", k)
					}
				})
			})
			if !errors.Is(err, failure) || err.Error() != "piece 3: a full disk" {
				t.Errorf("%v, want that of piece 3", err)
			}
			if most := 3 + transfer.MostSlots; handed != 3 || begun > most {
				t.Errorf("%d pieces began, %d were handed over, want at most %d and 3", begun, handed, most)
			}
		}
	})
}

// The first error of a worker ends the others.
func TestErrorsEndOtherWorkers(t *testing.T) {
	onMachines(t, func(t *testing.T, res *oct.Resources) {
		failure := errors.New("a full disk")
		p := planOf(t, res)
		p.Most = 2
		const many = 1 << 16
		k := -1
		err := Run(octtest.Ctx, p, func() (int, bool) { k++; return k, k < many }, func(w Projector, k int) {
			w.Then(func() error {
				if k == 5 {
					return failure
				}
				return nil
			})
			w.Stream(p.Source.mosaic.Extent(0, 0), func(int, int, Block) {})
		})
		if k >= many {
			t.Error("the other worker did all pieces")
		}
		if !errors.Is(err, failure) {
			t.Error(err)
		}
	})
}

// worker has all methods that the plans of TestPanics call.
type worker interface {
	Projector
	Roller
	InterfaceFinder
}

// A panic, in a piece of work or in what it hands over, becomes an error; the worker's memory goes back, whatever it is
// for.
func TestPanics(t *testing.T) {
	tile := func(p *Plan) oct.Rectangle { return p.Source.mosaic.Extent(0, 0) }
	for name, c := range map[string]struct {
		plan func(t *testing.T, res *oct.Resources) (*Plan, func())
		do   func(w worker, p *Plan)
	}{
		"piece": {nil, func(w worker, p *Plan) {
			w.Stream(tile(p), func(z, _ int, _ Block) {
				if z > 0 {
					panic("in the middle of a tile")
				}
			})
		}},
		"handed over": {nil, func(w worker, p *Plan) { project(w, tile(p), func([]float32) { panic("in what takes it") }) }},
		"then": {nil, func(w worker, p *Plan) {
			project(w, tile(p), func([]float32) {})
			w.Then(func() error { panic("behind it") })
		}},
		"roll": {func(t *testing.T, res *oct.Resources) (*Plan, func()) {
			s := sourceOf(t, res)
			if err := s.Whole(res.Meter); err != nil {
				t.Fatal(err)
			}
			shifts, free, err := Shared(res, make([]float32, 32*32))
			if err != nil {
				t.Fatal(err)
			}
			m := s.mosaic
			spec := ngff.ImageSpec{Shape: m.Shape[:], DType: m.DType, Axes: m.Axes(), Scale: []float64{1, 1, 1}, Chunks: m.Chunk[:]}
			out, err := oct.Create(octtest.Ctx, store.Memory(), oct.Layout{}, spec, m.Tile(), *res)
			if err != nil {
				t.Fatal(err)
			}
			return &Plan{What: "rolling", Source: s, Memory: Memory{Host: res.Mem}, Operator: &Rolling{Shifts: shifts, Chunk: 1}, Output: Output{To: out, Tile: m.Tile()}},
				func() { out.Abort(); free() }
		}, func(w worker, p *Plan) {
			w.RollTile(tile(p))
			panic("behind a tile that is rolled")
		}},
		"resize": {func(t *testing.T, res *oct.Resources) (*Plan, func()) {
			weights := func(axis int, _ bool) *filter.Weights { return nil }
			return &Plan{What: "resampling", Source: sourceOf(t, res), Memory: Memory{Host: res.Mem}, Operator: &Resizing{Tile: [3]int{8, 32, 32}, Weights: weights}}, func() {}
		}, func(worker, *Plan) { panic("before a tile is resampled") }},
		"search": {func(t *testing.T, res *oct.Resources) (*Plan, func()) {
			s, err := sourceOf(t, res).NewSearch(filter.InterfaceSearch{SigmaXY: 3, SigmaZ: 1}, res.Mem, true)
			if err != nil {
				t.Fatal(err)
			}
			s.Found = func(context.Context, oct.Rectangle, []int32, []float32) error { return nil }
			return s.Plan(6), s.Close
		}, func(w worker, p *Plan) {
			s := p.Operator.(*Search)
			seam, release, err := s.Seam(oct.Rect(16, 48, 0, 32)) // nobody releases it
			if err != nil || release == nil {
				panic("no memory")
			}
			v := w.Load(s.Piece(0, 0))
			w.Gather(seam, v)
			w.FindInterfaces(v, oct.Rect(0, 30, 0, 30))
			w.Then(func() error { panic("before a seam is searched") })
		}},
	} {
		t.Run(name, func(t *testing.T) {
			onMachines(t, func(t *testing.T, res *oct.Resources) {
				p, free := planOf(t, res), func() {}
				if c.plan != nil {
					p, free = c.plan(t, res)
				}
				defer free()
				k := 0
				err := Run(octtest.Ctx, p, func() (int, bool) { k++; return k, k <= 8 }, func(w worker, _ int) { c.do(w, p) })
				var panicked *work.Panic
				if !errors.As(err, &panicked) {
					t.Errorf("%v, want a panic", err)
				}
			})
		})
	}
}

// A pool lends no more than its budget, takes back once, and in the end what is still lent.
func TestPool(t *testing.T) {
	onMachines(t, func(t *testing.T, res *oct.Resources) {
		p := NewPool(res, 3*mem.Pooled(10000))
		var release [3]func()
		for i := range release {
			b, back, err := p.Get(10000)
			if err != nil || back == nil || int64(len(b.host))+b.device.Bytes() != 10000 {
				t.Fatalf("block %d: %+v, %v", i, b, err)
			}
			release[i] = back
		}
		if _, back, err := p.Get(1); back != nil || err != nil {
			t.Errorf("a block beyond the budget, %v", err)
		}
		release[1]()
		release[1]()
		if _, back, _ := p.Get(10000); back == nil {
			t.Error("a block that was given back is not lent again")
		}
		if _, back, _ := p.Get(1); back != nil {
			t.Error("a block that was given back twice counts twice")
		}
		p.Close()
		release[0]()
	})
}
