package ngff

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"strata/pkg/units"
)

// knownVersions lists the versions that are read; 0.1 to 0.3 with the assumptions that parseAxes and parseDataset make.
var knownVersions = []string{"0.1", "0.2", "0.3", "0.4", "0.5", "0.6"}

// drafts are the beginnings of the versions of 0.6 before it was final, whose images differ in nothing that is read.
var drafts = []string{"0.6.dev", "0.6dev", "0.6-dev", "0.6rc"}

// noted records an error of a value as a finding that stops Open.
func (f *findings) noted(err error) {
	var fe *fieldError
	if errors.As(err, &fe) {
		f.fatal(fe.field, "%v", fe.err)
		return
	}
	f.fatal("", "%v", err)
}

// parse reads the NGFF part of a group's attributes. What does not stop at
// the first error is for Validate; Open looks for a fatal finding.
func parse(attrs map[string]json.RawMessage, format int, f *findings) *Metadata {
	m := &Metadata{}
	root := object{members: attrs}
	if ome := root.get("ome"); !ome.missing() {
		o, ok := need(f, ome, value.object)
		if !ok {
			return m
		}
		if format == 2 {
			f.bad("ome", "NGFF 0.5 metadata on a Zarr v2 group (0.5 is for Zarr v3)")
		}
		root = o
		if v := o.get("version"); v.missing() {
			f.warn(v.field, "missing (\"0.5\"); read as 0.5")
			m.Version = "0.5"
		} else if s, err := v.text(); err != nil {
			f.noted(err)
		} else {
			m.Version = s
			checkVersion(v.field, s, f)
		}
	} else if format == 3 && (root.has("multiscales") || root.has("plate") || root.has("well")) {
		f.bad("ome", "missing: on Zarr v3 the metadata belongs under \"ome\"; read all the same")
	}
	if v := root.get("multiscales"); !v.missing() {
		m.parseMultiscales(v, f)
	}
	if v := root.get("omero"); !v.missing() {
		n := len(f.list)
		m.Omero = parseOmero(v, f)
		f.demote(n)
	}
	if v := root.get("labels"); !v.missing() {
		m.parseLabels(v, f)
	}
	if v := root.get("scene"); !v.missing() {
		m.parseScene(v, f)
	}
	m.Collection = root.has("bioformats2raw.layout")
	if v := root.get("image-label"); !v.missing() {
		n := len(f.list)
		m.ImageLabel = m.parseImageLabel(v, f)
		f.demote(n)
	}
	if v := root.get("plate"); !v.missing() {
		m.parsePlate(v, f)
	}
	if v := root.get("well"); !v.missing() {
		m.parseWell(v, f)
	}
	return m
}

func checkVersion(field, version string, f *findings) {
	draft := slices.ContainsFunc(drafts, func(d string) bool { return strings.HasPrefix(version, d) })
	if !draft && !slices.Contains(knownVersions, version) {
		f.fatal(field, "unknown NGFF version %q (known: %s)", version, strings.Join(knownVersions, ", "))
	}
}

// stated returns the version that a part of the metadata states; up to version 0.4 every part states one.
func (m *Metadata) stated(v value, f *findings) string {
	if v.missing() {
		return ""
	}
	s, ok := need(f, v, value.text)
	if !ok {
		return ""
	}
	checkVersion(v.field, s, f)
	if m.Version == "" {
		m.Version = s
	}
	return s
}

func (m *Metadata) parseMultiscales(v value, f *findings) {
	list, ok := need(f, v, value.list)
	if !ok {
		return
	}
	if len(list) == 0 {
		f.fatal(v.field, "empty (at least one multiscale)")
		return
	}
	if len(list) > 1 {
		f.warn(v.field, "%d multiscales; the first is used", len(list))
	}
	for i, e := range list {
		n := len(f.list)
		ms := m.parseMultiscale(e, f)
		if i > 0 {
			f.demote(n)
		}
		m.Multiscales = append(m.Multiscales, ms)
	}
}

func (m *Metadata) parseMultiscale(v value, f *findings) (ms Multiscale) {
	o, ok := need(f, v, value.object)
	if !ok {
		return ms
	}
	ms.Version = m.stated(o.get("version"), f)
	version := m.Version
	if version == "" {
		f.warn(o.get("version").field, "missing (\"0.4\"); read as 0.4")
		version, m.Version = "0.4", "0.4"
	}
	ms.ExplicitScale = version >= "0.4"
	for _, t := range []struct {
		name string
		dst  *string
	}{{"name", &ms.Name}, {"type", &ms.Type}} {
		if e := o.get(t.name); !e.missing() {
			var err error
			if *t.dst, err = e.text(); err != nil {
				f.bad(e.field, "%s (must be a string)", e.kind())
			}
		}
	}
	systems := parseSystems(o, version, f)
	ms.Axes = parseAxes(systems.axes, version, f)
	if len(ms.Axes) == 0 {
		return ms // each scale would be reported for its length
	}
	ds := o.get("datasets")
	list, ok := need(f, ds, value.list)
	if !ok {
		return ms
	}
	if len(list) == 0 {
		f.fatal(ds.field, "empty (at least one resolution level)")
	}
	for _, e := range list {
		ms.Datasets = append(ms.Datasets, parseDataset(e, len(ms.Axes), ms.ExplicitScale, f))
		if d := ms.Datasets[len(ms.Datasets)-1]; systems.names != nil && d.Path != "" {
			systems.checkDataset(e, d.Path, f)
		}
	}
	switch t := o.get("coordinateTransformations"); {
	case t.missing():
	case systems.names != nil: // they lead on from where the image's own axes are
		systems.checkBetween(t, f)
	default:
		ms.Transform = parseTransforms(t, len(ms.Axes), f)
	}
	for i, d := range ms.Datasets {
		if len(d.Transform.Scale) != len(ms.Axes) || ms.Transform.Scale != nil && len(ms.Transform.Scale) != len(ms.Axes) {
			continue // reported
		}
		for j, s := range d.Transform.then(ms.Transform).Scale {
			// each factor may be sound, and their product too large or too small
			if !finitePositive(s) && finitePositive(d.Transform.Scale[j]) && finitePositive(ms.Transform.Scale[j]) {
				f.fatal(fmt.Sprintf("%s[%d].coordinateTransformations", ds.field, i), "scale %v of axis %q with the multiscale's (must be a positive number)", s, ms.Axes[j].Name)
			}
		}
	}
	ms.checkVoxels(ds.field, f)
	return ms
}

// readable returns an error if [Open] would refuse the voxel sizes of a multiscale that is to be written.
func (ms *Multiscale) readable() error {
	var f findings
	if ms.checkVoxels("datasets", &f); len(f.list) > 0 {
		return fmt.Errorf("%s: %s", f.list[0].Field, f.list[0].Message)
	}
	return nil
}

// checkVoxels reports voxel sizes that no microscope has, of any level; scales that are no numbers are reported before.
func (ms *Multiscale) checkVoxels(field string, f *findings) {
	if len(ms.Datasets) == 0 || len(ms.Datasets[0].Transform.Scale) != len(ms.Axes) {
		return
	}
	lengths := measureAxes(ms.Axes, ms.Datasets[0].Transform.then(ms.Transform).Scale)
	for i, d := range ms.Datasets {
		if len(d.Transform.Scale) != len(ms.Axes) {
			continue
		}
		for j, s := range d.Transform.then(ms.Transform).Scale {
			if lengths[j].um == 0 || !finitePositive(s) {
				continue
			}
			if err := units.CheckVoxel(s * lengths[j].um); err != nil {
				guessed := ""
				if !lengths[j].stated {
					guessed = fmt.Sprintf("; its unit is %s and taken as %s", describeUnit(ms.Axes[j].Unit), lengths[j].unit)
				}
				f.fatal(fmt.Sprintf("%s[%d].coordinateTransformations", field, i), "axis %q: %v%s", ms.Axes[j].Name, err, guessed)
			}
		}
	}
}

func parseAxes(v value, version string, f *findings) []Axis {
	if v.missing() && version < "0.3" {
		return SpaceAxes("tczyx", "") // the only axes that 0.1 and 0.2 know
	}
	list, ok := need(f, v, value.list)
	if !ok {
		return nil
	}
	if len(list) < 2 || len(list) > 5 {
		f.fatal(v.field, "%d axes (must be 2 to 5)", len(list))
		return nil
	}
	axes := make([]Axis, len(list))
	for i, e := range list {
		if version == "0.3" {
			// names alone
			axes[i].Name, _ = need(f, e, value.text)
			axes[i].Type = typeByName(axes[i].Name)
			continue
		}
		axes[i] = parseAxis(e, f)
	}
	checkAxes(v.field, axes, f)
	return axes
}

func parseAxis(v value, f *findings) (a Axis) {
	o, ok := need(f, v, value.object)
	if !ok {
		return a
	}
	a.Name, _ = need(f, o.get("name"), value.text)
	if t := o.get("type"); t.missing() {
		a.Type = typeByName(a.Name)
		if a.Type != "" {
			f.warn(t.field, "missing; an axis named %q is taken as %s", a.Name, a.Type)
		} else {
			f.warn(t.field, "missing (\"space\", \"time\" or \"channel\")")
		}
	} else {
		may(f, t, value.text, &a.Type)
	}
	may(f, o.get("unit"), value.text, &a.Unit)
	return a
}

// checkAxes reports what NGFF forbids about the set of axes.
func checkAxes(field string, axes []Axis, f *findings) {
	seen := map[string]int{}
	space := 0
	last := -1
	for i, a := range axes {
		at := fmt.Sprintf("%s[%d]", field, i)
		if a.Name == "" {
			continue // reported already
		}
		if j, ok := seen[a.Name]; ok {
			f.fatal(at+".name", "%q is the name of axis %d too (names must differ)", a.Name, j)
		}
		seen[a.Name] = i
		rank := 1 // channel, and types of the writer's own
		switch a.Type {
		case TypeTime:
			rank = 0
		case TypeSpace:
			rank = 2
			space++
		}
		if rank == last && rank != 2 {
			f.bad(at+".type", "a second axis of type %q (at most one time and one channel or custom axis)", a.Type)
		}
		if rank < last {
			f.bad(at+".type", "%s after %s (the order must be time, channel, space)", describeType(a), describeType(axes[i-1]))
		}
		last = max(last, rank)
	}
	if space < 2 || space > 3 {
		f.bad(field, "%d space axes (must be 2 or 3)", space)
	}
}

func describeType(a Axis) string {
	if a.Type == "" {
		return "axis " + a.Name
	}
	return a.Type
}

func parseDataset(v value, rank int, explicit bool, f *findings) (d Dataset) {
	o, ok := need(f, v, value.object)
	if !ok {
		return d
	}
	d.Path, _ = inside(f, o.get("path"))
	t := o.get("coordinateTransformations")
	if t.missing() && !explicit {
		d.Transform = Transform{Scale: ones(rank)}
		return d
	}
	n := len(f.list)
	d.Transform = parseTransforms(t, rank, f)
	if d.Transform.Scale == nil && f.firstFatalFrom(n) == nil {
		f.bad(t.field, "no scale (each level must have one); read as 1 along each axis")
		d.Transform.Scale = ones(rank)
	}
	return d
}

func ones(n int) []float64 {
	s := make([]float64, n)
	for i := range s {
		s[i] = 1
	}
	return s
}

// inside reads a path below its group.
func inside(f *findings, v value) (path string, ok bool) {
	if path, ok = need(f, v, value.text); !ok {
		return "", false
	}
	if plain := strings.TrimSuffix(strings.TrimPrefix(path, "./"), "/"); plain != path {
		f.bad(v.field, "path %q (must be a plain path below the group); read as %q", path, plain)
		path = plain
	}
	if err := checkInside(path); err != nil {
		f.fatal(v.field, "%v", err)
		return "", false
	}
	return path, true
}

// checkInside returns an error for a path that leads out of its group or is not plain.
func checkInside(p string) error {
	switch {
	case p == "":
		return errors.New("empty path (must name an array in the group)")
	case strings.HasPrefix(p, "/"), strings.HasPrefix(p, "\\"):
		return fmt.Errorf("absolute path %q (must be relative to the group)", p)
	case strings.ContainsRune(p, 0):
		return fmt.Errorf("path %q contains a zero byte", p)
	}
	for _, s := range strings.Split(p, "/") {
		switch s {
		case "", ".", "..":
			return fmt.Errorf("path %q (segments must not be empty, \".\" or \"..\": the path must stay inside the group)", p)
		}
	}
	return nil
}

// parseTransforms reads a list of coordinate transformations: one scale, and perhaps one translation after it. A
// translation before the scale is taken as the order says: the scale applies to it, too.
func parseTransforms(v value, rank int, f *findings) Transform { return parseSequence(v, rank, 0, f) }

// maxSequences bounds how deep sequences of transformations lie in each other.
const maxSequences = 4

func parseSequence(v value, rank, depth int, f *findings) (t Transform) {
	list, ok := need(f, v, value.list)
	if !ok {
		return t
	}
	if len(list) == 0 {
		f.bad(v.field, "empty (a scale, and perhaps a translation); read as none")
	}
	identity := false
	for _, e := range list {
		o, ok := need(f, e, value.object)
		if !ok {
			return t
		}
		kind, ok := need(f, o.get("type"), value.text)
		if !ok {
			return t
		}
		var one Transform
		switch {
		case kind == "identity":
			identity = true
			continue
		case kind == "scale":
			one.Scale = parseScale(o, rank, f)
		case kind == "translation":
			one.Translation = vector(o, "translation", rank, f)
		case kind == "sequence" && depth < maxSequences:
			one = parseSequence(o.get("transformations"), rank, depth+1, f)
		case kind == "sequence":
			f.fatal(o.get("type").field, "sequences lie in sequences more than %d deep", maxSequences)
		default:
			f.fatal(o.get("type").field, "%q (must be \"scale\", \"translation\", \"identity\" or a \"sequence\" of these; others are not supported)", kind)
		}
		if one.Scale == nil && one.Translation == nil {
			return t // reported
		}
		switch at := o.get("type").field; {
		case one.Scale != nil && t.Scale != nil:
			f.fatal(at, "a second scale (exactly one)")
			return t
		case one.Translation != nil && t.Translation != nil:
			f.fatal(at, "a second translation (at most one)")
			return t
		case one.Scale != nil && t.Translation != nil:
			f.bad(at, "scale after translation (the scale must come first); the translation is read in voxels, as the order says")
		}
		t = t.then(one)
	}
	if identity && t.Scale == nil {
		t.Scale = ones(rank)
	}
	return t
}

// parseScale reads the numbers of a scale; nil after a finding about their list.
func parseScale(o object, rank int, f *findings) []float64 {
	scale := vector(o, "scale", rank, f)
	for i, s := range scale {
		field := fmt.Sprintf("%s[%d]", o.get("scale").field, i)
		switch {
		case finitePositive(-s):
			f.fatal(field, "%v (must be a positive number): a negative scale mirrors the image, which no program here does: store the axis in the other direction, with the scale %v", s, -s)
		case !finitePositive(s):
			f.fatal(field, "%v (must be a positive number)", s)
		}
	}
	return scale
}

// vector reads one number per axis; nil after a finding.
func vector(o object, name string, rank int, f *findings) []float64 {
	v := o.get(name)
	if v.missing() && o.has("path") {
		f.fatal(o.get("path").field, "%s stored as an array, which is not supported (a list of %d numbers)", name, rank)
		return nil
	}
	list, ok := need(f, v, value.list)
	if !ok {
		return nil
	}
	if len(list) != rank {
		f.fatal(v.field, "%d numbers for %d axes", len(list), rank)
		return nil
	}
	out := make([]float64, rank)
	for i, e := range list {
		if out[i], ok = need(f, e, value.number); !ok {
			return nil
		}
	}
	return out
}
