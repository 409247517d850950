package ngff

import "math"

func (m *Metadata) parseLabels(v value, f *findings) {
	list, ok := need(f, v, value.list)
	if !ok {
		return
	}
	m.Labels = []string{}
	for _, e := range list {
		if s, ok := inside(f, e); ok {
			m.Labels = append(m.Labels, s)
		}
	}
}

func (m *Metadata) parseImageLabel(v value, f *findings) *ImageLabel {
	o, ok := need(f, v, value.object)
	if !ok {
		return nil
	}
	l := &ImageLabel{raw: v.raw}
	may(f, o.get("version"), value.text, &l.Version)
	if l.Version == "" && m.Version < "0.5" {
		f.warn(o.get("version").field, "missing (such as \"0.4\")")
	}
	if e := o.get("source"); !e.missing() {
		so, _ := need(f, e, value.object)
		may(f, so.get("image"), value.text, &l.Source)
	}
	if e := o.get("colors"); e.missing() {
		f.warn(e.field, "missing (a label image should have colours)")
	} else {
		l.parseColors(e, f)
	}
	if e := o.get("properties"); !e.missing() {
		list, ok := need(f, e, value.list)
		if ok && len(list) == 0 {
			f.bad(e.field, "empty (at least one)")
		}
		seen := map[int]bool{}
		for _, p := range list {
			if po, ok := need(f, p, value.object); ok {
				if n, ok := need(f, po.get("label-value"), value.integer); ok && seen[n] {
					f.bad(po.get("label-value").field, "%d a second time (each value once)", n)
				} else if ok {
					seen[n] = true
				}
			}
			l.Properties = append(l.Properties, p.raw)
		}
	}
	return l
}

func (l *ImageLabel) parseColors(v value, f *findings) {
	list, ok := need(f, v, value.list)
	if !ok {
		return
	}
	if len(list) == 0 {
		f.bad(v.field, "empty (at least one colour)")
	}
	seen := map[int64]bool{}
	for _, e := range list {
		o, ok := need(f, e, value.object)
		if !ok {
			continue
		}
		n, ok := need(f, o.get("label-value"), value.integer)
		if !ok {
			continue
		}
		c := LabelColor{Value: int64(n)}
		if seen[c.Value] {
			f.bad(o.get("label-value").field, "%d a second time (each value once)", n)
		}
		seen[c.Value] = true
		if r := o.get("rgba"); !r.missing() {
			parts, ok := need(f, r, value.list)
			if !ok {
				continue
			}
			if len(parts) != 4 {
				f.bad(r.field, "%d numbers (must be 4, each 0 to 255)", len(parts))
				continue
			}
			for i, p := range parts {
				x, ok := need(f, p, value.number)
				if !ok {
					break
				}
				if x < 0 || x > 255 || x != math.Trunc(x) {
					f.bad(p.field, "%v (must be an integer from 0 to 255)", x)
					break
				}
				c.RGBA[i] = uint8(x)
			}
		}
		l.Colors = append(l.Colors, c)
	}
}
