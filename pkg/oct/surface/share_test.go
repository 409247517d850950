//go:build !nocuda

package surface

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"strata/pkg/filter"
	"strata/pkg/gpu"
	"strata/pkg/oct"
	"strata/pkg/oct/compute"
	"strata/pkg/zarr/codec"
	"strata/tests/octtest"
)

// shared is a search that host and device share, and what it finds.
type shared struct {
	sigma        float64
	mine, theirs int64 // bytes for the seams of the host and of the device; negative: as planned

	bands                int     // of a tile on the device
	depth                []int32 // of A-lines
	times                []int   // that each was found
	merged, late, remote int     // seams that came together, that were the host's and had no memory, and likewise the device's
}

// run searches a mosaic, of which the host takes k tiles and a device the others, in the order that both take them.
func (s *shared) run(m *oct.Mosaic, d *gpu.Device, k int) error {
	res := oct.Resources{Workers: 2, Mem: 32 << 20, Coming: oct.NewComing(0, 0, 0)}
	p, err := plan(m, filter.InterfaceSearch{SigmaXY: s.sigma, SigmaZ: 1, Planes: 6}, &res, 0, false)
	if err != nil {
		return err
	}
	defer p.Close()
	if s.mine >= 0 {
		p.Seams = compute.NewPool(&res, s.mine)
	}
	nx, area := m.Shape[2], m.Shape[1]*m.Shape[2]
	var mu sync.Mutex
	s.depth, s.times = make([]int32, area), make([]int, area)
	p.Found = func(_ context.Context, r oct.Rectangle, depth []int32, _ []float32) error {
		mu.Lock()
		defer mu.Unlock()
		for y := r.Y0; y < r.Y1; y++ {
			copy(s.depth[y*nx+r.X0:y*nx+r.X1], depth[(y-r.Y0)*r.Width():])
			for x := r.X0; x < r.X1; x++ {
				s.times[y*nx+x]++
			}
		}
		return nil
	}
	on := res
	on.Device, on.Coming = d, nil
	device, err := p.join(&on)
	if err != nil {
		return err
	}
	defer device.Close()
	if s.theirs >= 0 {
		device.Seams = compute.NewPool(&on, s.theirs)
	}
	s.bands = device.Bands()
	order := p.tiles()
	n := order.left()
	mine, theirs := p.side(n, order), device.side(n, order)
	err = compute.Run(octtest.Ctx, mine.Plan, func() (int, bool) {
		if order.first == k {
			return 0, false
		}
		return order.front()
	}, mine.Do)
	if err == nil {
		err = compute.Run(octtest.Ctx, theirs.Plan, order.back, theirs.Do)
	}
	together := 0
	for _, left := range p.seams {
		if left.release != nil {
			together++
		}
	}
	before := len(p.late)
	if err == nil {
		err = p.finish(octtest.Ctx, device, order)
	}
	if err != nil {
		return err
	}
	s.late, s.remote = len(p.late), len(device.alone())
	s.merged = together - (s.late - before)
	return nil
}

// TestShared: each A-line is found once and where the host finds it, however many tiles the host has taken before a
// device comes, whatever the windows reach, whether one of them has memory for seams or not, and whether the device
// holds tiles or bands of them.
func TestShared(t *testing.T) {
	const plenty = -1
	for name, c := range map[string]struct {
		memory int64
		tile   []int
		shapes [][]int
		bands  int
		all    []shared
	}{
		"tiles": {16 << 20, []int{4, 8, 10}, [][]int{{11, 29, 41}, {11, 33, 10}}, 1, []shared{
			{sigma: 2, mine: plenty, theirs: plenty}, {sigma: 7, mine: plenty, theirs: plenty},
			{sigma: 3, mine: 0, theirs: plenty}, {sigma: 3, mine: plenty, theirs: 0}, {sigma: 3, mine: 16 << 10, theirs: 4 << 10},
		}},
		"windows beyond tiles": {16 << 20, []int{4, 8, 10}, [][]int{{11, 41, 29}}, 1, []shared{{sigma: 15, mine: plenty, theirs: plenty}}},
		"halves":               {74500, []int{4, 64, 50}, [][]int{{11, 133, 150}}, 2, []shared{{sigma: 3, mine: plenty, theirs: plenty}, {sigma: 7, mine: plenty, theirs: 16 << 10}}},
		"bands":                {38000, []int{4, 64, 50}, [][]int{{11, 150, 133}}, 8, []shared{{sigma: 2, mine: plenty, theirs: plenty}, {sigma: 3, mine: 0, theirs: 0}}},
	} {
		d := octtest.Device(t, c.memory)
		for _, shape := range c.shapes {
			in, _ := octtest.Made(t, shape, c.tile, nil, codec.Chain{codec.Zstd(1, false)}, octtest.Uneven[uint16])
			m, err := oct.OpenMosaic(in)
			if err != nil {
				t.Fatal(err)
			}
			ny, nx := m.Tiles()
			for _, s := range c.all {
				var want []int32
				for _, k := range []int{ny * nx, 0, 1, ny * nx / 2, ny*nx - 1} {
					if err := s.run(m, d, k); err != nil {
						t.Fatal(err)
					}
					what := fmt.Sprintf("%s: %v, sigma %v, %d and %d bytes, %d of %d tiles by the host", name, shape, s.sigma, s.mine, s.theirs, k, ny*nx)
					if i := slices.IndexFunc(s.times, func(n int) bool { return n != 1 }); i >= 0 {
						t.Fatalf("%s: A-line %d was found %d times", what, i, s.times[i])
					}
					if want == nil {
						want = slices.Clone(s.depth)
					}
					if !slices.Equal(s.depth, want) {
						t.Errorf("%s: other depths", what)
					}
					if s.bands != c.bands {
						t.Errorf("%s: tiles are in %d bands", what, s.bands)
					}
					if again := s.late + s.remote; s.mine == plenty && s.theirs == plenty && s.bands == 1 && (again > 0 || (s.merged > 0) != (k > 0 && k < ny*nx)) {
						t.Errorf("%s: %d seams came together, %d were read again", what, s.merged, again)
					}
				}
			}
		}
	}
}

// TestSharedWithLittleMemory: where memory is enough for the host alone, it is where a device may join, whether it does
// or not, also if the mean filter reaches across several tiles.
func TestSharedWithLittleMemory(t *testing.T) {
	in, _ := octtest.Made(t, []int{200, 60, 80}, []int{200, 20, 20}, nil, codec.Chain{codec.Zstd(1, false)}, octtest.Uneven[uint16])
	m, err := oct.OpenMosaic(in)
	if err != nil {
		t.Fatal(err)
	}
	d := octtest.Device(t, 16<<20)
	find := func(mem int64, c *oct.Coming) (found int64, err error) {
		var lines atomic.Int64
		res := oct.Resources{Workers: 4, Mem: mem, Coming: c}
		err = FindInterfaces(octtest.Ctx, m, filter.InterfaceSearch{SigmaXY: 21, SigmaZ: 1}, res, 0, true, func(_ context.Context, r oct.Rectangle, _ []int32, _ []float32) error {
			lines.Add(int64(r.Area()))
			return nil
		}, nil)
		return lines.Load(), err
	}
	enough := 0
	for mem := int64(1 << 20); mem < 16<<20; mem += mem / 3 {
		if _, err := find(mem, nil); err != nil {
			continue
		}
		enough++
		for _, add := range []func(*oct.Resources){nil, func(r *oct.Resources) { r.Device = d }} {
			c := oct.NewComing(0, 0, time.Minute)
			c.Settle(add)
			if n, err := find(mem, c); err != nil || n != 60*80 {
				t.Errorf("%d KiB, a device comes: %v: %d A-lines, %v", mem>>10, add != nil, n, err)
			}
		}
	}
	if enough < 3 {
		t.Errorf("the host had enough memory %d times", enough)
	}
}
