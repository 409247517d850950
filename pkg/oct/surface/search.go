// Package surface finds the tissue surface of a mosaic grid: in each A-line, the plane where it brightens most.
package surface

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"strata/pkg/filter"
	"strata/pkg/oct"
	"strata/pkg/oct/compute"
)

// Found receives the interface depths of a rectangle in C order, and their gradients. Several workers call it
// concurrently. It must not keep the slices.
type Found = func(ctx context.Context, r oct.Rectangle, depth []int32, gradient []float32) error

// FindInterfaces finds the tissue interface of every A-line of a mosaic (stages specification, focal, step 1), reading
// each tile once. It leaves reserved bytes of res.Mem to other uses, and as many to a device that joins. found gets
// gradients if gradients is set. Unless nonFinite is nil, the NaN and infinite voxels in the searched planes are added
// to it.
func FindInterfaces(ctx context.Context, m *oct.Mosaic, search filter.InterfaceSearch, res oct.Resources, reserved int64, gradients bool, found Found, nonFinite *atomic.Int64) error {
	p, err := plan(m, search, &res, reserved, gradients)
	if err != nil {
		return err
	}
	p.Found, p.nonFinite = found, nonFinite
	return p.run(ctx)
}

// Check returns an error if [FindInterfaces] would have too little memory.
func Check(m *oct.Mosaic, search filter.InterfaceSearch, res oct.Resources, reserved int64, gradients bool) error {
	source, err := compute.NewSource(m, &res, res.Meter)
	if err != nil {
		return err
	}
	return source.CheckSearch(search, res.Mem-reserved, gradients)
}

// interfaceMap is a running search on the host or on a device. The mosaic is loaded piece by piece, but the mean filter
// reaches across their borders by half its window. A-lines whose windows lie in one piece are searched when it is
// loaded. Along a border, the pieces on both sides copy what the windows cover into a seam, and the worker with the
// last of them searches it. Seams that do not fit in memory are read again at the end.
//
// Of a device that joins the host there is a second interfaceMap, with seams of its own ([interfaceMap.share]).
type interfaceMap struct {
	*compute.Search
	mosaic    *oct.Mosaic
	res       *oct.Resources
	reserved  int64 // bytes of res.Mem for other uses
	nonFinite *atomic.Int64

	mu    sync.Mutex
	seams map[[2]int]*seam // by segments, incomplete
	late  [][2]int         // without memory
}

// seam holds the voxels in the windows of some A-lines near the borders of pieces.
type seam struct {
	compute.Voxels
	release func() // nil: it has no memory
	left    int    // pieces missing
}

func plan(m *oct.Mosaic, search filter.InterfaceSearch, res *oct.Resources, reserved int64, gradients bool) (*interfaceMap, error) {
	source, err := compute.NewSource(m, res, res.Meter)
	if err != nil {
		return nil, err
	}
	s, err := source.NewSearch(search, res.Mem-reserved, gradients)
	return &interfaceMap{Search: s, mosaic: m, res: res, reserved: reserved, seams: map[[2]int]*seam{}}, err
}

// run searches all pieces, and then the seams that are left.
func (p *interfaceMap) run(ctx context.Context) error {
	defer p.Close()
	t := p.tiles()
	device, err := p.share(ctx, t)
	if device != nil {
		defer device.Close()
	}
	if err != nil {
		return err
	}
	return p.finish(ctx, device, t)
}

// plan returns a plan for workers that search the given number of tiles.
func (p *interfaceMap) plan(tiles int) *compute.Plan {
	plan := p.Plan(tiles)
	if p.nonFinite != nil {
		plan.NonFinite = func(n int64) { p.nonFinite.Add(n) }
	}
	return plan
}

// finish searches the seams that remain after all pieces have been loaded: seams between tiles of the host and of the
// device (which may be nil), and seams that did not fit into memory.
func (p *interfaceMap) finish(ctx context.Context, device *interfaceMap, t *tiles) error {
	if device != nil {
		if err := p.merge(ctx, device, t); err != nil {
			return err
		}
	}
	late := p.lateLines(p.late)
	if device != nil {
		late = append(late, device.lateLines(device.alone())...)
	}
	if len(late) == 0 {
		return nil
	}
	p.SeamsDone()
	var again []oct.Rectangle
	for _, r := range late {
		var err error
		if again, err = p.appendParts(again, r); err != nil {
			return err
		}
	}
	p.res.Progress = nil // they have been read
	return compute.Run(ctx, p.Plan(len(again)), compute.Each(again), func(w compute.InterfaceFinder, r oct.Rectangle) {
		w.FindInterfaces(w.Load(p.Box(r)), r)
	})
}

// piece loads piece (i, j), searches the A-lines whose windows lie in it, and contributes to seams.
func (p *interfaceMap) piece(w compute.InterfaceFinder, i, j int) {
	voxels := w.Load(p.Piece(i, j))
	if p.nonFinite != nil {
		w.CountNonFinite(voxels)
	}
	p.EachSegment(i, j, func(a, b int) {
		if y, x := p.Y[a], p.X[b]; y.First == y.Last && x.First == x.Last {
			w.FindInterfaces(voxels, compute.Lines(y, x))
		} else {
			p.contribute(w, [2]int{a, b}, voxels)
		}
	})
}

// contribute copies a piece's part of a seam, and searches the seam if that was the last part.
func (p *interfaceMap) contribute(w compute.InterfaceFinder, key [2]int, piece compute.Voxels) {
	s, err := p.seam(key)
	if err == nil && s.release != nil {
		w.Gather(s.Voxels, piece)
	}
	w.Then(func() error {
		if err != nil || !p.complete(key, s) {
			return err
		}
		defer s.release()
		return w.FindInSeam(s.Voxels, p.lines(key))
	})
}

// seam returns the seam of a key, making it if needed.
func (p *interfaceMap) seam(key [2]int) (s *seam, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.seams[key]; s != nil {
		return s, nil
	}
	y, x := p.Y[key[0]], p.X[key[1]]
	s = &seam{left: (y.Last - y.First + 1) * (x.Last - x.First + 1)}
	if s.Voxels, s.release, err = p.Seam(oct.Rect(y.In0, y.In1, x.In0, x.In1)); err != nil {
		return nil, err
	}
	if s.release == nil {
		p.late = append(p.late, key)
	}
	p.seams[key] = s
	return s, nil
}

// complete records a piece's part of a seam, and reports whether the seam can be searched now.
func (p *interfaceMap) complete(key [2]int, s *seam) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.left--; s.left > 0 {
		return false
	}
	delete(p.seams, key)
	return s.release != nil
}

// lateLines returns the A-lines of seams in their order in the mosaic.
func (p *interfaceMap) lateLines(keys [][2]int) (all []oct.Rectangle) {
	slices.SortFunc(keys, func(a, b [2]int) int { return slices.Compare(a[:], b[:]) })
	for _, key := range keys {
		all = append(all, p.lines(key))
	}
	return all
}

// lines returns the A-lines of a seam.
func (p *interfaceMap) lines(key [2]int) oct.Rectangle {
	return compute.Lines(p.Y[key[0]], p.X[key[1]])
}

// appendParts appends the rectangle of A-lines r to all. It divides r until the voxels of each part's windows fit into
// the memory of a worker.
func (p *interfaceMap) appendParts(all []oct.Rectangle, r oct.Rectangle) ([]oct.Rectangle, error) {
	y, x := p.Fits(p.Box(r))
	if y && x {
		return append(all, r), nil
	}
	a, b := r, r
	switch longer := r.Height() >= r.Width(); {
	case !y && r.Height() > 1 && (x || longer):
		a.Y1 = r.Y0 + r.Height()/2
		b.Y0 = a.Y1
	case !x && r.Width() > 1:
		a.X1 = r.X0 + r.Width()/2
		b.X0 = a.X1
	default:
		return nil, p.TooLarge(p.Box(r))
	}
	all, err := p.appendParts(all, a)
	if err != nil {
		return nil, err
	}
	return p.appendParts(all, b)
}

// CheckSearch returns an error for invalid filter sizes, naming the flag.
func CheckSearch(sigmaXY, sigmaZ float64) error {
	switch {
	case !(sigmaXY >= 0) || sigmaXY > 1<<20:
		return oct.LayoutErrorf("--sigma_xy is %v, must be from 0 to %d", sigmaXY, 1<<20)
	case !(sigmaZ > 0) || sigmaZ > 1<<20:
		return oct.LayoutErrorf("--sigma_z is %v, must be above 0, at most %d", sigmaZ, 1<<20)
	}
	return nil
}
