package ngff

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"strata/pkg/dtype"
	"strata/pkg/zarr"
	"strata/pkg/zarr/store"
)

// Image gives access to an OME-Zarr image: the first multiscale of a group.
type Image struct {
	Group   *zarr.Group
	Version string // NGFF version, "0.4"
	Name    string // of the multiscale; may be empty
	Axes    []Axis // units as stated
	Levels  []Level

	// VoxelSize is the voxel size of level 0, one number per axis: in micrometres for space axes, the plain
	// scale for others.
	VoxelSize []float64
	// Unit is the unit of the scale of each space axis, as stated or, with a warning, guessed; "" for other
	// axes.
	Unit []string

	Omero      *Omero      // display settings, nil when there are none
	ImageLabel *ImageLabel // set when the image is a label image
	Labels     []string    // names of its label images: see Label
	Metadata   *Metadata   // all NGFF metadata of the group's attributes

	Warnings []string
}

// Level is one resolution of an image.
type Level struct {
	Path  string // of the array, from the image's group
	Array *zarr.Array
	Transform
}

// ErrNoImage is wrapped by errors about a Zarr node that is not an OME-Zarr image.
var ErrNoImage = errors.New("no OME-Zarr image")

// Open opens the image whose group is at path; "" is the root of the store. All levels that its metadata
// names must exist. Options apply to the levels' arrays. Invalid metadata give a [*zarr.FormatError] that
// names group and field; a group without a multiscale wraps [ErrNoImage].
func Open(ctx context.Context, st store.Store, path string, opts ...zarr.Option) (*Image, error) {
	return open(ctx, st, path, true, opts)
}

// OpenPresent opens an image like [Open] but accepts missing levels below level 0, as when a pyramid is still
// being written or was not copied. It leaves them out of the image's Levels and adds a warning.
func OpenPresent(ctx context.Context, st store.Store, path string, opts ...zarr.Option) (*Image, error) {
	return open(ctx, st, path, false, opts)
}

func open(ctx context.Context, st store.Store, path string, all bool, opts []zarr.Option) (*Image, error) {
	im, err := describe(ctx, st, path, opts)
	if err != nil {
		return nil, err
	}
	var f findings
	ms := &im.Metadata.Multiscales[0]
	for i, d := range ms.Datasets {
		a, err := im.array(ctx, d.Path)
		if err != nil {
			field := fmt.Sprintf("%sdatasets[%d].path", im.prefix(), i)
			switch {
			case !errors.Is(err, fs.ErrNotExist):
				return nil, im.unopened(field, err)
			case i == 0 || all:
				return nil, im.refuse(field, fmt.Errorf("%q: there is no such array: %w", d.Path, err))
			}
			f.warn(field, "%q: there is no such array; the image is used without this level", d.Path)
			continue
		}
		im.Levels = append(im.Levels, Level{d.Path, a, d.Transform.then(ms.Transform)})
	}
	if err := im.checkLevels(&f); err != nil {
		return nil, err
	}
	if err := im.findLabels(ctx, &f); err != nil {
		return nil, err
	}
	im.warn(&f)
	return im, nil
}

// describe opens an image by its own metadata, without its levels.
func describe(ctx context.Context, st store.Store, path string, opts []zarr.Option) (*Image, error) {
	n, err := zarr.Open(ctx, st, path, opts...)
	if err != nil {
		return nil, err
	}
	g, ok := n.(*zarr.Group)
	if !ok {
		return nil, &zarr.FormatError{Path: n.Location(), Err: fmt.Errorf("%w: an array, not a group", ErrNoImage)}
	}
	var f findings
	m := parse(g.Attributes(), g.Format(), &f)
	im := &Image{Group: g, Version: m.Version, Omero: m.Omero, ImageLabel: m.ImageLabel, Metadata: m}
	if p := f.firstFatal(); p != nil {
		return nil, im.refuse(p.Field, errors.New(p.Message))
	}
	if len(m.Multiscales) == 0 {
		return nil, im.refuse("", noImage(m))
	}
	ms := &m.Multiscales[0]
	im.Name, im.Axes = ms.Name, ms.Axes
	im.warn(&f)
	f = findings{}
	im.measure(&f)
	im.warn(&f)
	return im, nil
}

// noImage explains what a group without a multiscale is instead.
func noImage(m *Metadata) error {
	switch {
	case m.Plate != nil && len(m.Plate.Wells) > 0:
		return fmt.Errorf("%w but a plate: open an image of a well, such as %s/0", ErrNoImage, m.Plate.Wells[0].Path)
	case m.Well != nil && len(m.Well.Images) > 0:
		return fmt.Errorf("%w but a well: open one of its images, such as %s", ErrNoImage, m.Well.Images[0].Path)
	case m.Scene:
		return fmt.Errorf("%w but a scene of several images: open one of them", ErrNoImage)
	case m.Collection:
		return fmt.Errorf("%w but a group of images: open one of them, such as 0", ErrNoImage)
	case m.Labels != nil:
		return fmt.Errorf("%w but a group of %d label images", ErrNoImage, len(m.Labels))
	}
	return fmt.Errorf("%w: multiscales: missing", ErrNoImage)
}

// refuse returns an error about the metadata of the image's group.
func (im *Image) refuse(field string, err error) error {
	return &zarr.FormatError{Path: im.Group.Location(), Field: field, Err: err}
}

// unopened returns the error of an array that the metadata names and that cannot be opened. It passes
// failures of the store, which name their object and may be transient.
func (im *Image) unopened(field string, err error) error {
	var format *zarr.FormatError
	if errors.As(err, &format) || errors.Is(err, store.ErrKey) || errors.Is(err, errGroup) {
		return im.refuse(field, err)
	}
	return err
}

// errGroup is wrapped if there is a group in place of an array.
var errGroup = errors.New("is a group")

// warn takes over findings as warnings.
func (im *Image) warn(f *findings) {
	for _, p := range f.list {
		s := p.Message
		if p.Field != "" {
			s = p.Field + ": " + s
		}
		im.Warnings = append(im.Warnings, im.Group.Location()+": "+s)
	}
}

// prefix names the first multiscale in messages.
func (im *Image) prefix() string {
	if _, ok := im.Group.Attributes()["ome"]; ok {
		return "ome.multiscales[0]."
	}
	return "multiscales[0]."
}

// array opens the array of a level.
func (im *Image) array(ctx context.Context, path string) (*zarr.Array, error) {
	n, err := im.Group.Open(ctx, path)
	if err != nil {
		return nil, err
	}
	a, ok := n.(*zarr.Array)
	if !ok {
		return nil, fmt.Errorf("%q %w (must be an array)", path, errGroup)
	}
	return a, nil
}

// checkLevels returns an error for levels that do not fit the axes or each other.
func (im *Image) checkLevels(f *findings) error {
	for i, l := range im.Levels {
		field := fmt.Sprintf("%sdatasets[%d]", im.prefix(), i)
		if n := len(l.Array.Shape()); n != len(im.Axes) {
			return im.refuse(field, fmt.Errorf("array %q has %d dimensions for %d axes", l.Path, n, len(im.Axes)))
		}
		if t, want := l.Array.DType(), im.Levels[0].Array.DType(); t != want {
			f.bad(field, "array %q has elements of type %s, level 0 has %s", l.Path, t, want)
		}
	}
	return nil
}

// measure computes the voxel size in micrometres, and warns of units that are guessed or spelt in another way.
func (im *Image) measure(f *findings) {
	ms := &im.Metadata.Multiscales[0]
	scale := ms.Datasets[0].Transform.then(ms.Transform).Scale
	im.VoxelSize = append([]float64(nil), scale...)
	im.Unit = make([]string, len(im.Axes))
	guessed, said := false, map[string]bool{}
	for d, l := range measureAxes(im.Axes, scale) {
		if l.um == 0 {
			continue
		}
		a := im.Axes[d]
		switch field := fmt.Sprintf("%saxes[%d].unit", im.prefix(), d); {
		case !l.stated && guessed, l.stated && l.unit == a.Unit, said[a.Unit]:
		case !l.stated && a.Unit == "":
			guessed = true
			f.warn(field, "missing; a first component of %v is taken as %s", im.firstSpace(scale), l.unit)
		case !l.stated:
			guessed = true
			f.warn(field, "unknown unit %q; a first component of %v is taken as %s", a.Unit, im.firstSpace(scale), l.unit)
		default:
			said[a.Unit] = true // of several axes with the same spelling once
			f.warn(field, "%q is read as %q", a.Unit, l.unit)
		}
		im.Unit[d] = l.unit
		im.VoxelSize[d] = scale[d] * l.um
	}
	if !ms.ExplicitScale && ms.Datasets[0].Transform.Scale != nil {
		f.warn(fmt.Sprintf("%sversion", im.prefix()), "NGFF %s states no voxel size; it is taken as 1", im.Version)
	}
}

func (im *Image) firstSpace(scale []float64) float64 {
	for d, a := range im.Axes {
		if a.Type == TypeSpace {
			return scale[d]
		}
	}
	return 0
}

// DType returns the element type of level 0.
func (im *Image) DType() dtype.Type { return im.Levels[0].Array.DType() }

// Axis returns the index of the axis of that name, or -1.
func (im *Image) Axis(name string) int {
	for d, a := range im.Axes {
		if a.Name == name {
			return d
		}
	}
	return -1
}

// LevelSize returns the voxel size of a level, one number per axis, like VoxelSize.
func (im *Image) LevelSize(level int) []float64 {
	size := append([]float64(nil), im.VoxelSize...)
	if level == 0 {
		return size
	}
	for d := range size {
		size[d] = im.VoxelSize[d] * im.Levels[level].Scale[d] / im.Levels[0].Scale[d]
	}
	return size
}

// Attributes returns the attributes of the image's group that NGFF does not define, to be passed on in
// [ImageSpec.Attributes].
func (im *Image) Attributes() map[string]any { return passed(rawAttributes(im.Group.Attributes())) }

// findLabels looks for label images below the group.
func (im *Image) findLabels(ctx context.Context, f *findings) error {
	g, err := im.Group.Group(ctx, "labels")
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		f.warn("", "labels: %v", err)
		return ctx.Err()
	}
	var lf findings
	m := parse(g.Attributes(), g.Format(), &lf)
	for _, p := range lf.list {
		if p.fatal {
			f.warn("", "labels: %s: %s", p.Field, p.Message)
		}
	}
	im.Labels = m.Labels
	return nil
}

// Label opens one of the image's label images, by its name in Labels.
func (im *Image) Label(ctx context.Context, name string, opts ...zarr.Option) (*Image, error) {
	for _, l := range im.Labels {
		if l == name {
			return Open(ctx, im.Group.Store(), store.Join(im.Group.Path(), "labels/"+name), opts...)
		}
	}
	return nil, fmt.Errorf("%s: no label image %q (there are %q)", im.Group.Location(), name, im.Labels)
}

// ReadMetadata parses the NGFF metadata in the attributes of a group or array, whether image, plate, well,
// group of labels, or none of these. It lists faults as problems.
func ReadMetadata(n zarr.Node) (*Metadata, []Problem) {
	var f findings
	m := parse(n.Attributes(), n.Format(), &f)
	for i := range f.list {
		f.list[i].Path = n.Location()
	}
	return m, f.list
}
