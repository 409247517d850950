package ngff

import (
	"slices"
	"strings"
)

func (m *Metadata) parsePlate(v value, f *findings) {
	o, ok := need(f, v, value.object)
	if !ok {
		return
	}
	p := &Plate{}
	p.Version = m.stated(o.get("version"), f)
	may(f, o.get("name"), value.text, &p.Name)
	if p.Name == "" {
		f.warn(o.get("name").field, "missing (a plate should have a name)")
	}
	if n := o.get("field_count"); !n.missing() {
		p.FieldCount = positive(n, f)
	}
	p.Rows = parseNames(o.get("rows"), f)
	p.Columns = parseNames(o.get("columns"), f)
	if a := o.get("acquisitions"); !a.missing() {
		p.parseAcquisitions(a, f)
	}
	wells := o.get("wells")
	list, ok := need(f, wells, value.list)
	if !ok {
		return
	}
	if len(list) == 0 {
		f.bad(wells.field, "empty (at least one well)")
	}
	for _, e := range list {
		p.Wells = append(p.Wells, p.parseWell(e, f))
	}
	m.Plate = p
}

// positive reads an integer above 0; 0 after a finding.
func positive(v value, f *findings) int {
	n, ok := need(f, v, value.integer)
	if !ok {
		return 0
	}
	if n <= 0 {
		f.bad(v.field, "%d (must be a positive integer)", n)
		return 0
	}
	return n
}

// parseNames reads the rows or columns of a plate.
func parseNames(v value, f *findings) []string {
	list, ok := need(f, v, value.list)
	if !ok {
		return nil
	}
	if len(list) == 0 {
		f.bad(v.field, "empty (at least one)")
	}
	var names []string
	seen := map[string]bool{}
	for _, e := range list {
		o, ok := need(f, e, value.object)
		if !ok {
			return names
		}
		n := o.get("name")
		s, ok := need(f, n, value.text)
		if !ok {
			return names
		}
		if s == "" || strings.ContainsFunc(s, func(r rune) bool {
			return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
		}) {
			f.bad(n.field, "%q (must be letters and digits)", s)
		}
		if seen[s] {
			f.bad(n.field, "%q a second time (names must differ)", s)
		}
		seen[s] = true
		names = append(names, s)
	}
	return names
}

func (p *Plate) parseWell(v value, f *findings) (w PlateWell) {
	o, ok := need(f, v, value.object)
	if !ok {
		return w
	}
	path := o.get("path")
	if w.Path, ok = inside(f, path); !ok {
		return w
	}
	row, column, ok := strings.Cut(w.Path, "/")
	if !ok || strings.Contains(column, "/") {
		f.bad(path.field, "%q (must be a row name, a slash, a column name)", w.Path)
		return w
	}
	w.RowIndex = wellIndex(o.get("rowIndex"), p.Rows, row, f)
	w.ColumnIndex = wellIndex(o.get("columnIndex"), p.Columns, column, f)
	return w
}

// wellIndex reads a well's index into the names of rows or columns, and checks
// it against the name in the path. 0.3 and before have no index: the name is
// looked up.
func wellIndex(v value, names []string, name string, f *findings) int {
	at := -1
	for i, n := range names {
		if n == name {
			at = i
		}
	}
	if v.missing() {
		f.bad(v.field, "missing (the index of %q in its list)", name)
		return max(at, 0)
	}
	i, ok := need(f, v, value.integer)
	if !ok {
		return 0
	}
	if i < 0 || i >= len(names) {
		f.bad(v.field, "%d of %d (must be an index into the list)", i, len(names))
		return max(at, 0)
	}
	if i != at {
		f.bad(v.field, "%d is %q, the path says %q", i, names[i], name)
	}
	return i
}

func (p *Plate) parseAcquisitions(v value, f *findings) {
	list, ok := need(f, v, value.list)
	if !ok {
		return
	}
	seen := map[int]bool{}
	for _, e := range list {
		o, ok := need(f, e, value.object)
		if !ok {
			continue
		}
		var a Acquisition
		if a.ID, ok = need(f, o.get("id"), value.integer); !ok {
			continue
		}
		if a.ID < 0 || seen[a.ID] {
			f.bad(o.get("id").field, "%d (must be unique and not negative)", a.ID)
		}
		seen[a.ID] = true
		may(f, o.get("name"), value.text, &a.Name)
		may(f, o.get("description"), value.text, &a.Description)
		if n := o.get("maximumfieldcount"); !n.missing() {
			a.MaximumFieldCount = positive(n, f)
		}
		for name, to := range map[string]*int64{"starttime": &a.StartTime, "endtime": &a.EndTime} {
			if may(f, o.get(name), value.integer64, to); *to < 0 {
				f.bad(o.get(name).field, "%d (must be a time since 1970, from 0 on)", *to)
			}
		}
		if !o.has("name") {
			f.warn(o.get("name").field, "missing (an acquisition should have a name)")
		}
		if !o.has("maximumfieldcount") {
			f.warn(o.get("maximumfieldcount").field, "missing (an acquisition should say how many fields it has at most)")
		}
		p.Acquisitions = append(p.Acquisitions, a)
	}
}

// wellPath has the characters of the paths of a well's images.
const wellPath = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"

func (m *Metadata) parseWell(v value, f *findings) {
	o, ok := need(f, v, value.object)
	if !ok {
		return
	}
	w := &Well{}
	w.Version = m.stated(o.get("version"), f)
	if m.Version == "" {
		f.warn(o.get("version").field, "missing (such as \"0.4\")")
	}
	images := o.get("images")
	list, ok := need(f, images, value.list)
	if !ok {
		return
	}
	if len(list) == 0 {
		f.bad(images.field, "empty (at least one field of view)")
	}
	for _, e := range list {
		o, ok := need(f, e, value.object)
		if !ok {
			continue
		}
		var im WellImage
		if im.Path, ok = inside(f, o.get("path")); !ok {
			continue
		}
		may(f, o.get("acquisition"), value.integer, &im.Acquisition)
		if strings.HasPrefix(im.Path, "__") || strings.Trim(im.Path, wellPath) != "" {
			f.bad(o.get("path").field, "%q (must be letters, digits, \".\", \"-\" and \"_\", and must not begin with \"__\")", im.Path)
		}
		if slices.ContainsFunc(w.Images, func(other WellImage) bool { return other.Path == im.Path }) {
			f.bad(o.get("path").field, "%q a second time (each field of view once)", im.Path)
		}
		w.Images = append(w.Images, im)
	}
	m.Well = w
}
