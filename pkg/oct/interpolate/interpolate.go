// Package interpolate makes a plausible volume for a slice that is missing between two others on a common canvas, so
// that a stack has no hole. [Decide] reads the planes next to the gap and finds out how to fill it, or why it should
// stay; [Plan.Run] writes the volume.
package interpolate

import (
	"context"
	"math"

	"strata/pkg/dtype"
	"strata/pkg/filter"
	"strata/pkg/mem"
	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/oct/blocks"
	"strata/pkg/zarr"
	"strata/pkg/zarr/store"
)

// Method is how voxels are made.
type Method string

// Methods.
const (
	ZMorph   Method = "zmorph"   // between the last plane before the gap and the first after it, moved onto each other step by step
	Average  Method = "average"  // mean of both volumes
	Weighted Method = "weighted" // the same, smoothed along z
)

// Methods lists the methods.
var Methods = []Method{ZMorph, Average, Weighted}

// Blend is how the two moved planes are mixed by [ZMorph].
type Blend string

// Blends.
const (
	Gaussian Blend = "gaussian" // weighted also by the distance from the edge of what is above 0
	Linear   Blend = "linear"   // weighted by the distance from either end of the gap
)

// Options are the choices of the user.
type Options struct {
	Method            Method
	Blend             Blend
	Metric            filter.Metric
	MaxIterations     int     // of the registration, on each of its levels
	SearchWindow      int     // planes on either side of the gap in which the most similar pair is sought
	MinCorrelation    float64 // of the planes on both sides
	SlabSize          int     // planes that are averaged for the registration
	MinForeground     float64 // share of a plane's pixels that must be tissue for it to be compared
	MinNCCImprovement float64 // what the registration must gain over no map to be used
}

// DefaultOptions are those of the program.
func DefaultOptions() Options {
	return Options{Method: ZMorph, Blend: Gaussian, Metric: filter.MeanSquares, MaxIterations: 1000, SearchWindow: 5, MinCorrelation: 0.3, SlabSize: 3,
		MinForeground: 0.1, MinNCCImprovement: 0.05}
}

// Plan is the decision how to fill a gap.
type Plan struct {
	Options
	// Skipped is the reason why no volume is made; "": it is made.
	Skipped string
	Shape   [3]int
	Found   *Found // by ZMorph

	before, after *blocks.Volume
	ends          [2][]float32 // of ZMorph: the last plane before the gap and the first after it
}

// maxVoxelDifference is the part by which the voxel sizes of the two volumes may differ.
const maxVoxelDifference = 1e-3

// Decide finds out how to fill the gap between two volumes.
func Decide(ctx context.Context, before, after *ngff.Image, o Options, res oct.Resources) (*Plan, error) {
	p := &Plan{Options: o}
	var err error
	if p.before, err = blocks.Open(before); err != nil {
		return nil, err
	}
	if p.after, err = blocks.Open(after); err != nil {
		return nil, err
	}
	b, a := p.before, p.after
	for d := range 3 {
		if math.Abs(a.Voxel[d]-b.Voxel[d]) > maxVoxelDifference*b.Voxel[d] {
			return nil, oct.BadInput("%s: voxel size is %v µm along %c, that of %s is %v µm: both must have the same", a.Where, a.Voxel[d], "zyx"[d], b.Where, b.Voxel[d])
		}
	}
	if [2]int(a.Shape[1:]) != [2]int(b.Shape[1:]) {
		res.Warnf("%s has planes of %d × %d voxels, %s of %d × %d: both are filled up with 0; are they on one canvas (common-space)?",
			b.Where, b.Shape[1], b.Shape[2], a.Where, a.Shape[1], a.Shape[2])
	}
	p.Shape = [3]int{min(b.Shape[0], a.Shape[0]), max(b.Shape[1], a.Shape[1]), max(b.Shape[2], a.Shape[2])}
	if o.Method == ZMorph {
		if err := p.morph(ctx, res); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// Bytes returns the size of the volume that Run writes.
func (p *Plan) Bytes() int64 { return p.volume(nil).Bytes() }

// volume returns the output as a volume with voxels from a source.
func (p *Plan) volume(s blocks.Source) *blocks.Volume { return p.before.From(s, p.Shape) }

// Run writes the volume. It has the data type, chunks, axes and voxel size of the volume before the gap.
func (p *Plan) Run(ctx context.Context, out store.Writer, layout oct.Layout, res oct.Resources) (*ngff.Image, error) {
	plan := blocks.Plan{Work: "interpolating blocks"}
	both := mean{p.before, p.after, &[2]oct.Content{}}
	var source blocks.Source = both
	work := func(context.Context, *blocks.Block) error { return nil }
	divide := func(v *blocks.Volume) (*blocks.Cut, error) { return v.Fit(plan, layout, res) }
	switch p.Method {
	case ZMorph:
		res = res.Less(int64(mem.Product(2, 4, p.Shape[1], p.Shape[2])))
		plan.Fixed = int64(mem.Product(4, 3, p.Shape[1], p.Shape[2])) // what smoothing distances takes
		m := p.morphed()
		if source = m; !m.weighted() { // any block costs as much as its voxels
			divide = func(v *blocks.Volume) (*blocks.Cut, error) {
				plan.Size = v.Chunks(layout)
				return v.Cut(plan, res)
			}
		}
	case Weighted:
		taps := filter.GaussianKernel(weightedSigma, 0)
		plan.Halo[0], plan.Work = len(taps)/2, "smoothing blocks"
		plan.PerVoxel = 4 // reflected planes and the sums
		plan.Fixed = int64(mem.Product(8, len(taps), p.Shape[2]))
		work = func(_ context.Context, b *blocks.Block) error { smooth(b, taps); return nil }
	}
	cut, err := divide(p.volume(source))
	if err != nil {
		return nil, err
	}
	spec := cut.Spec(p.before.DType)
	image, err := cut.Map(ctx, out, layout, spec, work)
	if err == nil && p.Method != ZMorph { // which finds planes with tissue in both
		both.warn(res)
	}
	return image, err
}

// weightedSigma is the standard deviation of the Gaussian of Weighted along z, in planes.
const weightedSigma = 2

// smooth filters the voxels of a block without halo along z. Beyond the volume, planes are mirrored with their edge
// repeated.
func smooth(b *blocks.Block, taps []float64) {
	weights := make([]float32, len(taps))
	for i, t := range taps {
		weights[i] = float32(t)
	}
	r, width := len(taps)/2, b.Shape[2]
	tall := make([]float32, (b.Size[0]+2*r)*width)
	for y := range b.Shape[1] {
		for k := range b.Size[0] + 2*r {
			z := filter.Reflect.Index(b.Inner[0]+k-r, b.Shape[0])
			copy(tall[k*width:][:width], b.Voxels[b.At(z, y, 0):])
		}
		for z := range b.Size[0] {
			filter.Combine(b.Voxels[b.At(b.Inner[0]+z, y, 0):][:width], tall[z*width:], width, weights)
		}
	}
}

// mean is the mean of two volumes plane by plane from the first, because both begin at the surface that was cut. Beyond
// the far edges of the smaller there are zeros.
type mean struct {
	before, after *blocks.Volume
	content       *[2]oct.Content // of what is read of each
}

// warn names the volumes that show nothing.
func (m mean) warn(res oct.Resources) {
	a, b := m.content[0].Nothing(), m.content[1].Nothing()
	switch {
	case a != "" && b != "":
		res.Warnf("the slice between shows nothing: %s: %s; %s: %s", m.before.Where, a, m.after.Where, b)
	case a != "":
		res.Warnf("%s shows nothing, which spoils the slice between: %s", m.before.Where, a)
	case b != "":
		res.Warnf("%s shows nothing, which spoils the slice between: %s", m.after.Where, b)
	}
}

// Scratch returns the size of a box as stored and as float32.
func (m mean) Scratch(shape [3]int) int {
	return mem.Sum(max(m.before.Scratch(shape), m.after.Scratch(shape)), 8, mem.Product(8, shape[0], shape[1], shape[2]))
}

// Read reads a box of the mean.
func (m mean) Read(ctx context.Context, dst []float32, scratch []byte, start, shape [3]int) error {
	n := shape[0] * shape[1] * shape[2]
	floats := dtype.Slice[float32](scratch[:8*n])
	other, box, raw := floats[:n], floats[n:], scratch[8*n:]
	if err := padded(ctx, m.after, other, box, raw, start, shape, &m.content[1]); err != nil {
		return err
	}
	if err := padded(ctx, m.before, dst, box, raw, start, shape, &m.content[0]); err != nil {
		return err
	}
	for i, v := range other {
		dst[i] = dst[i]/2 + v/2
	}
	return nil
}

// padded reads a box that may reach beyond the far edges of a volume, where it is 0. box has as many elements as dst.
// content notes what is read, if it is not nil.
func padded(ctx context.Context, v *blocks.Volume, dst, box []float32, raw []byte, start, shape [3]int, content *oct.Content) error {
	dst = dst[:shape[0]*shape[1]*shape[2]]
	clear(dst)
	part := shape
	for d := 1; d < 3; d++ {
		if part[d] = min(shape[d], v.Shape[d]-start[d]); part[d] <= 0 {
			return nil
		}
	}
	if part == shape {
		box = dst
	}
	if err := v.Read(ctx, box, raw, start, part); err != nil {
		return err
	}
	if content != nil {
		content.Add(box[:part[0]*part[1]*part[2]])
	}
	if part == shape {
		return nil
	}
	for i := range part[0] * part[1] {
		z, y := i/part[1], i%part[1]
		copy(dst[(z*shape[1]+y)*shape[2]:], box[i*part[2]:][:part[2]])
	}
	return nil
}

// planesOf reads planes z0 … z1−1 of a volume onto a canvas of ny × nx pixels, with several workers.
func planesOf(ctx context.Context, v *blocks.Volume, z0, z1, ny, nx int, res oct.Resources) ([][]float32, error) {
	shape := [3]int{z1 - z0, ny, nx}
	n := shape[0] * ny * nx
	raw, err := mem.Alloc(max(v.Scratch(shape), 1))
	if err != nil {
		return nil, err
	}
	defer mem.Free(raw)
	whole := *v
	whole.Array = v.Array.With(zarr.Workers(res.Workers))
	all, box := make([]float32, n), []float32(nil)
	if ny > v.Shape[1] || nx > v.Shape[2] {
		box = make([]float32, n)
	}
	if err := padded(ctx, &whole, all, box, raw, [3]int{z0, 0, 0}, shape, nil); err != nil {
		return nil, err
	}
	var out [][]float32
	for z := range shape[0] {
		out = append(out, all[z*ny*nx:][:ny*nx:ny*nx])
	}
	return out, nil
}
