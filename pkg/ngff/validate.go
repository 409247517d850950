package ngff

import (
	"context"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"strconv"

	"errors"

	"strata/pkg/dtype"
	"strata/pkg/zarr"
	"strata/pkg/zarr/store"
)

// Validate checks the OME-Zarr metadata of the node at path and of the nodes that it refers to: an image with
// its levels and label images, or a plate with its wells and their images. It reads metadata only, no chunks.
// A valid hierarchy gives an empty result.
func Validate(ctx context.Context, st store.Store, path string) []Problem {
	problems, _ := ValidateUpTo(ctx, st, path, math.MaxInt)
	return problems
}

// ValidateUpTo is [Validate] with a limit: it ends after most errors, and lists at most as many warnings. more reports
// whether it ended early or left warnings out: metadata of some megabytes can name a million missing arrays.
func ValidateUpTo(ctx context.Context, st store.Store, path string, most int) (problems []Problem, more bool) {
	v := validator{ctx: ctx, st: st, most: most}
	v.node(path)
	return v.problems, v.more
}

type validator struct {
	ctx      context.Context
	st       store.Store
	problems []Problem
	most     int              // of each severity
	counts   map[Severity]int // of problems
	more     bool
}

// enough reports whether the search should end.
func (v *validator) enough() bool { return v.counts[Error] >= v.most }

// note lists a problem, unless there are enough of its severity.
func (v *validator) note(p Problem) {
	if v.counts == nil {
		v.counts = map[Severity]int{}
	}
	if v.counts[p.Severity] >= v.most {
		v.more = true
		return
	}
	v.counts[p.Severity]++
	v.problems = append(v.problems, p)
}

func (v *validator) add(location string, f *findings) {
	for _, p := range f.list {
		p.Path = location
		v.note(p)
	}
}

func (v *validator) fail(location string, err error) {
	v.note(Problem{Path: location, Severity: Error, Message: err.Error(), Err: err, fatal: true})
}

// group opens a group, or notes why not.
func (v *validator) group(path string) *zarr.Group {
	n, err := zarr.Open(v.ctx, v.st, path)
	if err != nil {
		v.fail(v.st.Location(path), err)
		return nil
	}
	g, ok := n.(*zarr.Group)
	if !ok {
		v.fail(n.Location(), errors.New("an array (must be a group)"))
		return nil
	}
	return g
}

// node checks whatever lies at path.
func (v *validator) node(path string) {
	if v.enough() {
		v.more = true
		return
	}
	g := v.group(path)
	if g == nil {
		return
	}
	var f findings
	m := parse(g.Attributes(), g.Format(), &f)
	checkFormat(m, g.Format(), &f)
	checkPresent(m, &f)
	v.add(g.Location(), &f)
	if len(m.Multiscales) > 0 {
		for i := range m.Multiscales {
			v.multiscale(g, m, i)
		}
		v.labels(g)
	}
	if m.Plate != nil {
		for i, w := range m.Plate.Wells {
			if w.Path != "" && !v.enough() {
				v.well(g, m.Plate, i)
			}
		}
	}
	if m.Well != nil {
		v.fields(g, m.Well)
	}
	for i := 0; m.Collection && !v.enough(); i++ {
		image := store.Join(path, strconv.Itoa(i))
		if _, err := zarr.Open(v.ctx, v.st, image); i > 0 && errors.Is(err, fs.ErrNotExist) {
			break
		}
		v.node(image)
	}
}

// checkPresent reports a group that is nothing.
func checkPresent(m *Metadata, f *findings) {
	if len(m.Multiscales) == 0 && m.Plate == nil && m.Well == nil && m.Labels == nil && !m.Collection && !m.Scene && f.firstFatal() == nil {
		f.fatal("", "no OME-Zarr metadata (multiscales, plate, well, labels or scene)")
	}
}

// checkFormat reports an NGFF version on the wrong Zarr format.
func checkFormat(m *Metadata, format int, f *findings) {
	switch {
	case m.Version == "" || m.Version == VersionFor(format) || format == 3 && m.Version >= "0.6":
	case format == 3:
		f.bad("ome.version", "NGFF %s on Zarr v3 (0.5 is for Zarr v3)", m.Version)
	case m.Version < "0.4":
		f.warn("multiscales[0].version", "NGFF %s is superseded (0.4 is current for Zarr v2)", m.Version)
	}
}

// multiscale checks the i-th pyramid against its arrays.
func (v *validator) multiscale(g *zarr.Group, m *Metadata, i int) {
	ms := &m.Multiscales[i]
	var f findings
	defer func() { v.add(g.Location(), &f) }()
	im := Image{Group: g, Version: m.Version, Axes: ms.Axes, Metadata: m}
	prefix := fmt.Sprintf("multiscales[%d].", i)
	if _, ok := g.Attributes()["ome"]; ok {
		prefix = "ome." + prefix
	}
	for d, a := range ms.Axes {
		checkUnit(fmt.Sprintf("%saxes[%d].unit", prefix, d), a, &f)
	}
	arrays := make([]*zarr.Array, len(ms.Datasets))
	transforms := make([]Transform, len(ms.Datasets))
	failed := 0
	for k, d := range ms.Datasets {
		if d.Path == "" {
			continue // reported with its field
		}
		if v.counts[Error]+failed >= v.most {
			v.more = true
			break
		}
		field := fmt.Sprintf("%sdatasets[%d]", prefix, k)
		a, err := im.array(v.ctx, d.Path)
		if err != nil {
			failed++
			if errors.Is(err, fs.ErrNotExist) {
				f.fatal(field+".path", "%q: there is no such array", d.Path)
			} else {
				f.fatal(field+".path", "%q: %v", d.Path, err)
				f.list[len(f.list)-1].Err = err
			}
			continue
		}
		arrays[k] = a
		if len(d.Transform.Scale) == len(ms.Axes) {
			transforms[k] = d.Transform.then(ms.Transform)
		}
		v.level(field, ms, m, a, &f)
	}
	for k := 1; k < len(arrays); k++ {
		if arrays[k] != nil && arrays[0] != nil {
			checkPair(fmt.Sprintf("%sdatasets[%d]", prefix, k), k, ms, arrays, transforms, &f)
		}
	}
	v.channels(g, m, ms, i, arrays, &f)
}

// level checks one array against the axes.
func (v *validator) level(field string, ms *Multiscale, m *Metadata, a *zarr.Array, f *findings) {
	shape := a.Shape()
	if len(shape) != len(ms.Axes) {
		f.fatal(field, "array %q has %d dimensions for %d axes", a.Path(), len(shape), len(ms.Axes))
		return
	}
	if a.Format() == 2 {
		if a.Separator() != "/" && m.Version >= "0.2" {
			f.bad(field, "array %q has dimension_separator %q (must be \"/\")", a.Path(), a.Separator())
		}
		return
	}
	names := a.DimensionNames()
	if names == nil {
		f.bad(field, "array %q has no dimension_names (must be the names of the axes)", a.Path())
		return
	}
	for d, x := range ms.Axes {
		if d < len(names) && names[d] != x.Name {
			f.bad(field, "array %q has dimension_names %q, the axes are %q", a.Path(), names, axisNames(ms.Axes))
			return
		}
	}
}

func axisNames(axes []Axis) []string {
	var n []string
	for _, a := range axes {
		n = append(n, a.Name)
	}
	return n
}

// checkUnit reports a unit that NGFF does not know.
func checkUnit(field string, a Axis, f *findings) {
	switch {
	case a.Type == TypeSpace && a.Unit == "":
		f.warn(field, "missing (a space unit such as \"micrometer\")")
	case a.Type == TypeSpace:
		if _, name, ok := Micrometres(a.Unit); !ok && !slices.Contains(farUnits, a.Unit) {
			f.warn(field, "%q is not a space unit of NGFF (such as \"micrometer\")", a.Unit)
		} else if ok && name != a.Unit {
			f.warn(field, "%q (NGFF writes %q)", a.Unit, name)
		}
	case a.Type == TypeTime && a.Unit == "":
		f.warn(field, "missing (a time unit such as \"second\")")
	case a.Type == TypeTime && !slices.Contains(timeUnits, a.Unit):
		f.warn(field, "%q is not a time unit of NGFF (such as \"second\")", a.Unit)
	}
}

// space units of NGFF that no voxel size is in.
var farUnits = []string{"exameter", "gigameter", "megameter", "mile", "parsec", "petameter", "terameter",
	"yoctometer", "yottameter", "zeptometer", "zettameter"}

var timeUnits = []string{"attosecond", "centisecond", "day", "decisecond", "exasecond", "femtosecond", "gigasecond",
	"hectosecond", "hour", "kilosecond", "megasecond", "microsecond", "millisecond", "minute", "nanosecond", "petasecond",
	"picosecond", "second", "terasecond", "yoctosecond", "yottasecond", "zeptosecond", "zettasecond"}

// checkPair compares level k with level 0 and the level above it.
func checkPair(field string, k int, ms *Multiscale, arrays []*zarr.Array, transforms []Transform, f *findings) {
	base, a := arrays[0], arrays[k]
	if a.DType() != base.DType() {
		f.bad(field, "array %q has elements of type %s, level 0 has %s (must be equal)", a.Path(), a.DType(), base.DType())
	}
	shape, first := a.Shape(), base.Shape()
	if len(shape) != len(first) || len(shape) != len(ms.Axes) {
		return
	}
	if above := arrays[k-1]; above != nil && len(above.Shape()) == len(shape) {
		for d, n := range above.Shape() {
			if shape[d] > n {
				f.bad(field+".path", "array %q of shape %v is larger than the level before it, %v (levels must be ordered from largest to smallest)", a.Path(), shape, above.Shape())
				break
			}
		}
	}
	if transforms[0].Scale == nil || transforms[k].Scale == nil {
		return
	}
	for d, x := range ms.Axes {
		ratio := transforms[k].Scale[d] / transforms[0].Scale[d]
		if x.Type != TypeSpace {
			continue
		}
		// a shape is rounded up or down at each level, and some writers state the exact
		// quotient of the shapes: one voxel of the lower level covers both
		if math.Abs(float64(first[d])-ratio*float64(shape[d])) > ratio*1.001 {
			f.bad(field+".coordinateTransformations", "scale %v of axis %q is %.4g times that of level 0, the shape %d of %d voxels is not", transforms[k].Scale[d], x.Name, ratio, shape[d], first[d])
		}
	}
}

// channels checks what depends on the elements: display settings and labels.
func (v *validator) channels(g *zarr.Group, m *Metadata, ms *Multiscale, i int, arrays []*zarr.Array, f *findings) {
	if i > 0 || len(arrays) == 0 || arrays[0] == nil {
		return
	}
	a := arrays[0]
	at := ""
	if g.Format() == 3 {
		at = "ome."
	}
	if m.ImageLabel != nil && !a.DType().IsInteger() && a.DType() != dtype.Bool {
		f.bad(at+"image-label", "array %q has elements of type %s (labels must be integers)", a.Path(), a.DType())
	}
	if m.Omero == nil {
		return
	}
	n := 1
	for d, x := range ms.Axes {
		if x.Type == TypeChannel && d < len(a.Shape()) {
			n = a.Shape()[d]
		}
	}
	if len(m.Omero.Channels) != n {
		f.bad(at+"omero.channels", "%d channels, the image has %d", len(m.Omero.Channels), n)
	}
}

// labels checks the label images of an image.
func (v *validator) labels(g *zarr.Group) {
	lg, err := g.Group(v.ctx, "labels")
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err != nil {
		v.fail(v.st.Location(store.Join(g.Path(), "labels")), err)
		return
	}
	var f findings
	m := parse(lg.Attributes(), lg.Format(), &f)
	if m.Labels == nil && f.firstFatal() == nil {
		f.bad("labels", "missing (the names of the label images)")
	}
	v.add(lg.Location(), &f)
	for _, name := range m.Labels {
		path := store.Join(lg.Path(), name)
		before := len(v.problems)
		v.node(path)
		if g := v.groupQuietly(path); g != nil && len(v.problems) == before {
			if lm, _ := ReadMetadata(g); lm.ImageLabel == nil {
				v.note(Problem{Path: g.Location(), Field: "image-label", Severity: Warning, Message: "missing (label images should have it)"})
			}
		}
	}
}

func (v *validator) groupQuietly(path string) *zarr.Group {
	g, err := zarr.OpenGroup(v.ctx, v.st, path)
	if err != nil {
		return nil // reported by node
	}
	return g
}

// well checks a well of a plate.
func (v *validator) well(g *zarr.Group, p *Plate, i int) {
	w := p.Wells[i]
	path := store.Join(g.Path(), w.Path)
	wg := v.group(path)
	if wg == nil {
		return
	}
	var f findings
	m := parse(wg.Attributes(), wg.Format(), &f)
	if m.Well == nil {
		if f.firstFatal() == nil {
			f.fatal("well", "missing (the plate names this group as a well)")
		}
		v.add(wg.Location(), &f)
		return
	}
	for j, im := range m.Well.Images {
		if len(p.Acquisitions) > 1 && !slices.ContainsFunc(p.Acquisitions, func(a Acquisition) bool { return a.ID == im.Acquisition }) {
			f.bad(fmt.Sprintf("well.images[%d].acquisition", j), "%d is not an acquisition of the plate", im.Acquisition)
		}
	}
	v.add(wg.Location(), &f)
	v.fields(wg, m.Well)
}

// fields checks the images of a well.
func (v *validator) fields(g *zarr.Group, w *Well) {
	for _, im := range w.Images {
		v.node(store.Join(g.Path(), im.Path))
	}
}
