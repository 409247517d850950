// Package preview draws OME-Zarr images as pictures for judging at a glance: three orthogonal cuts or
// projections side by side in true proportions, with a scale bar, the range of values and the positions of
// the cuts.
//
//	p, err := preview.Render(ctx, image, preview.Defaults(), resources)
//	err = png.Encode(f, p.Image)
//
// Cuts read only the chunks that they cross; projections stream through the level once. Neither the data read
// nor the pixels depend on the number of workers or the memory.
package preview

import (
	"context"
	"errors"
	"fmt"
	"image"
	"slices"
	"time"

	"strata/pkg/colormap"
	"strata/pkg/meter"
	"strata/pkg/ngff"
	"strata/pkg/oct"
)

// Auto, as level in [Options], selects the finest level whose panels fit into the picture with one pixel per
// voxel along X and Y; as channel, all channels that have a colour.
const Auto = -1

// Values of [Options.Projection].
const (
	None = "none" // cuts, one voxel thick
	AIP  = "aip"  // average intensity projections
	MIP  = "mip"  // maximum intensity projections
)

// Options select what a preview shows, and how.
type Options struct {
	Level       int        // pyramid level, or Auto
	Projection  string     // None, AIP or MIP
	At          []int      // voxel of level 0 (z, y, x) where the cuts cross; nil: the centre
	Percentiles [2]float64 // range of values shown, where Window is nil
	Window      *[2]float64
	Colormap    string // a name of package colormap
	Channel     int    // the channel to show; Auto: all that the image gives colours, together, or else the first
	MaxSize     int    // longest side of the picture, px
	ScaleBar    bool
	Labels      bool // title, captions, colour bar, positions of the cuts
	Title       string
}

// Defaults returns options that suit most images.
func Defaults() Options {
	return Options{Level: Auto, Channel: Auto, Projection: None, Percentiles: [2]float64{0.1, 99.9}, Colormap: "gray", MaxSize: 1600, ScaleBar: true, Labels: true}
}

// Preview is a picture and a description of its content.
type Preview struct {
	Image  *image.RGBA
	Level  int        // pyramid level that was read
	Window [2]float64 // values of the first and last colour
	Pixel  float64    // side of a pixel of the panels, µm
	Panels []Panel
	// ScaleBar is the bar's box in the picture, empty if there is none; ScaleBarMicrometres is the length
	// that it represents.
	ScaleBar            image.Rectangle
	ScaleBarMicrometres float64
}

// Panel is one cut or projection in the picture.
type Panel struct {
	Name  string          // "xy", "xz" or "yz". Z is down in xz, and in yz to the right or, of tall volumes, down
	Rect  image.Rectangle // in the picture
	Index int             // voxel of the level along the third axis; -1 for a projection
}

// ErrOptions is wrapped by errors about options that do not suit the image.
var ErrOptions = errors.New("unsuitable options")

type optionsError struct{ error }

func (e optionsError) Is(target error) bool { return target == ErrOptions }
func (e optionsError) Unwrap() error        { return e.error }

func badOptions(format string, args ...any) error { return optionsError{fmt.Errorf(format, args...)} }

type inputError struct{ error }

func (e inputError) Is(target error) bool { return target == oct.ErrInput }
func (e inputError) Unwrap() error        { return e.error }

// Render draws an image with axes (y, x) or (z, y, x); further axes in front, such as time, are shown at
// index 0. Channels with colours in the image's metadata are shown together; red, green and blue bytes
// unchanged. It needs memory for the panels (three times for projections) and for one chunk per worker.
// Errors wrap [oct.ErrInput] for images that cannot be drawn, and [ErrOptions] for options that do not suit
// this image.
func Render(ctx context.Context, im *ngff.Image, o Options, res oct.Resources) (*Preview, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	colours, err := colormap.ByName(o.Colormap)
	if err != nil {
		return nil, optionsError{err}
	}
	list, err := together(im, &o)
	if err != nil {
		return nil, err
	}
	vols, err := volumes(im, &o, list, res)
	if err != nil {
		return nil, err
	}
	v, err := choose(vols, &o)
	if err != nil {
		return nil, err
	}
	lay := arrange(v, &o)
	c := newCanvas(lay, v, &o, colours)
	planes, err := v.cuts(&o, vols[0])
	if err != nil {
		return nil, err
	}
	reduce(planes, lay)
	if list == nil {
		err = c.show(ctx, planes, nil, res)
	}
	for i := range list {
		if err == nil {
			v.channel = list[i].index
			err = c.show(ctx, planes, &list[i], res)
		}
	}
	if err == nil {
		err = c.words(planes, list)
	}
	if err != nil {
		return nil, err
	}
	p := &Preview{Image: c.img, Level: v.level, Window: c.window, Pixel: lay.pixel, ScaleBar: c.bar.Box, ScaleBarMicrometres: c.bar.Length}
	for i, pl := range planes {
		p.Panels = append(p.Panels, Panel{Name: pl.name, Rect: lay.panels[i], Index: pl.index})
	}
	return p, nil
}

// show reads the planes and draws them, of one of several channels in its colour.
func (c *canvas) show(ctx context.Context, planes []*plane, of *channel, res oct.Resources) (err error) {
	o := *c.o
	if of != nil {
		o.Window = of.window
	}
	r := &reading{volume: c.v, planes: planes, res: res}
	if c.window, err = r.read(ctx, &o); err != nil {
		return oct.Readable(err)
	}
	began := time.Now()
	defer res.Meter.Since(meter.Compute, began)
	return c.draw(ctx, planes, of, res.Workers)
}

func (o *Options) check() error {
	if o.MaxSize < 64 || o.MaxSize > 1<<15 {
		return badOptions("--max_size %d: want 64 to %d pixels", o.MaxSize, 1<<15)
	}
	if !slices.Contains([]string{None, AIP, MIP}, o.Projection) {
		return badOptions("--projection %q: want none, aip or mip", o.Projection)
	}
	if p := o.Percentiles; !(p[0] >= 0 && p[0] < p[1] && p[1] <= 100) {
		return badOptions("--percentiles %v,%v: want two numbers from 0 to 100, the smaller first", p[0], p[1])
	}
	if w := o.Window; w != nil && !(w[0] < w[1]) {
		return badOptions("--window %v,%v: want two numbers, the smaller first", w[0], w[1])
	}
	return nil
}
