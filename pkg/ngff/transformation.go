package ngff

// checkTransformation reports what NGFF 0.6 forbids of a coordinate transformation of any type (specification,
// coordinateTransformations). It is for Validate: readers apply scales and translations alone.
func checkTransformation(v value, depth int, f *findings) {
	o, ok := need(f, v, value.object)
	if !ok {
		return
	}
	kind, ok := need(f, o.get("type"), value.text)
	if !ok {
		return
	}
	if depth > maxSequences {
		f.bad(v.field, "transformations lie in each other more than %d deep", maxSequences)
		return
	}
	switch kind {
	case "identity":
	case "scale", "translation":
		checkNumbers(o.get(kind), kind == "scale", f)
	case "mapAxis":
		checkIndices(o.get(kind), 2, 5, f)
	case "projectAxis":
		checkProjection(o, f)
	case "affine", "rotation":
		checkMatrix(o, kind, f)
	case "displacements", "coordinates":
		_, _ = inside(f, o.get("path"))
	case "sequence":
		for _, e := range elements(o.get("transformations"), f) {
			checkTransformation(e, depth+1, f)
		}
	case "byDimension":
		for _, e := range elements(o.get("transformations"), f) {
			part, ok := need(f, e, value.object)
			if !ok {
				continue
			}
			checkTransformation(part.get("transformation"), depth+1, f)
			checkNumbers(part.get("inputAxes"), false, f)
			checkNumbers(part.get("outputAxes"), false, f)
		}
	case "bijection":
		checkTransformation(o.get("forward"), depth+1, f)
		checkTransformation(o.get("inverse"), depth+1, f)
	default:
		f.bad(o.get("type").field, "%q is no type of coordinate transformation", kind)
	}
}

// elements returns the elements of a list, none after a finding.
func elements(v value, f *findings) []value {
	list, _ := need(f, v, value.list)
	return list
}

func checkNumbers(v value, positive bool, f *findings) {
	for _, e := range elements(v, f) {
		if x, ok := need(f, e, value.number); ok && positive && x <= 0 {
			f.bad(e.field, "%v (must be a positive number)", x)
		}
	}
}

// checkIndices reports a list that does not have that many different indices of axes.
func checkIndices(v value, least, most int, f *findings) {
	list := elements(v, f)
	if len(list) < least || len(list) > most {
		f.bad(v.field, "%d axes (must be %d to %d)", len(list), least, most)
	}
	seen := map[int]bool{}
	for _, e := range list {
		i, ok := need(f, e, value.integer)
		switch {
		case !ok:
		case i < 0 || i > 4:
			f.bad(e.field, "%d (must be the index of an axis, from 0 to 4)", i)
		case seen[i]:
			f.bad(e.field, "%d a second time", i)
		}
		seen[i] = true
	}
}

func checkProjection(o object, f *findings) {
	some := false
	for _, name := range []string{"droppedInputs", "createdOutputs"} {
		if v := o.get(name); !v.missing() {
			some = true
			checkIndices(v, 1, 3, f)
		}
	}
	if !some {
		f.bad(o.field, "droppedInputs and createdOutputs are missing (one of them at least)")
	}
}

// checkMatrix reports a matrix that is neither here nor in an array, or, of a rotation, not square.
func checkMatrix(o object, name string, f *findings) {
	matrix, path := o.get(name), o.get("path")
	if matrix.missing() == path.missing() {
		f.bad(matrix.field, "missing, or beside a path (a list of rows of numbers, or \"path\")")
		return
	}
	if !path.missing() {
		_, _ = inside(f, path)
		return
	}
	rows := elements(matrix, f)
	for _, row := range rows {
		n := len(elements(row, f))
		if name == "rotation" && n != len(rows) {
			f.bad(row.field, "%d numbers (must be %d: the matrix of a rotation is square)", n, len(rows))
		}
		checkNumbers(row, false, f)
	}
	if n := len(rows); name == "rotation" && (n < 2 || n > 5) {
		f.bad(matrix.field, "%d rows (must be 2 to 5)", n)
	}
}

// parseScene checks the metadata of a scene: transformations between the coordinate systems of images.
func (m *Metadata) parseScene(v value, f *findings) {
	m.Scene = true
	n := len(f.list)
	defer f.demote(n)
	o, ok := need(f, v, value.object)
	if !ok {
		return
	}
	list := o.get("coordinateTransformations")
	all := elements(list, f)
	if len(all) == 0 {
		f.bad(list.field, "empty (at least one transformation)")
	}
	for _, e := range all {
		checkTransformation(e, 0, f)
		t, err := e.object()
		if err != nil {
			continue // reported
		}
		for _, name := range []string{"input", "output"} {
			end, ok := need(f, t.get(name), value.object)
			if ok {
				_, _ = need(f, end.get("name"), value.text)
			}
		}
	}
	if systems := o.get("coordinateSystems"); !systems.missing() {
		for _, e := range elements(systems, f) {
			if system, ok := need(f, e, value.object); ok {
				_, _ = need(f, system.get("name"), value.text)
				checkOtherAxes(system.get("axes"), f)
			}
		}
	}
}
