package ngff

import (
	"fmt"
	"strings"
)

func (m *Metadata) parsePlate(v value, f *findings) {
	o, err := v.object()
	if err != nil {
		f.noted(err)
		return
	}
	p := &Plate{}
	p.Version = m.stated(o.get("version"), f)
	if n := o.get("name"); !n.missing() {
		if p.Name, err = n.text(); err != nil {
			f.noted(err)
		}
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
	list, err := wells.list()
	if err != nil {
		f.noted(err)
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
	n, err := v.integer()
	if err != nil {
		f.noted(err)
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
	list, err := v.list()
	if err != nil {
		f.noted(err)
		return nil
	}
	if len(list) == 0 {
		f.bad(v.field, "empty (at least one)")
	}
	var names []string
	seen := map[string]bool{}
	for _, e := range list {
		o, err := e.object()
		if err != nil {
			f.noted(err)
			return names
		}
		n := o.get("name")
		s, err := n.text()
		if err != nil {
			f.noted(err)
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
	o, err := v.object()
	if err != nil {
		f.noted(err)
		return w
	}
	path := o.get("path")
	if w.Path, err = path.text(); err != nil {
		f.noted(err)
		return w
	}
	if err := checkInside(w.Path); err != nil {
		f.fatal(path.field, "%v", err)
		w.Path = ""
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
	i, err := v.integer()
	if err != nil {
		f.noted(err)
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
	list, err := v.list()
	if err != nil {
		f.noted(err)
		return
	}
	seen := map[int]bool{}
	for _, e := range list {
		o, err := e.object()
		if err != nil {
			f.noted(err)
			continue
		}
		var a Acquisition
		if a.ID, err = o.get("id").integer(); err != nil {
			f.noted(err)
			continue
		}
		if a.ID < 0 || seen[a.ID] {
			f.bad(o.get("id").field, "%d (must be unique and not negative)", a.ID)
		}
		seen[a.ID] = true
		for _, s := range []struct {
			name string
			dst  *string
		}{{"name", &a.Name}, {"description", &a.Description}} {
			if t := o.get(s.name); !t.missing() {
				if *s.dst, err = t.text(); err != nil {
					f.noted(err)
				}
			}
		}
		if n := o.get("maximumfieldcount"); !n.missing() {
			a.MaximumFieldCount = positive(n, f)
		}
		for _, s := range []struct {
			name string
			dst  *int64
		}{{"starttime", &a.StartTime}, {"endtime", &a.EndTime}} {
			if t := o.get(s.name); !t.missing() {
				n, err := t.integer()
				if err != nil {
					f.noted(err)
				}
				*s.dst = int64(n)
			}
		}
		p.Acquisitions = append(p.Acquisitions, a)
	}
}

// well returns the well of that path.
func (p *Plate) well(path string) error {
	for _, w := range p.Wells {
		if w.Path == path {
			return nil
		}
	}
	return fmt.Errorf("no well %q on the plate (%d wells)", path, len(p.Wells))
}

func (m *Metadata) parseWell(v value, f *findings) {
	o, err := v.object()
	if err != nil {
		f.noted(err)
		return
	}
	w := &Well{}
	w.Version = m.stated(o.get("version"), f)
	images := o.get("images")
	list, err := images.list()
	if err != nil {
		f.noted(err)
		return
	}
	if len(list) == 0 {
		f.bad(images.field, "empty (at least one field of view)")
	}
	for _, e := range list {
		o, err := e.object()
		if err != nil {
			f.noted(err)
			continue
		}
		var im WellImage
		p := o.get("path")
		if im.Path, err = p.text(); err != nil {
			f.noted(err)
			continue
		}
		if err := checkInside(im.Path); err != nil {
			f.fatal(p.field, "%v", err)
			continue
		}
		if a := o.get("acquisition"); !a.missing() {
			if im.Acquisition, err = a.integer(); err != nil {
				f.noted(err)
			}
		}
		w.Images = append(w.Images, im)
	}
	m.Well = w
}
