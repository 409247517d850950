package surface

import (
	"context"
	"maps"
	"slices"

	"strata/pkg/oct"
	"strata/pkg/oct/compute"
)

// tiles hands out the tiles of a mosaic, numbered along its shorter side so that few seams wait for their other tiles.
// The host takes the first remaining tile, a device the last, so that a single line divides the host's tiles from the
// device's.
type tiles struct {
	ny, nx      int // tiles; of a device alone, its pieces
	first, last int // the first that nobody has taken, and the first of those that a device has taken
}

// tiles returns all tiles.
func (p *interfaceMap) tiles() *tiles {
	ny, nx := p.Pieces()
	return &tiles{ny: ny, nx: nx, last: ny * nx}
}

// left returns how many tiles nobody has taken.
func (t *tiles) left() int { return t.last - t.first }

// front takes the first remaining tile.
func (t *tiles) front() (k int, ok bool) {
	if t.left() == 0 {
		return 0, false
	}
	t.first++
	return t.first - 1, true
}

// back takes the last remaining tile.
func (t *tiles) back() (k int, ok bool) {
	if t.left() == 0 {
		return 0, false
	}
	t.last--
	return t.last, true
}

// at returns the place of tile k in the mosaic.
func (t *tiles) at(k int) (i, j int) {
	if t.nx > t.ny {
		return k % t.ny, k / t.ny
	}
	return k / t.nx, k % t.nx
}

// byDevice reports whether a device has taken the tile at a place.
func (t *tiles) byDevice(i, j int) bool {
	if t.nx > t.ny {
		return j*t.ny+i >= t.last
	}
	return i*t.nx+j >= t.last
}

// share searches all tiles, and the seams between tiles of the same machine. p takes tiles from the front; a device
// that joins takes them from the back. It returns the device's search, or nil if no device joined.
func (p *interfaceMap) share(ctx context.Context, t *tiles) (device *interfaceMap, err error) {
	n := t.left()
	err = compute.RunBoth(ctx, p.side(n, t), n, t.front, func(res oct.Resources, _ int64) (side compute.Side[int, compute.InterfaceFinder], err error) {
		if device, err = p.join(&res); err != nil {
			return side, err
		}
		side = device.side(n, t)
		side.Next = t.back
		return side, nil
	})
	return device, err
}

// join plans a device's side of the search; nil with the error.
func (p *interfaceMap) join(res *oct.Resources) (*interfaceMap, error) {
	source, err := compute.NewSource(p.mosaic, res, res.Meter)
	if err != nil {
		return nil, err
	}
	s, err := p.Join(source, p.reserved)
	if err != nil {
		return nil, err
	}
	return &interfaceMap{Search: s, mosaic: p.mosaic, res: res, nonFinite: p.nonFinite, seams: map[[2]int]*seam{}}, nil
}

// side returns the part of a machine in the search of n tiles.
func (p *interfaceMap) side(n int, t *tiles) compute.Side[int, compute.InterfaceFinder] {
	ny, _ := p.Pieces()
	return compute.Side[int, compute.InterfaceFinder]{Plan: p.plan(n), Do: func(w compute.InterfaceFinder, k int) {
		i, j := t.at(k)
		for b := i * p.Bands(); b < min((i+1)*p.Bands(), ny); b++ {
			p.piece(w, b, j)
		}
	}}
}

// merge searches the seams between tiles of the host and of a device, after copying the device's part of each seam to
// the host. A seam is left for later if one side had no memory for it, or if the two sides divide the mosaic
// differently there.
func (p *interfaceMap) merge(ctx context.Context, device *interfaceMap, t *tiles) error {
	theirs := map[oct.Rectangle]*seam{}
	for key, s := range device.seams {
		if s.release != nil {
			theirs[device.lines(key)] = s
		}
	}
	var merged [][2]int
	for _, key := range slices.SortedFunc(maps.Keys(p.seams), func(a, b [2]int) int { return slices.Compare(a[:], b[:]) }) {
		s := p.seams[key]
		if s.release == nil { // it is late already
			continue
		}
		ok := false
		if other := theirs[p.lines(key)]; other != nil {
			var err error
			if ok, err = p.Merge(s.Voxels, device.Search, other.Voxels, p.partsByDevice(key, t)); err != nil {
				return err
			}
		}
		if ok {
			merged = append(merged, key)
		} else {
			s.release()
			p.late = append(p.late, key)
		}
	}
	if len(merged) == 0 {
		return nil
	}
	return compute.Run(ctx, p.Plan(len(merged)), compute.Each(merged), func(w compute.InterfaceFinder, key [2]int) {
		w.Then(func() error {
			defer p.seams[key].release()
			return w.FindInSeam(p.seams[key].Voxels, p.lines(key))
		})
	})
}

// partsByDevice returns the parts of a seam on the host that lie in tiles of a device.
func (p *interfaceMap) partsByDevice(key [2]int, t *tiles) (parts []oct.Rectangle) {
	y, x := p.Y[key[0]], p.X[key[1]]
	for i := y.First; i <= y.Last; i++ {
		for j := x.First; j <= x.Last; j++ {
			if t.byDevice(i, j) {
				parts = append(parts, p.seams[key].Box.And(p.Piece(i, j)))
			}
		}
	}
	return parts
}

// alone returns the seams for which a device had no memory, but for those that the host meets, which are the host's.
func (p *interfaceMap) alone() [][2]int {
	return slices.DeleteFunc(slices.Clone(p.late), func(key [2]int) bool { return p.seams[key] != nil })
}
