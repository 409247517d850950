package ngff

import (
	"encoding/json"
	"math"
	"slices"
)

// Axis is one dimension of an image.
type Axis struct {
	Name string // "x", "c"…; unique in an image
	Type string // "space", "channel", "time", or something else
	Unit string // UDUNITS-2 name such as "micrometer"; "" if not stated
}

// Axis types defined by NGFF.
const (
	TypeSpace   = "space"
	TypeChannel = "channel"
	TypeTime    = "time"
)

// SpaceAxes returns an axis for each letter of names, such as "zyx" or "tczyx":
// t is time, c channel, and the others space in the given unit.
func SpaceAxes(names, unit string) []Axis {
	var axes []Axis
	for _, r := range names {
		a := Axis{Name: string(r), Type: typeByName(string(r))}
		if a.Type == "" {
			a.Type = TypeSpace
		}
		if a.Type == TypeSpace {
			a.Unit = unit
		}
		axes = append(axes, a)
	}
	return axes
}

// typeByName returns the type that an axis of a customary name has; "" for others.
func typeByName(name string) string {
	switch name {
	case "x", "y", "z":
		return TypeSpace
	case "c":
		return TypeChannel
	case "t":
		return TypeTime
	}
	return ""
}

// Transform maps array indices to physical coordinates along each axis: index × Scale + Translation, in the
// unit of the axis. A nil Translation means zero everywhere, a nil Scale one.
type Transform struct {
	Scale       []float64
	Translation []float64
}

// then returns the transform that applies t first and u after it.
func (t Transform) then(u Transform) Transform {
	r := Transform{Scale: t.Scale, Translation: t.Translation}
	if u.Scale != nil {
		r.Scale = multiplied(t.Scale, u.Scale)
		if t.Translation != nil {
			r.Translation = multiplied(t.Translation, u.Scale)
		}
	}
	if u.Translation != nil {
		sum := make([]float64, len(u.Translation))
		copy(sum, r.Translation)
		for d, v := range u.Translation {
			sum[d] += v
		}
		r.Translation = sum
	}
	return r
}

func multiplied(a, b []float64) []float64 {
	if a == nil {
		return b
	}
	p := make([]float64, len(a))
	for d := range a {
		p[d] = a[d] * b[d]
	}
	return p
}

// finitePositive reports a number that can be a scale.
func finitePositive(v float64) bool { return v > 0 && !math.IsInf(v, 1) }

// Dataset is one resolution level in the metadata.
type Dataset struct {
	Path      string    // of the array, from the group
	Transform Transform // of the level alone, without the multiscale's
}

// Multiscale is one pyramid in the metadata.
type Multiscale struct {
	Name      string
	Version   string // "" if not stated here
	Type      string // how the levels were made, in the writer's words
	Axes      []Axis
	Datasets  []Dataset
	Transform Transform // applied after each dataset's
	// ExplicitScale is false for versions 0.1 to 0.3, which state no voxel size.
	ExplicitScale bool
}

// Window is the range of values of a channel: Min to Max is possible, Start to End is displayed.
type Window struct {
	Min   float64 `json:"min"`
	Max   float64 `json:"max"`
	Start float64 `json:"start"`
	End   float64 `json:"end"`
}

// Channel describes how one channel is displayed.
type Channel struct {
	Label  string  `json:"label,omitempty"`
	Color  string  `json:"color"` // six hexadecimal digits, RGB
	Window *Window `json:"window,omitempty"`
	Active bool    `json:"active"`
}

// Omero is the transitional display metadata of an image.
type Omero struct {
	Name     string
	Version  string
	Channels []Channel
	Raw      json.RawMessage // the whole object, for members without a field here
}

// WithoutWindows returns the settings for an image of the same channels with other values: colours and labels, without
// windows. It is nil for nil.
func (o *Omero) WithoutWindows() *Omero {
	if o == nil {
		return nil
	}
	c := &Omero{Name: o.Name, Version: o.Version, Channels: slices.Clone(o.Channels)}
	for i := range c.Channels {
		c.Channels[i].Window = nil
	}
	return c
}

// LabelColor is the display colour of a label value.
type LabelColor struct {
	Value int64
	RGBA  [4]uint8
}

// ImageLabel describes the labels of a label image.
type ImageLabel struct {
	Version    string
	Source     string // path to the image it labels, from the label's group; "" if not stated
	Colors     []LabelColor
	Properties []json.RawMessage // free-form objects with a "label-value"

	raw json.RawMessage // as read
}

// Plate is a high-content-screening plate.
type Plate struct {
	Name         string
	Version      string
	Rows         []string
	Columns      []string
	Wells        []PlateWell
	FieldCount   int // largest number of fields of view of a well; 0 when not stated
	Acquisitions []Acquisition
}

// PlateWell is the place of one well on a plate.
type PlateWell struct {
	Path                  string // of the well's group, from the plate: row name, slash, column name
	RowIndex, ColumnIndex int    // into Rows and Columns
}

// Acquisition is one run of the microscope over a plate.
type Acquisition struct {
	ID                int
	Name              string
	MaximumFieldCount int // 0 when not stated
	Description       string
	StartTime         int64 // seconds since 1970; 0 when not stated
	EndTime           int64
}

// Well lists the fields of view of a well.
type Well struct {
	Version string
	Images  []WellImage
}

// WellImage is one field of view.
type WellImage struct {
	Path        string // of the image's group, from the well
	Acquisition int    // ID of the acquisition; 0 when not stated
}

// Metadata holds the NGFF metadata of one group. Absent parts are nil.
type Metadata struct {
	Version     string // "0.1" … "0.5"; "" when nothing states it
	Multiscales []Multiscale
	Omero       *Omero
	Collection  bool     // a group of images "0", "1" …, in the layout of bioformats2raw
	Scene       bool     // transformations between images (NGFF 0.6)
	Labels      []string // names of label images: of a "labels" group
	ImageLabel  *ImageLabel
	Plate       *Plate
	Well        *Well
}
