package ngff

import "math"

func (m *Metadata) parseLabels(v value, f *findings) {
	list, err := v.list()
	if err != nil {
		f.noted(err)
		return
	}
	m.Labels = []string{}
	for _, e := range list {
		s, err := e.text()
		if err != nil {
			f.noted(err)
			continue
		}
		if err := checkInside(s); err != nil {
			f.fatal(e.field, "%v", err)
			continue
		}
		m.Labels = append(m.Labels, s)
	}
}

func parseImageLabel(v value, f *findings) *ImageLabel {
	o, err := v.object()
	if err != nil {
		f.noted(err)
		return nil
	}
	l := &ImageLabel{}
	if e := o.get("version"); !e.missing() {
		if l.Version, err = e.text(); err != nil {
			f.noted(err)
		}
	}
	if e := o.get("source"); !e.missing() {
		if so, err := e.object(); err != nil {
			f.noted(err)
		} else if im := so.get("image"); !im.missing() {
			if l.Source, err = im.text(); err != nil {
				f.noted(err)
			}
		}
	}
	if e := o.get("colors"); !e.missing() {
		l.parseColors(e, f)
	}
	if e := o.get("properties"); !e.missing() {
		list, err := e.list()
		if err != nil {
			f.noted(err)
		}
		seen := map[int]bool{}
		for _, p := range list {
			if po, err := p.object(); err != nil {
				f.noted(err)
			} else if n, err := po.get("label-value").integer(); err != nil {
				f.noted(err)
			} else if seen[n] {
				f.bad(po.get("label-value").field, "%d a second time (each value once)", n)
			} else {
				seen[n] = true
			}
			l.Properties = append(l.Properties, p.raw)
		}
	}
	return l
}

func (l *ImageLabel) parseColors(v value, f *findings) {
	list, err := v.list()
	if err != nil {
		f.noted(err)
		return
	}
	seen := map[int64]bool{}
	for _, e := range list {
		o, err := e.object()
		if err != nil {
			f.noted(err)
			continue
		}
		n, err := o.get("label-value").integer()
		if err != nil {
			f.noted(err)
			continue
		}
		c := LabelColor{Value: int64(n)}
		if seen[c.Value] {
			f.bad(o.get("label-value").field, "%d a second time (each value once)", n)
		}
		seen[c.Value] = true
		if r := o.get("rgba"); !r.missing() {
			parts, err := r.list()
			if err != nil {
				f.noted(err)
				continue
			}
			if len(parts) != 4 {
				f.bad(r.field, "%d numbers (must be 4, each 0 to 255)", len(parts))
				continue
			}
			for i, p := range parts {
				x, err := p.number()
				if err != nil {
					f.noted(err)
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
