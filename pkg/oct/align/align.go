// Package align registers a volume to a template by a rigid transform and resamples it on the template's axes. It is
// the pipeline's align stage; [Run] does all of it.
package align

import (
	"context"
	"image"
	"math"
	"slices"

	"strata/pkg/dtype"
	"strata/pkg/filter/mattes"
	"strata/pkg/mem"
	"strata/pkg/metrics"
	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/oct/blocks"
	"strata/pkg/work"
	"strata/pkg/zarr"
	"strata/pkg/zarr/store"
)

// Grid selects the box of the output.
type Grid string

// Grids.
const (
	OfTemplate Grid = "template" // the template's box
	Whole      Grid = "whole"    // the smallest box, along the template's axes, that holds the volume
)

// Grids lists the grids.
var Grids = []string{string(OfTemplate), string(Whole)}

// Options are the parameters of [Run].
type Options struct {
	Level               int    // of the volume's pyramid, to register
	Orientation         string // of the volume: where z, y and x increase to
	TemplateOrientation string
	Rotation            []float64 // start, in degrees about x, y and z
	Iterations          int       // maximum number of steps of each resolution
	Grid                Grid
	Preview             bool // keep a picture for WritePreview
	StartPreview        bool // keep a picture for WriteStartPreview
	oct.Analysis             // the pyramid
}

// DefaultOptions returns the defaults of the flags.
func DefaultOptions() Options {
	return Options{Level: 2, Orientation: "SAR", TemplateOrientation: "SAR", Iterations: 1000, Grid: OfTemplate, Analysis: oct.DefaultAnalysis()}
}

// Result holds the image and the registration that [Run] made.
type Result struct {
	Image *ngff.Image // nil: only the transform was asked for
	// Transform maps places of the template to places of the volume in its orientation, both in mm from the centre of
	// the first voxel.
	Transform    *mattes.Result
	Levels       [2]int // that were registered, of the volume and the template
	VoxelUM      float64
	orientations [2]orientation
	preview      *image.Gray
	startPreview *image.Gray
}

// Metrics returns the metrics of the step.
func (r *Result) Metrics(in, template, out string) *metrics.Step {
	s := metrics.New("align_to_ras")
	s.Note("input_volume", in, "input volume")
	s.Note("template", template, "template")
	s.Note("output_volume", out, "output volume")
	s.Note("level", r.Levels[0], "pyramid level that was registered")
	t := r.Transform
	for d, axis := range []string{"x", "y", "z"} {
		s.Note("rotation_"+axis, t.Angles[d]*180/math.Pi, "rotation about "+axis+" in degrees")
		s.Note("translation_"+axis, t.Translation[d], "translation along "+axis+" in mm")
	}
	s.Judge("mutual_information", t.Information, "", "mutual information of the volume and the template", nil)
	s.Judge("mutual_information_start", t.Before, "", "mutual information before the registration", nil)
	s.Judge("overlap", t.Share, "", "share of the template's box that lies in the volume", nil)
	return s
}

// Run registers a volume to a template, and writes it with a pyramid if out is not nil. The registration holds a level
// of each in memory, or means of voxels where there is none that fits; the output is resampled from the full resolution
// in layers of planes.
func Run(ctx context.Context, in, template *ngff.Image, out store.Writer, opt Options, layout oct.Layout, res oct.Resources) (*Result, error) {
	r, v, t, err := open(in, template, opt)
	if err != nil {
		return nil, err
	}
	if out != nil && opt.Grid == OfTemplate {
		if err := r.enough(ctx, v, t, opt, layout, res); err != nil {
			return nil, err
		}
	}
	if err := r.register(ctx, v, t, opt, res); err != nil || out == nil {
		return r, err
	}
	g, err := r.grid(v, t, opt.Grid)
	if err != nil {
		return nil, err
	}
	if err := g.write(ctx, out, opt.Analysis, layout, res); err != nil {
		return nil, err
	}
	r.Image, err = ngff.Open(ctx, out, "", zarr.Workers(res.Workers), zarr.Meter(res.Meter))
	return r, err
}

// Start draws the picture of [Options.StartPreview], and does not register: the Result's Transform is that at which
// [Run] would start, with its mutual information.
func Start(ctx context.Context, in, template *ngff.Image, opt Options, res oct.Resources) (*Result, error) {
	r, v, t, err := open(in, template, opt)
	if err != nil {
		return nil, err
	}
	images, o, release, err := r.images(ctx, v, t, opt, res)
	if err != nil {
		return nil, err
	}
	defer release()
	if err := r.start(ctx, v, t, images, o); err != nil {
		return nil, err
	}
	return r, nil
}

// open opens both images, and reads where their axes run to.
func open(in, template *ngff.Image, opt Options) (r *Result, v, t *blocks.Volume, err error) {
	if v, err = blocks.Open(in); err != nil {
		return nil, nil, nil, err
	}
	if t, err = blocks.Open(template); err != nil {
		return nil, nil, nil, err
	}
	r = &Result{}
	if r.orientations[0], err = parseOrientation("input_orientation", opt.Orientation); err != nil {
		return nil, nil, nil, err
	}
	r.orientations[1], err = parseOrientation("template_orientation", opt.TemplateOrientation)
	return r, v, t, err
}

// enough returns an error if memory is too small to resample the volume on the template's grid. It is called before the
// registration and therefore assumes that the volume is not rotated; rotated tiles need more memory.
func (r *Result) enough(ctx context.Context, v, t *blocks.Volume, opt Options, layout oct.Layout, res oct.Resources) error {
	res.Warn, res.Debug = nil, nil // for the run itself
	still := &Result{orientations: r.orientations, Transform: &mattes.Result{}}
	g, err := still.grid(v, t, opt.Grid)
	if err != nil {
		return err
	}
	spec := g.spec()
	levels, err := opt.Analysis.Apply(&spec, g.size, "the volume", layout, &res)
	if err != nil {
		return err
	}
	w, err := ngff.CreatePlanes(ctx, store.Memory(), "", spec, levels)
	if err != nil {
		return err
	}
	defer w.Abort()
	_, _, _, err = g.plan(w, res)
	return err
}

// register finds the transform.
func (r *Result) register(ctx context.Context, v, t *blocks.Volume, opt Options, res oct.Resources) error {
	images, o, release, err := r.images(ctx, v, t, opt, res)
	if err != nil {
		return err
	}
	defer release()
	if opt.StartPreview {
		if err := r.start(ctx, v, t, images, o); err != nil {
			return err
		}
	}
	if r.Transform, err = mattes.Register(images[1], images[0], o); err != nil {
		return refused(ctx, v, t, err)
	}
	if opt.Preview {
		r.preview = draw(images[1], images[0], &r.Transform.Euler)
	}
	if r.Transform.Restarted {
		res.Warnf("%s, to %s: the coarse resolutions led astray: the transform was found from the start at the finest alone; look at it (--preview), and give a nearer --initial_rotation if it is wrong",
			v.Where, t.Where)
	}
	if !r.Transform.StepConverged {
		res.Warnf("the registration ended after %d steps without a maximum: more --max_iterations may find it", r.Transform.Iterations)
	}
	return nil
}

// start sets the transform to that at which the registration starts, and draws it.
func (r *Result) start(ctx context.Context, v, t *blocks.Volume, images [2]*mattes.Volume, o mattes.Options) error {
	e, err := mattes.Start(images[1], images[0], o)
	if err != nil {
		return refused(ctx, v, t, err)
	}
	r.Transform = &mattes.Result{Euler: e}
	r.startPreview = draw(images[1], images[0], &e)
	if r.Transform.Information, r.Transform.Share, err = mattes.Information(images[1], images[0], &e, o); err != nil {
		return refused(ctx, v, t, err)
	}
	r.Transform.Before = r.Transform.Information
	return nil
}

// refused returns the error of images that cannot be registered, or why the run was interrupted.
func refused(ctx context.Context, v, t *blocks.Volume, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return oct.BadInput("%s, to %s: %w", v.Where, t.Where, err)
}

// images loads what is registered, of the volume and of the template, and returns the parameters of the registration.
func (r *Result) images(ctx context.Context, v, t *blocks.Volume, opt Options, res oct.Resources) (images [2]*mattes.Volume, o mattes.Options, release func(), err error) {
	o = mattes.Options{Iterations: opt.Iterations, Each: func(n int, f func(i int) error) error {
		return work.Each(ctx, res.Workers, n, func(_, i int) error { return f(i) })
	}}
	switch len(opt.Rotation) {
	case 0:
	case 3:
		for d, a := range opt.Rotation {
			o.Rotation[d] = a * math.Pi / 180
		}
	default:
		return images, o, nil, oct.LayoutErrorf("--initial_rotation has %d numbers: want 3, the angles about x, y and z", len(opt.Rotation))
	}
	levels := [2]int{min(max(opt.Level, 0), len(v.Image.Levels)-1), 0}
	if levels[0] < opt.Level {
		res.Warnf("%s: level %d is the coarsest: it is registered instead of level %d", v.Where, levels[0], opt.Level)
	}
	for levels[1]+1 < len(t.Image.Levels) && slices.Max(t.Level(levels[1] + 1).Voxel[:]) <= 1.2*slices.Max(v.Level(levels[0]).Voxel[:]) {
		levels[1]++
	}
	var pair [2]coarse
	if pair, r.Levels, err = choose([2]*blocks.Volume{v, t}, levels, o, res); err != nil {
		return images, o, nil, err
	}
	for i, what := range [2]string{"volume", "template"} {
		res.Decided("registering level %d of the %s, %v voxels of %.4g µm", r.Levels[i], what, pair[i].shape(), pair[i].voxel())
	}
	um := pair[0].voxel()
	r.VoxelUM = slices.Max(um[:])
	release = func() {}
	for i, l := range pair {
		loaded, free, err := r.load(ctx, l, [2]*blocks.Volume{v, t}[i], r.orientations[i], res)
		if err != nil {
			release()
			return images, o, nil, err
		}
		before := release
		release = func() { free(); before() }
		images[i] = loaded
		res = res.Less(4 * int64(len(loaded.Voxels)))
	}
	return images, o, release, nil
}

func voxels(shape [3]int) float64 { return float64(shape[0]) * float64(shape[1]) * float64(shape[2]) }

// choose returns what is registered of the volume and the template: the given levels, or coarser ones if memory does
// not hold these, or means of the coarsest.
func choose(all [2]*blocks.Volume, levels [2]int, o mattes.Options, res oct.Resources) ([2]coarse, [2]int, error) {
	pair := [2]coarse{whole(all[0].Level(levels[0])), whole(all[1].Level(levels[1]))}
	for {
		need := voxels(pair[0].shape())*8 + voxels(pair[1].shape())*8 + float64(mattes.Bytes(pair[1].shape(), pair[0].shape(), o))
		if need <= float64(res.Assured()) {
			return pair, levels, nil
		}
		larger := 0
		if voxels(pair[1].shape()) > voxels(pair[0].shape()) {
			larger = 1
		}
		ok := false
		for _, i := range [2]int{larger, 1 - larger} {
			if levels[i]+1 < len(all[i].Image.Levels) {
				levels[i]++
				pair[i], ok = whole(all[i].Level(levels[i])), true
			} else {
				pair[i], ok = pair[i].coarser()
			}
			if ok {
				break
			}
		}
		if !ok {
			return pair, levels, res.TooLittle(int64(min(need, math.MaxInt64/4)), "registering %s of %v voxels to %s of %v", pair[0].Where, pair[0].shape(), pair[1].Where, pair[1].shape())
		}
	}
}

// load reads a level into memory and reorients it. The positions of its voxels are those in the volume v at level 0.
func (r *Result) load(ctx context.Context, l coarse, v *blocks.Volume, o orientation, res oct.Resources) (*mattes.Volume, func(), error) {
	shape := l.shape()
	n := shape[0] * shape[1] * shape[2]
	b, err := mem.Alloc(4 * n)
	if err != nil {
		return nil, nil, err
	}
	turned := dtype.Slice[float32](b)
	direct, err := mem.Alloc(4 * n)
	if err != nil {
		mem.Free(b)
		return nil, nil, err
	}
	defer mem.Free(direct)
	all := dtype.Slice[float32](direct)
	quiet := res.Less(8 * int64(n))
	quiet.Progress = nil
	if err := l.read(ctx, all, quiet); err != nil {
		mem.Free(b)
		return nil, nil, err
	}
	o.reorient(turned, all, shape)
	im := &mattes.Volume{Shape: turn(o, shape), Voxels: turned}
	size, fine := turn(o, l.voxel()), turn(o, v.Voxel)
	for d := range 3 {
		im.Spacing[2-d] = size[d] / 1000
		im.Origin[2-d] = (size[d] - fine[d]) / 2000
	}
	return im, func() { mem.Free(b) }, nil
}
