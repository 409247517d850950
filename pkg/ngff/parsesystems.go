package ngff

// systems are the coordinate systems of a multiscale of NGFF 0.6 (RFC-5): each has axes, and transformations lead from
// one to another. Those of the levels lead from their voxels to the intrinsic one, whose axes are the image's.
type systems struct {
	axes      value           // of the intrinsic system, or of a multiscale without systems
	names     map[string]bool // nil: there are no systems, as before 0.6
	intrinsic string
}

// parseSystems finds the image's axes: in the coordinate system that the first level leads to, or, before 0.6, in the
// multiscale.
func parseSystems(o object, version string, f *findings) systems {
	s := systems{axes: o.get("axes")}
	v := o.get("coordinateSystems")
	if v.missing() {
		if version >= "0.6" {
			f.bad(v.field, "missing (a list of coordinate systems)")
		}
		return s
	}
	list, ok := need(f, v, value.list)
	if !ok {
		return s
	}
	s.names = map[string]bool{}
	s.intrinsic = firstOutput(o)
	first := true
	for _, e := range list {
		system, ok := need(f, e, value.object)
		if !ok {
			continue
		}
		name, ok := need(f, system.get("name"), value.text)
		if !ok {
			continue
		}
		switch {
		case name == "":
			f.bad(system.get("name").field, "empty (must name the coordinate system)")
		case s.names[name]:
			f.bad(system.get("name").field, "%q is the name of another coordinate system, too (names must differ)", name)
		}
		s.names[name] = true
		if first || name == s.intrinsic {
			s.axes = system.get("axes")
		} else {
			checkOtherAxes(system.get("axes"), f)
		}
		first = false
	}
	if len(list) == 0 {
		f.fatal(v.field, "empty (at least one coordinate system)")
	}
	return s
}

// checkOtherAxes reports axes of a coordinate system that is not the image's: they may be of any types.
func checkOtherAxes(v value, f *findings) {
	n := len(f.list)
	defer f.demote(n)
	seen := map[string]bool{}
	for _, e := range elements(v, f) {
		o, ok := need(f, e, value.object)
		if !ok {
			continue
		}
		name, ok := need(f, o.get("name"), value.text)
		if ok && seen[name] {
			f.bad(o.get("name").field, "%q a second time (names must differ)", name)
		}
		seen[name] = true
	}
}

// firstOutput returns the name of the coordinate system that the first level leads to, "" if it names none.
func firstOutput(o object) string {
	datasets, err := o.get("datasets").list()
	if err != nil || len(datasets) == 0 {
		return ""
	}
	var nothing findings // it is looked at again
	d, err := datasets[0].object()
	if err != nil {
		return ""
	}
	list, err := d.get("coordinateTransformations").list()
	if err != nil || len(list) == 0 {
		return ""
	}
	t, err := list[0].object()
	if err != nil {
		return ""
	}
	name, _ := endpoint(t.get("output"), "name", &nothing)
	return name
}

// endpoint reads where a transformation begins or ends: an object with a name, a path, or both, or, in drafts, the bare
// text.
func endpoint(v value, member string, f *findings) (text string, ok bool) {
	if v.kind() == "a string" {
		f.bad(v.field, "a string (must be an object with a %s)", member)
		return need(f, v, value.text)
	}
	o, ok := need(f, v, value.object)
	if !ok || o.get(member).missing() {
		return "", ok
	}
	return need(f, o.get(member), value.text)
}

// checkDataset reports a level that breaks a rule of NGFF 0.6: it has one transformation, from its array to the
// intrinsic system. A reader does not depend on it.
func (s *systems) checkDataset(v value, path string, f *findings) {
	n := len(f.list)
	defer f.demote(n)
	o, _ := v.object() // was one
	field := o.get("coordinateTransformations")
	list, err := field.list()
	if err != nil || len(list) == 0 {
		return // reported
	}
	if len(list) > 1 {
		f.bad(field.field, "%d transformations (must be one, such as a sequence)", len(list))
	}
	t, err := list[0].object()
	if err != nil {
		return
	}
	if from, ok := endpoint(t.get("input"), "path", f); ok && from != path {
		f.bad(t.get("input").field, "%q (must be the path of the level, %q)", from, path)
	}
	switch to, ok := endpoint(t.get("output"), "name", f); {
	case !ok:
	case to != s.intrinsic:
		f.bad(t.get("output").field, "%q (all levels must lead to one coordinate system, here %q)", to, s.intrinsic)
	case !s.names[to]:
		f.bad(t.get("output").field, "there is no coordinate system %q", to)
	}
}

// checkBetween reports transformations between coordinate systems that do not begin or end at the intrinsic one.
func (s *systems) checkBetween(v value, f *findings) {
	n := len(f.list)
	defer f.demote(n)
	list, ok := need(f, v, value.list)
	if !ok {
		return
	}
	for _, e := range list {
		t, ok := need(f, e, value.object)
		if !ok {
			continue
		}
		checkTransformation(e, 0, f) // of any type: none is applied
		from, ok := endpoint(t.get("input"), "name", f)
		to, also := endpoint(t.get("output"), "name", f)
		switch {
		case !ok || !also:
		case from != s.intrinsic && to != s.intrinsic:
			f.bad(e.field, "leads from %q to %q (one must be %q, to which the levels lead)", from, to, s.intrinsic)
		}
	}
}
