package registration

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"path"
	"strconv"
	"strings"

	"strata/pkg/filter"
	"strata/pkg/smallfile"
)

// placementKind marks files of placements.
const placementKind = "strata placement"

// A Placement says where someone put a slice on the slice before it, in the viewer. Its file is JSON.
type Placement struct {
	Kind   string `json:"kind"`
	Fixed  string `json:"fixed"` // names of the two slices
	Moving string `json:"moving"`
	Placed Placed `json:"transform"`
}

// Placed describes how a moving slice lies on the fixed one: a rigid transform from pixels (x, y) of the fixed slice to
// pixels of the moving slice, a rotation about a centre and a translation; and the planes of both slices that coincide.
type Placed struct {
	Angle   float64 `json:"angle"` // radians
	TX      float64 `json:"tx"`
	TY      float64 `json:"ty"`
	CX      float64 `json:"cx"`
	CY      float64 `json:"cy"`
	FixedZ  int     `json:"fixed_z"`
	MovingZ int     `json:"moving_z"`
}

// PlacedBy returns the placement of a registered pair. Without offsets, the first planes of both slices coincide.
func PlacedBy(t filter.Rigid, o *Offsets) Placed {
	p := Placed{Angle: t.Angle, TX: t.TX, TY: t.TY, CX: t.CX, CY: t.CY}
	if o != nil {
		p.FixedZ, p.MovingZ = o.FixedZ, o.MovingZ
	}
	return p
}

// Rigid returns the transform.
func (p Placed) Rigid() filter.Rigid {
	return filter.Rigid{Angle: p.Angle, TX: p.TX, TY: p.TY, CX: p.CX, CY: p.CY}
}

// Offsets returns the planes.
func (p Placed) Offsets() Offsets { return Offsets{FixedZ: p.FixedZ, MovingZ: p.MovingZ} }

// Slice returns the number in the name of the moving slice.
func (p *Placement) Slice() (id int, ok bool) {
	m := sliceNumber().FindStringSubmatch(path.Base(p.Moving))
	if m == nil {
		return 0, false
	}
	id, err := strconv.Atoi(m[1])
	return id, err == nil
}

// ReadPlacement reads a placement. name is the file's name in errors, which begin with it.
func ReadPlacement(r io.Reader, name string) (*Placement, error) {
	b, err := smallfile.All(r, name)
	if err != nil {
		return nil, err
	}
	p := new(Placement)
	d := json.NewDecoder(bytes.NewReader(b))
	if err := d.Decode(p); err != nil {
		return nil, smallfile.JSONError(name, b, err)
	}
	if p.Kind != placementKind {
		return nil, fmt.Errorf("%s: kind is %.40q, want %q, as view saves it", name, p.Kind, placementKind)
	}
	t := p.Placed
	at := func(key string) string { return fmt.Sprintf("%s:%d", name, smallfile.JSONLine(b, "transform", key)) }
	for _, v := range []struct {
		key string
		px  float64
	}{{"tx", t.TX}, {"ty", t.TY}, {"cx", t.CX}, {"cy", t.CY}} {
		if math.Abs(v.px) > farthest {
			return nil, fmt.Errorf("%s: %s of the transform is %g pixels, want a number from %g to %g", at(v.key), v.key, v.px, -farthest, farthest)
		}
	}
	for _, z := range []struct {
		key   string
		plane int
	}{{"fixed_z", t.FixedZ}, {"moving_z", t.MovingZ}} {
		if z.plane < 0 || z.plane > mostWhole {
			return nil, fmt.Errorf("%s: %s is %d, want the number of a plane, from 0", at(z.key), z.key, z.plane)
		}
	}
	switch {
	case math.Abs(t.Angle) > fullTurn:
		return nil, fmt.Errorf("%s: an angle of %g radians: want at most a full turn", at("angle"), t.Angle)
	case strings.ContainsAny(p.Moving, "/\\\x00") || p.Moving == "":
		return nil, fmt.Errorf("%s: moving is %.80q, want the name of a slice", name, p.Moving)
	}
	if _, ok := p.Slice(); !ok {
		return nil, fmt.Errorf("%s: moving is %.80q, want the name of a slice with its number, such as slice_z04", name, p.Moving)
	}
	return p, nil
}
