// Package crop cuts an image below the tissue surface. It is the pipeline's crop stage; [Run] does all of it.
package crop

import (
	"context"
	"fmt"
	"iter"
	"math"
	"sync"
	"sync/atomic"

	"strata/pkg/filter"
	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/oct/compute/transfer"
	"strata/pkg/oct/surface"
	"strata/pkg/work"
	"strata/pkg/zarr"
	"strata/pkg/zarr/store"
)

// Options selects the planes that [Run] keeps, and how it finds the interface.
type Options struct {
	Depth           float64 // kept below the interface, µm
	BeforeInterface bool    // also cut off everything above the interface
	PadAfter        bool    // append zeros if the image ends before that depth
	ZeroNonFinite   bool    // write 0 for NaN and infinite voxels
	// PercentileMax is the percentile of all magnitudes |v|, 0…100, beyond which the search clips them; 100 clips
	// nothing.
	PercentileMax float64
	MaxFraction   float64 // fraction of the planes, counted from the first, that may hold the interface: 0…1

	SigmaXY, SigmaZ float64 // of the search, as in package focal
	Log             bool
}

// Metrics reports where [Run] found the interface and which planes it kept. Planes are counted from the first plane of
// the input.
type Metrics struct {
	Interface   int     `json:"interface_plane"`
	InterfaceUM float64 `json:"interface_um"` // from the first plane
	First       int     `json:"first_plane"`  // kept
	Kept        int     `json:"planes_kept"`
	Padded      int     `json:"planes_padded"`
	Planes      int     `json:"planes"` // of the output
	Missing     int     `json:"planes_missing"`
	InputPlanes int     `json:"input_planes"`
	VoxelZ      float64 `json:"voxel_size_z_um"`
	Depth       float64 `json:"depth_um"` // requested

	Median       float64 `json:"interface_median"` // before rounding
	ALines       int64   `json:"a_lines"`
	ALinesUsed   int64   `json:"a_lines_used"`         // with a gradient of at least Threshold
	Threshold    float64 `json:"gradient_threshold"`   // separates tissue from background
	Clip         float64 `json:"clip"`                 // magnitude at which the search clipped; 0: none
	Percentile   float64 `json:"percentile_max"`       // percentile that Clip was taken from
	SearchPlanes int     `json:"planes_searched"`      // that may hold the interface
	Found        bool    `json:"interface_found"`      // false: no A-line brightens anywhere
	Noise        bool    `json:"only_noise,omitempty"` // depths of A-lines have nothing in common
	NonFinite    int64   `json:"non_finite_voxels,omitempty"`
}

// Run cuts an image (z, y, x), a mosaic grid or a stitched slice, below the tissue interface and writes it as an
// OME-Zarr image of the same type and chunks (stages specification, crop).
//
// The interface of an A-line is defined as in focal's step 1: its largest gradient in the first MaxFraction of the
// planes, with magnitudes clipped at PercentileMax of all magnitudes of the image (exact, linear between order
// statistics; a percentile of 0 clips nothing). The interface of the image is the median over the A-lines whose
// gradient stands out from the background by Otsu's method (1024 bins from 0 to the first power of two above the
// largest gradient, or twice that; A-lines that never brighten are ignored), rounded half to even, and at most the
// last plane. An image that brightens nowhere has its interface at plane 0, with a warning.
//
// Run keeps the planes from the interface, or from 0, to interface + Depth/voxel size, rounded half to even, at
// least one. NaN and infinite voxels count as 0 in the search, are counted in the meter and stay unchanged in the
// output, or become 0 with ZeroNonFinite.
//
// Run reads the image up to three times, tile by tile: completely for the percentile (not at 100; twice if a
// sample from the middle tile does not locate it roughly), the planes that the search needs, and the planes that
// are kept. Of raw chunks, and of chunks that can be decoded block by block, it reads only those planes. A worker
// needs memory for a tile and its encoded form.
func Run(ctx context.Context, in *ngff.Image, out store.Writer, c Options, layout oct.Layout, res oct.Resources) (*ngff.Image, Metrics, error) {
	m, err := oct.OpenMosaic(in)
	if err != nil {
		return nil, Metrics{}, err
	}
	p, err := planCrop(m, c, res)
	if err != nil {
		return nil, Metrics{}, err
	}
	if err := layout.Check(p.piece(m.Shape[0], layout)); err != nil { // what cannot be written, before anything is read
		return nil, p.metrics, err
	}
	if err := p.enough(); err != nil { // nor what needs more memory than there is
		return nil, p.metrics, err
	}
	if err := p.find(ctx); err != nil {
		return nil, p.metrics, err
	}
	if err := p.decide(); err != nil {
		return nil, p.metrics, err
	}
	if err := p.write(ctx, out, layout); err != nil {
		return nil, p.metrics, err
	}
	p.metrics.NonFinite = p.nonFinite.Load()
	if n := p.metrics.NonFinite; n > 0 {
		res.Meter.AddNonFinite(n)
		kept := "they stay in the output"
		if c.ZeroNonFinite {
			kept = "they are 0 in the output"
		}
		res.Warnf("%s: %d voxels are NaN or infinite: the interface was searched as if they were 0, and %s", m.Where, n, kept)
	}
	im, err := ngff.Open(ctx, out, "", zarr.Workers(res.Workers), zarr.Meter(res.Meter))
	return im, p.metrics, err
}

// cropper holds the state of a running crop.
type cropper struct {
	*transfer.Columns
	c         Options
	res       oct.Resources
	voxel     float64 // along z, µm
	metrics   Metrics
	nonFinite atomic.Int64
	counted   int // planes, from the first, whose voxels are in nonFinite
}

func planCrop(m *oct.Mosaic, c Options, res oct.Resources) (*cropper, error) {
	flag := func(name string, v float64, want string) error {
		return oct.LayoutErrorf("--%s is %v, must be %s", name, v, want)
	}
	switch err := surface.CheckSearch(c.SigmaXY, c.SigmaZ); {
	case err != nil:
		return nil, err
	case !(c.Depth > 0) || math.IsInf(c.Depth, 0):
		return nil, flag("depth", c.Depth, "a positive number of µm")
	case !(c.PercentileMax >= 0 && c.PercentileMax <= 100):
		return nil, flag("percentile_max", c.PercentileMax, "from 0 to 100")
	case !(c.MaxFraction > 0 && c.MaxFraction <= 1):
		return nil, flag("max_interface_fraction", c.MaxFraction, "above 0, at most 1")
	}
	voxel := m.Image.VoxelSize[0]
	if _, _, ok := ngff.Micrometres(m.Image.Unit[0]); !ok || !(voxel > 0) || math.IsInf(voxel, 0) {
		return nil, oct.BadInput("%s: voxel size %v along z is not a positive length", m.Where, voxel)
	}
	columns, err := transfer.NewColumns(m, res.Meter)
	if err != nil {
		return nil, err
	}
	passes := 3
	if c.PercentileMax == 100 {
		passes = 2
	}
	res.Coming = res.Coming.Pass(passes)
	p := &cropper{Columns: columns, c: c, res: res, voxel: voxel}
	p.metrics = Metrics{InputPlanes: m.Shape[0], VoxelZ: voxel, Depth: c.Depth, Percentile: c.PercentileMax,
		SearchPlanes: max(1, int(c.MaxFraction*float64(m.Shape[0])+1e-9))}
	return p, nil
}

// workers returns how many workers fit into memory, with each bytes for every worker and reserved bytes for other
// uses.
func (p *cropper) workers(each, reserved int64) (int, error) {
	if each > p.res.Mem-reserved {
		return 0, p.res.TooLittle((each+reserved)*4/3, "%s: cropping tiles of %v voxels", p.Mosaic.Where, p.Mosaic.Tile())
	}
	return int(min(int64(p.res.Workers), (p.res.Mem-reserved)/each)), nil
}

// enough returns an error if there is too little memory for the search, or for the fewest planes that it may find.
func (p *cropper) enough() error {
	depth := max(1, math.RoundToEven(p.c.Depth/p.voxel))
	fewest := int(min(depth, float64(p.Mosaic.Shape[0])))
	if p.c.BeforeInterface { // which may be one of the last
		fewest = min(fewest, p.Mosaic.Shape[0]-min(p.metrics.SearchPlanes, p.Mosaic.Shape[0]-1))
	}
	_, each, pyramid := p.output(0, fewest)
	if _, err := p.workers(each, pyramid); err != nil {
		return err
	}
	s, depths := p.search()
	return surface.Check(p.Mosaic, s, p.res, int64(depths)*8*1024, true)
}

// search returns the search without the magnitude at which it clips, and the number of depths of gradients that it may
// find.
func (p *cropper) search() (s filter.InterfaceSearch, depths int) {
	s = filter.InterfaceSearch{SigmaXY: p.c.SigmaXY, SigmaZ: p.c.SigmaZ, Log: p.c.Log, Planes: p.metrics.SearchPlanes}
	return s, s.Planes + int(math.Ceil(0.5*s.SigmaZ)) + 1
}

// find searches the interface and fills in the metrics.
func (p *cropper) find(ctx context.Context) error {
	s, depths := p.search()
	if p.c.PercentileMax < 100 {
		clip, err := p.percentile(ctx)
		if err != nil {
			return err
		}
		s.Clip, p.metrics.Clip = clip, float64(clip)
	}
	reserved := int64(depths) * 8 * 1024
	g := filter.NewGradients(depths)
	all := surface.NewDepths(s.Planes, s.SigmaXY)
	take := func(_ context.Context, r oct.Rectangle, depth []int32, gradient []float32) error {
		g.Add(depth, gradient)
		all.Add(r, depth, gradient)
		return nil
	}
	var nonFinite *atomic.Int64
	if p.counted = p.Mosaic.Shape[0]; p.c.PercentileMax == 100 { // nobody has counted them
		nonFinite, p.counted = &p.nonFinite, s.Seen(p.Mosaic.Shape[0])
	}
	if err := surface.FindInterfaces(ctx, p.Mosaic, s, p.res, reserved, true, take, nonFinite); err != nil {
		return err
	}
	found, ok := g.Find()
	p.metrics.Found, p.metrics.Median = ok, found.Depth
	p.metrics.ALines, p.metrics.ALinesUsed, p.metrics.Threshold = found.Lines, found.Used, found.Threshold
	if !ok {
		p.res.Warnf("%s: the image brightens nowhere in its first %d planes: the interface is assumed to be plane 0", p.Mosaic.Where, s.Planes)
	}
	p.metrics.Interface = min(int(math.RoundToEven(found.Depth)), p.Mosaic.Shape[0]-1)
	p.metrics.InterfaceUM = float64(p.metrics.Interface) * p.voxel
	if p.metrics.Noise = all.Noise(); p.metrics.Noise {
		p.res.Warnf("%s: %s: nothing shows where tissue begins, and plane %d is a guess", p.Mosaic.Where, surface.NoiseText, p.metrics.Interface)
	}
	return nil
}

// decide determines the planes to keep.
func (p *cropper) decide() error {
	r := &p.metrics
	depth := max(1, math.RoundToEven(p.c.Depth/p.voxel))
	if p.c.BeforeInterface {
		r.First = r.Interface
	}
	whole := float64(r.Interface-r.First) + depth
	size := float64(p.Mosaic.Shape[1]) * float64(p.Mosaic.Shape[2]) * float64(p.Mosaic.DType.Size())
	if p.c.PadAfter && whole > 8*float64(r.InputPlanes) && whole*size > oct.VastBytes {
		return oct.LayoutErrorf("%s: --depth %v µm with --pad_after makes %.0f planes of %d, %.1f TiB: is it meant to be in µm?",
			p.Mosaic.Where, p.c.Depth, whole, r.InputPlanes, whole*size/oct.VastBytes)
	}
	r.Kept = int(min(whole, float64(r.InputPlanes-r.First)))
	short := whole - float64(r.Kept)
	if p.c.PadAfter {
		r.Padded = int(short)
	} else if r.Missing = int(min(short, math.MaxInt32)); short > 0 {
		p.res.Warnf("%s: the image ends %.0f planes before %v µm below the interface at plane %d: the output has %d planes; --pad_after adds zeros",
			p.Mosaic.Where, short, p.c.Depth, r.Interface, r.Kept)
	}
	r.Planes = r.Kept + r.Padded
	return nil
}

// piece returns the shape written at a time: a tile in the output's full depth, rounded up to whole chunks along
// z.
func (p *cropper) piece(planes int, layout oct.Layout) []int {
	piece := []int{planes, p.Mosaic.Chunk[1], p.Mosaic.Chunk[2]}
	if len(layout.Chunks) == 3 && layout.Chunks[0] > 0 {
		piece[0] = (planes + layout.Chunks[0] - 1) / layout.Chunks[0] * layout.Chunks[0]
	}
	return piece
}

// chunks returns the chunks of an output of so many planes.
func (p *cropper) chunks(planes int) []int {
	m := p.Mosaic
	if m.Chunk[0] == m.Shape[0] { // tiles stay whole
		return []int{planes, m.Chunk[1], m.Chunk[2]}
	}
	return []int{min(m.Chunk[0], planes), m.Chunk[1], m.Chunk[2]}
}

// output returns the bytes of a buffer for a tile of so many planes from the first on, of all that a worker needs, and
// of the pyramid.
func (p *cropper) output(first, planes int) (buffer, each, pyramid int64) {
	m := p.Mosaic
	area := int64(m.Chunk[1]) * int64(m.Chunk[2]) * int64(m.DType.Size())
	tile := int64(planes) * area
	pyramid = max(p.res.Mem/4, 2*int64(p.chunks(planes)[0])*area+64<<10)
	buffer, scratch := tile, p.Scratch
	switch {
	case p.Whole() && m.Chunk[0] == m.Shape[0]: // a decoded tile, of which a part is kept
		buffer = max(tile+int64(first)*area, m.TileBytes())
	case p.Whole():
		scratch += int64(m.Chunk[0]) * area // likewise
	}
	return buffer, buffer + max(scratch, tile) + 1<<20, pyramid
}

// write copies the kept planes. It works on the host even with a device: nothing is computed, so an upload would
// be wasted.
func (p *cropper) write(ctx context.Context, out store.Writer, layout oct.Layout) error {
	m, r := p.Mosaic, &p.metrics
	level := m.Image.Levels[0]
	chunks := p.chunks(r.Planes)
	buffer, each, pyramid := p.output(r.First, r.Planes)
	workers, err := p.workers(each, pyramid)
	if err != nil {
		return err
	}
	ny, nx := m.Tiles()
	all := p.res.ForAll(int64(p.res.Busy(ny*nx))*each, p.res.Mem-pyramid)
	gate, ctx := p.res.Crew(oct.Team{What: fmt.Sprintf("copying tiles of %v voxels", m.Tile()), Workers: workers, Pieces: ny * nx, Each: each, All: all}).Gate(ctx, workers)
	pyramid = p.res.Mem - int64(workers)*each // what is left: a chunk without room is made from stored ones
	shape := []int{r.Planes, m.Shape[1], m.Shape[2]}
	w, err := oct.Create(ctx, out, layout, ngff.ImageSpec{
		Format: m.Format(), Name: m.Image.Name, Shape: shape, DType: m.DType,
		Axes: m.Axes(), Scale: level.Scale, Translation: oct.MovedBy(level.Transform, []int{r.First, 0, 0}), Chunks: chunks, Budget: pyramid, Omero: m.Image.Omero.WithoutWindows(),
	}, p.piece(r.Planes, layout), p.res)
	if err != nil {
		return err
	}
	defer w.Abort()
	next, stop := iter.Pull(ngff.TileOrder(shape, []int{r.Planes, m.Chunk[1], m.Chunk[2]}, m.Image.Axes))
	defer stop()
	var mu sync.Mutex
	g, gctx := work.WithContext(ctx)
	for i := range workers {
		g.Go(func() error {
			if !gate.Admit(gctx, i) {
				return nil
			}
			defer gate.Leave(i)
			v, err := transfer.NewTileBuffer(buffer)
			if err != nil {
				return err
			}
			defer v.Free()
			for {
				mu.Lock()
				start, ok := next()
				mu.Unlock()
				if !ok {
					return nil
				}
				at := m.Extent(start[1]/m.Chunk[1], start[2]/m.Chunk[2])
				if err := p.Read(gctx, v, r.First, r.First+r.Kept, at); err != nil {
					return err
				}
				plane := at.Area() * m.DType.Size()
				if after := max(p.counted-r.First, 0); after < r.Kept {
					p.nonFinite.Add(filter.NonFiniteStored(p.Mosaic.DType, v.Data[after*plane:]))
				}
				if p.c.ZeroNonFinite {
					filter.ZeroNonFiniteStored(m.DType, v.Data)
				}
				planes := v.Raw[v.Start:][:r.Planes*plane]
				clear(planes[len(v.Data):])
				if err := w.WriteTile(gctx, []int{0, at.Y0, at.X0}, []int{r.Planes, at.Height(), at.Width()}, planes); err != nil {
					return err
				}
				p.res.Done(int64(m.Shape[0] * at.Area() * m.DType.Size()))
				gate.Ended(i)
			}
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	return w.Close(ctx)
}
