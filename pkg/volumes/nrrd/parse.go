package nrrd

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"strata/pkg/dtype"
	"strata/pkg/mem"
	"strata/pkg/volumes"
)

// parsed is what a header says besides the volume.
type parsed struct {
	*volumes.Volume
	gzip               bool
	file               string // of the voxels; "": they follow the header
	lineSkip, byteSkip int64
}

// parse reads the fields of a header.
func parse(h *header) (*parsed, error) {
	p := &parsed{Volume: &volumes.Volume{Times: 1, Channels: 1, Depth: 1, Height: 1, Width: 1, Codes: map[string]any{}}, file: h.fields["data file"]}
	name, ok := h.fields["type"]
	if p.Type = types[strings.ToLower(name)]; p.Type == dtype.Invalid {
		if !ok {
			return nil, fmt.Errorf("type: missing")
		}
		return nil, fmt.Errorf("type: %q is not supported", shorten(name))
	}
	switch e := strings.ToLower(h.fields["encoding"]); e {
	case "raw":
	case "gzip", "gz":
		p.gzip = true
	default:
		return nil, fmt.Errorf("encoding: %q is not supported (raw and gzip are)", shorten(e))
	}
	switch e := h.fields["endian"]; {
	case e == "big":
		p.BigEndian = true
	case e != "little" && p.Type.Size() > 1:
		return nil, fmt.Errorf("endian: %q (must be little or big)", shorten(e))
	}
	for name, to := range map[string]*int64{"line skip": &p.lineSkip, "byte skip": &p.byteSkip} {
		if s := h.fields[name]; s != "" {
			n, err := strconv.ParseInt(s, 10, 64)
			if err != nil || n < -1 || n == -1 && (name == "line skip" || p.gzip) {
				return nil, fmt.Errorf("%s: %q (must be a number from 0 on)", name, shorten(s))
			}
			*to = n
		}
	}
	return p, p.grid(h)
}

// axis is one of the file's, the fastest first.
type axis struct {
	size      int
	kind      string
	direction [3]float64 // of space; unset: the axis is of something else
	space     bool
	spacing   float64
}

// grid finds which axes are x, y, z, times and channels.
func (p *parsed) grid(h *header) error {
	axes, err := axesOf(h)
	if err != nil {
		return err
	}
	stated := slices.ContainsFunc(axes, func(a axis) bool { return a.space })
	isSpace := func(a axis) bool {
		if stated {
			return a.space
		}
		return a.kind == "" || a.kind == "domain" || a.kind == "space" || a.kind == "???"
	}
	var space []axis
	for i, a := range axes {
		switch {
		case isSpace(a) && len(space) < 3:
			space = append(space, a)
		case a.size == 1:
		case i == 0:
			p.Channels, p.Together = a.size, true
		case a.kind == "time" && p.Times == 1 && len(space) > 1:
			p.Times, p.Interval = a.size, a.spacing
		case p.Channels == 1 && len(space) > 1:
			p.Channels = a.size
		default:
			return fmt.Errorf("axis %d of %q is not supported: a volume has x, y, z, and perhaps channels or times", i, a.kind)
		}
	}
	if p.Together && p.Times > 1 {
		return fmt.Errorf("channels of a voxel beside each other, and times, are not supported together")
	}
	if len(space) < 2 {
		return fmt.Errorf("%d axes of space (must be 2 or 3)", len(space))
	}
	p.Flat = len(space) == 2
	p.Width, p.Height = space[0].size, space[1].size
	if !p.Flat {
		p.Depth = space[2].size
	}
	return p.place(h, space, stated)
}

// axesOf reads what the header says of each axis.
func axesOf(h *header) ([]axis, error) {
	n, err := strconv.Atoi(h.fields["dimension"])
	if err != nil || n < 1 || n > 16 {
		return nil, fmt.Errorf("dimension: %q (must be 1 to 16)", shorten(h.fields["dimension"]))
	}
	axes := make([]axis, n)
	list := func(name string) ([]string, error) {
		w := h.words(name)
		if w != nil && len(w) != n {
			return nil, fmt.Errorf("%s: %d values for %d axes", name, len(w), n)
		}
		return w, nil
	}
	sizes, err := list("sizes")
	if err == nil && sizes == nil {
		err = fmt.Errorf("sizes: missing")
	}
	if err != nil {
		return nil, err
	}
	total := 1
	for i, s := range sizes {
		if axes[i].size, err = strconv.Atoi(s); err != nil || axes[i].size < 1 || axes[i].size > math.MaxInt32 {
			return nil, fmt.Errorf("sizes: %q (must be 1 to %d)", shorten(s), math.MaxInt32)
		}
		total = mem.Product(total, axes[i].size)
	}
	for name, set := range map[string]func(a *axis, s string) error{
		"kinds": func(a *axis, s string) error { a.kind = strings.ToLower(s); return nil },
		"space directions": func(a *axis, s string) (err error) {
			a.direction, a.space, err = vector(s)
			return err
		},
		"spacings": func(a *axis, s string) (err error) {
			if a.spacing, err = strconv.ParseFloat(s, 64); err != nil {
				return fmt.Errorf("%q is no number", shorten(s))
			}
			return nil
		},
	} {
		values, err := list(name)
		if err != nil {
			return nil, err
		}
		for i, s := range values {
			if err := set(&axes[i], s); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	return axes, nil
}

// flips are the signs that lead from a space to right, anterior, superior.
var flips = map[string][3]float64{
	"right-anterior-superior": {1, 1, 1}, "ras": {1, 1, 1}, "left-anterior-superior": {-1, 1, 1}, "las": {-1, 1, 1},
	"left-posterior-superior": {-1, -1, 1}, "lps": {-1, -1, 1},
}

// perMM are the units of length in mm.
var perMM = map[string]float64{"mm": 1, "millimeter": 1, "cm": 10, "m": 1000, "um": 1e-3, "µm": 1e-3, "μm": 1e-3, "micrometer": 1e-3, "microns": 1e-3, "micron": 1e-3, "nm": 1e-6}

// place finds where voxels lie.
func (p *parsed) place(h *header, space []axis, stated bool) error {
	name := strings.ToLower(h.fields["space"])
	flip, known := flips[name]
	if !known {
		flip = [3]float64{1, 1, 1}
		switch {
		case name != "":
			p.warn("space %q is taken for right-anterior-superior", shorten(name))
		case stated:
			p.warn("states no space: right-anterior-superior is taken for it")
		}
	}
	unit := 1.0
	if units := h.words("space units"); len(units) > 0 {
		if unit = perMM[strings.ToLower(units[0])]; unit == 0 {
			return fmt.Errorf("space units: %q is no unit of length that is known (such as mm)", shorten(units[0]))
		}
	} else {
		p.warn("states no unit of length: mm is taken for it")
	}
	var origin [3]float64
	if s := h.fields["space origin"]; s != "" {
		var err error
		if origin, _, err = vector(strings.ReplaceAll(s, " ", "")); err != nil {
			return fmt.Errorf("space origin: %w", err)
		}
	}
	for r := range 3 {
		for c, a := range space {
			switch {
			case stated:
				p.Space[r][c] = flip[r] * unit * a.direction[r]
			case r == c && a.spacing != 0 && a.spacing == a.spacing:
				p.Space[r][c] = unit * math.Abs(a.spacing)
			case r == c:
				p.Space[r][c] = unit
			}
		}
		p.Space[r][3] = flip[r] * unit * origin[r]
	}
	if p.Flat { // a plane has a thickness that nobody states
		x, y := p.column(0), p.column(1)
		normal := [3]float64{float64(x[1]*y[2]) - float64(x[2]*y[1]), float64(x[2]*y[0]) - float64(x[0]*y[2]), float64(x[0]*y[1]) - float64(x[1]*y[0])}
		n := math.Sqrt(float64(normal[0]*normal[0]) + float64(normal[1]*normal[1]) + float64(normal[2]*normal[2]))
		for r := range 3 {
			p.Space[r][2] = unit * normal[r] / n
		}
	}
	return p.Space.Check()
}

func (p *parsed) column(c int) [3]float64 {
	return [3]float64{p.Space[0][c], p.Space[1][c], p.Space[2][c]}
}

func (p *parsed) warn(format string, args ...any) {
	p.Warnings = append(p.Warnings, fmt.Sprintf(format, args...))
}
