package comparison

import (
	"context"
	"math"

	"strata/pkg/dtype"
	"strata/pkg/ngff/spatial"
	"strata/pkg/oct"
	"strata/pkg/zarr"
)

// pair is a plane of two images and what both cover of it.
type pair struct {
	images [2]Image
	levels [2]spatial.Level
	plane  int       // of the first image
	at     [2][2]int // first pixel (y, x) of the region in each image
	z      [2]int
	offset [2]int // of the second image's first pixel in the first
	size   [2]int
	voxel  [2]float64
	step   int
	seams  [2][]seam // of each image, in pixels of the region
	raw    []byte    // what load reads, as stored
}

// mostDifference is the maximum relative difference between the voxel sizes of the images.
const mostDifference = 1e-3

// open finds the region that both images cover.
func open(first, second Image, opt Options) (*pair, error) {
	p := &pair{images: [2]Image{first, second}, step: opt.TileStep}
	for k, im := range p.images {
		levels, err := spatial.Levels(im.Image)
		if err != nil {
			return nil, oct.InputFault(err)
		}
		p.levels[k] = levels[0]
	}
	a, b := &p.levels[0], &p.levels[1]
	var shift [3]int
	for d := range 3 {
		if math.Abs(a.Size[d]-b.Size[d]) > mostDifference*a.Size[d] {
			return nil, oct.BadInput("%s: voxel size is %v µm along %c, that of %s is %v µm: want the same", second.Path, b.Size[d], "zyx"[d], first.Path, a.Size[d])
		}
		v := (b.Origin[d] - a.Origin[d]) / a.Size[d]
		if !(math.Abs(v) < farthest) {
			return nil, oct.BadInput("%s: lies %.3g voxels from %s along %c, by their translations", second.Path, v, first.Path, "zyx"[d])
		}
		shift[d] = int(math.RoundToEven(v))
	}
	p.voxel, p.offset = [2]float64{a.Size[1], a.Size[2]}, [2]int{shift[1], shift[2]}
	for d := range 2 {
		from, to := max(0, p.offset[d]), min(a.Shape[d+1], p.offset[d]+b.Shape[d+1])
		if from >= to {
			return nil, oct.BadInput("%s: covers nothing of %s, by their translations", second.Path, first.Path)
		}
		p.at[0][d], p.at[1][d], p.size[d] = from, from-p.offset[d], to-from
	}
	low, high := max(0, shift[0]), min(a.Shape[0], shift[0]+b.Shape[0])
	if p.plane = opt.Plane; p.plane < 0 {
		p.plane = (low + high) / 2
	}
	if p.plane < low || p.plane >= high {
		return nil, oct.BadInput("--z_slice %d: both images have the planes %d to %d", opt.Plane, low, high-1)
	}
	p.z = [2]int{p.plane, p.plane - shift[0]}
	p.findSeams()
	return p, nil
}

// known reports whether files say where the tiles lie.
func (p *pair) known() bool { return p.images[0].Places != nil || p.images[1].Places != nil }

// findSeams sets the seams of both images; those of an image without places are the other's.
func (p *pair) findSeams() {
	region := oct.Rect(0, p.size[0], 0, p.size[1])
	for k, im := range p.images {
		of, at := im.Places, k
		if of == nil {
			of, at = p.images[1-k].Places, 1-k
		}
		if of == nil {
			p.seams[k] = steps(p.size, p.step)
			continue
		}
		for _, s := range of.seams() {
			s.Rectangle = s.Moved(-p.at[at][0], -p.at[at][1]).And(region)
			if !s.Empty() {
				p.seams[k] = append(p.seams[k], s)
			}
		}
	}
}

// bytesPerPixel of a row is the memory of both images as stored and as numbers, and of the seams.
const bytesPerPixel = 2*(8+4) + 2

// rows returns how many rows are read at once: those of a chunk, or fewer if memory holds no more beside the pictures.
func (p *pair) rows(res oct.Resources) int {
	most := res.Mem / 4 / (int64(p.size[1]+2) * bytesPerPixel)
	return int(max(1, min(int64(p.size[0]), int64(max(p.levels[0].Chunk[1], p.levels[1].Chunk[1], 16)), most-2)))
}

// read goes through the region.
func (p *pair) read(ctx context.Context, res oct.Resources) (*sums, error) {
	rows := p.rows(res)
	s := newSums(p)
	b := &band{width: p.size[1]}
	for y := 0; y < p.size[0]; y += rows {
		b.from, b.to = y, min(y+rows, p.size[0])
		b.first, b.last = max(0, b.from-1), min(p.size[0], b.to+1) // with a row around, for gradients
		for k := range 2 {
			var err error
			if b.v[k], err = p.load(ctx, k, oct.Rect(b.first, b.last, 0, p.size[1]), b.v[k], res); err != nil {
				return nil, err
			}
			b.mark(k, p.seams[k])
		}
		s.add(b)
	}
	return s, nil
}

// load reads a rectangle of the region of image k into dst, which it returns.
func (p *pair) load(ctx context.Context, k int, r oct.Rectangle, dst []float32, res oct.Resources) ([]float32, error) {
	l := &p.levels[k]
	n, t := r.Area(), l.Array.DType()
	if cap(p.raw) < n*t.Size() {
		p.raw = make([]byte, n*t.Size())
	}
	raw := p.raw[:n*t.Size()]
	strides := make([]int, len(l.Array.Shape()))
	for i, s := range [3]int{n * t.Size(), r.Width() * t.Size(), t.Size()} {
		if d := l.Axes[i]; d >= 0 {
			strides[d] = s
		}
	}
	start, shape := [3]int{p.z[k], p.at[k][0] + r.Y0, p.at[k][1] + r.X0}, [3]int{1, r.Height(), r.Width()}
	a := l.Array.With(zarr.Workers(res.Workers), zarr.Meter(res.Meter), zarr.Budget(max(1, res.Mem/2)))
	if err := a.ReadStrided(ctx, l.Region(start, shape, nil), raw, strides); err != nil {
		return nil, oct.Readable(err)
	}
	if t == dtype.Bool {
		t = dtype.Uint8
	}
	if cap(dst) < n {
		dst = make([]float32, n)
	}
	dst = dst[:n]
	res.Done(int64(len(raw)))
	return dst, dtype.Convert(dtype.Bytes(dst), dtype.Float32, raw, t)
}

// band is a number of rows of the region, with a row above and below where there is one.
type band struct {
	first, last int // rows in memory
	from, to    int // rows that count
	width       int
	v           [2][]float32
	marks       [2][]uint8 // of the rows that count
}

// Marks of pixels in overlaps of tiles.
const (
	beside = 1 << iota // that lie beside each other
	below
)

// mark marks the seams of image k.
func (b *band) mark(k int, seams []seam) {
	n := (b.to - b.from) * b.width
	if cap(b.marks[k]) < n {
		b.marks[k] = make([]uint8, n)
	}
	b.marks[k] = b.marks[k][:n]
	clear(b.marks[k])
	for _, s := range seams {
		bit := uint8(below)
		if s.vertical {
			bit = beside
		}
		for y := max(s.Y0, b.from); y < min(s.Y1, b.to); y++ {
			row := b.marks[k][(y-b.from)*b.width:][:b.width]
			for x := s.X0; x < s.X1; x++ {
				row[x] |= bit
			}
		}
	}
}
