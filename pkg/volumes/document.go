package volumes

import (
	"encoding/json"
	"math"

	"strata/pkg/zarr/codec"
	"strata/pkg/zarr/virtual"
)

// axes returns the dimensions of the array: what there is more than one of, and z, y, x.
func (v *Volume) axes() (axes []virtual.Axis) {
	if v.Times > 1 {
		axes = append(axes, virtual.Along('t', "t", v.Times, 1))
	}
	if v.Channels > 1 {
		per := 1
		if v.Together {
			per = v.Channels
		}
		axes = append(axes, virtual.Along('c', "c", v.Channels, per))
	}
	if !v.Flat {
		axes = append(axes, virtual.Along('z', "z", v.Depth, 1))
	}
	return append(axes, virtual.Along('y', "y", v.Height, v.Height), virtual.Along('x', "x", v.Width, v.Width))
}

// decoded reports whether the store decodes chunks: others are as they lie in the file.
func (v *Volume) decoded() bool { return v.scaled() || v.Together && v.Channels > 1 }

// arrayDocument returns the zarr.json of the array.
func (v *Volume) arrayDocument() ([]byte, error) {
	t, big := v.shownType(), v.BigEndian && !v.decoded()
	var codecs []any
	switch {
	case t.Size() == 1:
		codecs = append(codecs, virtual.Object("bytes", nil))
	case big:
		codecs = append(codecs, virtual.Object("bytes", map[string]any{"endian": "big"}))
	default:
		codecs = append(codecs, virtual.Object("bytes", map[string]any{"endian": "little"}))
	}
	if v.decoded() {
		codecs = append(codecs, virtual.Object(codec.OfStoreName, map[string]any{"encoding": "raw"}))
	}
	return virtual.ArrayDocument(v.axes(), t, codecs)
}

// imageDocument returns the zarr.json of the group. The image's translation is that of the affine where its axes run
// along those of space, towards more; else only the attribute says where it lies.
func (v *Volume) imageDocument() ([]byte, error) {
	size := v.Space.Sizes()
	um := map[byte]float64{'x': 1e3 * size[0], 'y': 1e3 * size[1], 'z': 1e3 * size[2]}
	aligned := true
	for r := range 3 {
		for c := range 3 {
			aligned = aligned && (r == c) == (v.Space[r][c] > 1e-6*size[c]) && (r == c || math.Abs(v.Space[r][c]) <= 1e-6*size[c])
		}
	}
	var axes []any
	var scale, move []float64
	for _, x := range v.axes() {
		a := map[string]any{"name": x.Name}
		step, shift := 1.0, 0.0
		switch x.Role {
		case 't':
			a["type"], a["unit"] = "time", "second"
			if v.Interval > 0 {
				step = v.Interval
			}
		case 'c':
			a["type"] = "channel"
		default:
			a["type"], a["unit"] = "space", "micrometer"
			step, shift = um[x.Role], 1e3*v.Space[x.Role-'x'][3]
		}
		axes, scale, move = append(axes, a), append(scale, step), append(move, shift)
	}
	transforms := []any{map[string]any{"type": "scale", "scale": scale}}
	if aligned {
		transforms = append(transforms, map[string]any{"type": "translation", "translation": move})
	}
	multiscale := map[string]any{"axes": axes, "datasets": []any{map[string]any{"path": "0", "coordinateTransformations": transforms}}}
	if v.Name != "" {
		multiscale["name"] = v.Name
	}
	return json.Marshal(map[string]any{"zarr_format": 3, "node_type": "group", "attributes": map[string]any{
		"ome":    map[string]any{"version": "0.5", "multiscales": []any{multiscale}},
		WorldKey: World{Affine: v.Space, Unit: "millimeter", Space: "RAS", Codes: v.Codes},
	}})
}
