package ngff

import "encoding/hex"

func parseOmero(v value, f *findings) *Omero {
	o, ok := need(f, v, value.object)
	if !ok {
		return nil
	}
	om := &Omero{Raw: v.raw}
	may(f, o.get("name"), value.text, &om.Name)
	may(f, o.get("version"), value.text, &om.Version)
	list, ok := need(f, o.get("channels"), value.list)
	if !ok {
		return om
	}
	for _, e := range list {
		om.Channels = append(om.Channels, parseChannel(e, f))
	}
	return om
}

func parseChannel(v value, f *findings) (c Channel) {
	o, ok := need(f, v, value.object)
	if !ok {
		return c
	}
	may(f, o.get("label"), value.text, &c.Label)
	e := o.get("color")
	if c.Color, ok = need(f, e, value.text); ok {
		if b, err := hex.DecodeString(c.Color); err != nil || len(b) != 3 {
			f.bad(e.field, "%q (must be six hexadecimal digits, RRGGBB)", c.Color)
		}
	}
	may(f, o.get("active"), value.boolean, &c.Active)
	w := o.get("window")
	wo, ok := need(f, w, value.object)
	if !ok {
		return c
	}
	c.Window = &Window{}
	for _, m := range []struct {
		name string
		dst  *float64
	}{{"min", &c.Window.Min}, {"max", &c.Window.Max}, {"start", &c.Window.Start}, {"end", &c.Window.End}} {
		*m.dst, _ = need(f, wo.get(m.name), value.number)
	}
	if c.Window.Min > c.Window.Max {
		f.bad(w.field, "min %v is above max %v", c.Window.Min, c.Window.Max)
	}
	if c.Window.Start > c.Window.End {
		f.bad(w.field, "start %v is above end %v", c.Window.Start, c.Window.End)
	}
	return c
}
