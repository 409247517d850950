package survey

import (
	"context"
	"errors"
	"fmt"

	"strata/pkg/filter"
	"strata/pkg/images"
	"strata/pkg/mem"
	"strata/pkg/ngff"
	"strata/pkg/oct/stitch/overview"
	"strata/pkg/zarr"
)

const (
	// side is the maximum length of a picture of a tile in pixels.
	side = 256
	// mostPictures bounds the tiles of which planes are read, mostPlane the bytes of a plane.
	mostPictures = 400
	mostPlane    = 1 << 30
)

// errEnough says that no more planes are read.
var errEnough = errors.New("enough tiles were read")

// picture is a plane of a tile, reduced by whole numbers.
type picture struct {
	ny, nx int
	pix    []float32
	detail []float32 // pix without noise and without shading, for comparisons
}

// plane reads the picture of a tile in its middle plane.
type plane func(ctx context.Context, tile int) (*picture, error)

// pictures is a grid of tiles of which pictures can be read.
type pictures struct {
	grid    [2]int
	at      map[[2]int]int // the tile of a place
	read    plane
	seen    map[int]*picture // nil for a tile that cannot be read
	fits    map[[3]int]fit   // of two tiles along an axis
	faults  []error
	phase   *filter.Phase
	overlap [2]float64 // fractions along y and x, for the preview
	limit   int
}

func newPictures(read plane) *pictures {
	return &pictures{read: read, seen: map[int]*picture{}, fits: map[[3]int]fit{}, phase: filter.NewPhase(), limit: mostPictures}
}

// picture returns the picture of a tile, nil if it cannot be read.
func (m *pictures) picture(ctx context.Context, tile int) (*picture, error) {
	if p, ok := m.seen[tile]; ok {
		return p, nil
	}
	if len(m.seen) >= m.limit {
		return nil, errEnough
	}
	p, err := m.read(ctx, tile)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		m.faults = append(m.faults, err)
		p = nil
	}
	if p != nil {
		p.detail = detail(p)
	}
	m.seen[tile] = p
	return p, nil
}

// Radii in pixels of the structures that are compared. Smaller structures are noise; larger ones also occur in tiles
// that are no neighbours.
const (
	grain   = 1
	texture = 20
)

// detail returns the details of a picture.
func detail(p *picture) []float32 {
	v := overview.BoxMean(p.pix, [2]int{p.ny, p.nx}, [2]int{grain, grain})
	for k, wide := range overview.BoxMean(p.pix, [2]int{p.ny, p.nx}, [2]int{min(texture, p.ny-1), min(texture, p.nx-1)}) {
		v[k] -= wide
	}
	return v
}

// readRegion reads a plane of an array and reduces it.
func readRegion(ctx context.Context, a *zarr.Array, r zarr.Region) (*picture, error) {
	n := len(r.Shape)
	ny, nx := r.Shape[n-2], r.Shape[n-1]
	bytes := mem.Product(append([]int{a.DType().Size()}, r.Shape...)...)
	if bytes > mostPlane {
		return nil, fmt.Errorf("%s: a plane of %d × %d pixels is too large for a preview", a.Location(), ny, nx)
	}
	data := make([]byte, bytes)
	if err := a.Read(ctx, r, data); err != nil {
		return nil, err
	}
	v := make([]float32, ny*nx)
	filter.FromStored(a.DType(), v, data[:ny*nx*a.DType().Size()])
	return shrink(v, ny, nx), nil
}

func shrink(v []float32, ny, nx int) *picture {
	bin := max(1, (max(ny, nx)+side-1)/side)
	if bin == 1 {
		return &picture{ny: ny, nx: nx, pix: v}
	}
	p := &picture{ny: ny / bin, nx: nx / bin}
	p.pix = filter.Binned(nil, filter.Crop(v, nx, [2]int{0, 0}, p.ny*bin, p.nx*bin), p.ny*bin, p.nx*bin, [2]int{bin, bin})
	return p
}

// readFile reads the middle plane of the first image in a file.
func readFile(ctx context.Context, path string) (*picture, error) {
	st, key, err := images.Open(ctx, path)
	if err != nil {
		return nil, err
	}
	defer st.Close()
	im, err := ngff.OpenPresent(ctx, st, key, zarr.Workers(1))
	if err != nil {
		return nil, err
	}
	level := im.Levels[0].Array
	for _, l := range im.Levels[1:] {
		if s := l.Array.Shape(); s[len(s)-1] >= side {
			level = l.Array
		}
	}
	return readRegion(ctx, level, middle(im, level))
}

// middle returns the middle plane of an array of an image, at the first time and channel.
func middle(im *ngff.Image, a *zarr.Array) zarr.Region {
	shape := a.Shape()
	r := zarr.Region{Start: make([]int, len(shape)), Shape: make([]int, len(shape))}
	for d, n := range shape {
		switch name := im.Axes[d].Name; name {
		case "y", "x":
			r.Shape[d] = n
		case "z":
			r.Start[d], r.Shape[d] = n/2, 1
		default:
			r.Shape[d] = 1
		}
	}
	return r
}
