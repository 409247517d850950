package ngff

import "encoding/hex"

func parseOmero(v value, f *findings) *Omero {
	o, err := v.object()
	if err != nil {
		f.noted(err)
		return nil
	}
	om := &Omero{Raw: v.raw}
	if n := o.get("name"); !n.missing() {
		if om.Name, err = n.text(); err != nil {
			f.noted(err)
		}
	}
	if n := o.get("version"); !n.missing() {
		if om.Version, err = n.text(); err != nil {
			f.noted(err)
		}
	}
	list, err := o.get("channels").list()
	if err != nil {
		f.noted(err)
		return om
	}
	for _, e := range list {
		om.Channels = append(om.Channels, parseChannel(e, f))
	}
	return om
}

func parseChannel(v value, f *findings) (c Channel) {
	o, err := v.object()
	if err != nil {
		f.noted(err)
		return c
	}
	if e := o.get("label"); !e.missing() {
		if c.Label, err = e.text(); err != nil {
			f.noted(err)
		}
	}
	e := o.get("color")
	if c.Color, err = e.text(); err != nil {
		f.noted(err)
	} else if b, err := hex.DecodeString(c.Color); err != nil || len(b) != 3 {
		f.bad(e.field, "%q (must be six hexadecimal digits, RRGGBB)", c.Color)
	}
	if e := o.get("active"); !e.missing() {
		if c.Active, err = e.boolean(); err != nil {
			f.noted(err)
		}
	}
	w := o.get("window")
	wo, err := w.object()
	if err != nil {
		f.noted(err)
		return c
	}
	c.Window = &Window{}
	for _, m := range []struct {
		name string
		dst  *float64
	}{{"min", &c.Window.Min}, {"max", &c.Window.Max}, {"start", &c.Window.Start}, {"end", &c.Window.End}} {
		if *m.dst, err = wo.get(m.name).number(); err != nil {
			f.noted(err)
		}
	}
	if c.Window.Min > c.Window.Max {
		f.bad(w.field, "min %v is above max %v", c.Window.Min, c.Window.Max)
	}
	if c.Window.Start > c.Window.End {
		f.bad(w.field, "start %v is above end %v", c.Window.Start, c.Window.End)
	}
	return c
}
