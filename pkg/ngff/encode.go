package ngff

import (
	"encoding/json"
	"slices"
	"strconv"
)

// JSON that this package writes.
type (
	axisJSON struct {
		Name string `json:"name"`
		Type string `json:"type,omitempty"`
		Unit string `json:"unit,omitempty"`
	}
	transformJSON struct {
		Type        string    `json:"type"`
		Scale       []float64 `json:"scale,omitempty"`
		Translation []float64 `json:"translation,omitempty"`
	}
	datasetJSON struct {
		Path       string          `json:"path"`
		Transforms []transformJSON `json:"coordinateTransformations"`
	}
	multiscaleJSON struct {
		Version  string        `json:"version,omitempty"`
		Name     string        `json:"name,omitempty"`
		Type     string        `json:"type,omitempty"`
		Axes     []axisJSON    `json:"axes"`
		Datasets []datasetJSON `json:"datasets"`
	}
)

// VersionFor returns the NGFF version that images of a Zarr format are written in: 0.4 for Zarr v2, 0.5 for
// Zarr v3.
func VersionFor(format int) string {
	if format == 2 {
		return "0.4"
	}
	return "0.5"
}

// method tells in the metadata how the levels were made.
func method(labels bool) string {
	if labels {
		return "nearest"
	}
	return "linear"
}

// encode returns the multiscale as JSON of the version that a Zarr format has.
func (m *Multiscale) encode(format int) multiscaleJSON {
	j := multiscaleJSON{Name: m.Name, Type: m.Type, Axes: []axisJSON{}, Datasets: []datasetJSON{}}
	if format == 2 {
		j.Version = VersionFor(format)
	}
	for _, a := range m.Axes {
		j.Axes = append(j.Axes, axisJSON(a))
	}
	for _, d := range m.Datasets {
		t := []transformJSON{{Type: "scale", Scale: d.Transform.Scale}}
		if d.Transform.Translation != nil {
			t = append(t, transformJSON{Type: "translation", Translation: d.Transform.Translation})
		}
		j.Datasets = append(j.Datasets, datasetJSON{d.Path, t})
	}
	return j
}

// ownKeys lists the attributes that NGFF defines, and ours that names the files written with an image.
// Attributes passed on from another image must not include these.
var ownKeys = []string{"ome", "multiscales", "omero", "image-label", "strata"}

// attributes returns the attributes of an image's group: the caller's, and the NGFF metadata.
func (m *Multiscale) attributes(format int, omero *Omero, label *ImageLabel, extra map[string]any) map[string]any {
	attrs := passed(extra)
	into := attrs
	if format == 3 {
		into = map[string]any{"version": VersionFor(format)}
		attrs["ome"] = into
	}
	into["multiscales"] = []multiscaleJSON{m.encode(format)}
	if o := omero.encode(); o != nil {
		into["omero"] = o
	}
	if label != nil {
		into["image-label"] = label.encode(format)
	}
	return attrs
}

// encode returns the metadata of labels as JSON: as read, or the colours, with the version where the format has it.
func (l *ImageLabel) encode(format int) map[string]json.RawMessage {
	out := map[string]json.RawMessage{}
	if l.raw != nil {
		_ = json.Unmarshal(l.raw, &out) // it was parsed before
	} else if len(l.Colors) > 0 {
		var colors []map[string]any
		for _, c := range l.Colors {
			colors = append(colors, map[string]any{"label-value": c.Value, "rgba": c.RGBA}) // an array: a slice would become base64
		}
		out["colors"], _ = json.Marshal(colors) // numbers always encode
	}
	delete(out, "version")
	if format == 2 {
		out["version"] = json.RawMessage(strconv.Quote(VersionFor(format)))
	}
	return out
}

// passed returns attributes without those that the writer sets itself.
func passed(extra map[string]any) map[string]any {
	attrs := map[string]any{}
	for k, v := range extra {
		attrs[k] = v
	}
	for _, k := range ownKeys {
		delete(attrs, k)
	}
	return attrs
}

// encode returns the display metadata as JSON: as read, or made of the fields. Nil when there is none.
func (o *Omero) encode() any {
	switch {
	case o == nil:
		return nil
	case o.Raw != nil:
		return o.Raw
	}
	j := struct {
		Name     string    `json:"name,omitempty"`
		Version  string    `json:"version,omitempty"`
		Channels []Channel `json:"channels"`
	}{o.Name, o.Version, o.Channels}
	if j.Channels == nil {
		j.Channels = []Channel{}
	}
	return j
}

// levelTransform returns the transform of a level of the given shape, made from level 0 of shape first.
// Levels are resized between the outer borders of voxels (docs/stages/images.md, "Pyramids"), so that all of them
// fill the same box: a voxel is longer by the ratio of the shapes, and the centre of the first one moves in
// by half of the growth.
func levelTransform(base Transform, first, shape []int) Transform {
	t := Transform{slices.Clone(base.Scale), slices.Clone(base.Translation)}
	if slices.Equal(first, shape) {
		return t
	}
	if t.Translation == nil {
		t.Translation = make([]float64, len(shape))
	}
	for d, n := range shape {
		t.Scale[d] = float64(base.Scale[d] * (float64(first[d]) / float64(n))) // rounded: the same number on every machine
		t.Translation[d] += 0.5 * (t.Scale[d] - base.Scale[d])
	}
	return t
}

// rawAttributes makes attributes as read ready to be written.
func rawAttributes(m map[string]json.RawMessage) map[string]any {
	out := make(map[string]any, len(m))
	for k, v := range m {
		out[k] = v
	}
	return out
}
