package view

import (
	"strconv"

	"strata/pkg/ngff"
	"strata/pkg/zarr/store"
)

// Description describes an image for the page.
type Description struct {
	Name     string     `json:"name"`
	Location string     `json:"location"`
	DType    string     `json:"dtype"`  // as stored
	Served   string     `json:"served"` // in tiles
	Flat     bool       `json:"flat"`   // has no axis z
	Levels   []Level    `json:"levels"`
	Others   []Other    `json:"others"`  // the dimensions besides z, y, x
	Channel  int        `json:"channel"` // index of the channel dimension in Others; -1: none
	Channels []Channel  `json:"channels"`
	Labels   bool       `json:"labels"` // a label image
	Colors   [][5]int64 `json:"colors"` // of labels: value, red, green, blue, alpha
	Stored   bool       `json:"stored"` // stored as Zarr and therefore served below [StoredAt]
	Warnings []string   `json:"warnings"`
}

// Level is one resolution of an image: z, y, x.
type Level struct {
	Shape  [3]int     `json:"shape"`
	Chunk  [3]int     `json:"chunk"`
	Size   [3]float64 `json:"size"`   // voxel size, µm
	Origin [3]float64 `json:"origin"` // centre of the first voxel, µm
}

// Other is a dimension besides z, y, x.
type Other struct {
	Name string `json:"name"`
	Size int    `json:"size"`
}

// Channel holds the display settings that the image states for a channel.
type Channel struct {
	Name   string      `json:"name"`
	Color  string      `json:"color"` // RRGGBB; "": not stated
	Active bool        `json:"active"`
	Window *[2]float64 `json:"window"`
}

// mostChannels is the maximum number of channels that are described.
const mostChannels = 256

// describe returns the image's description.
func (s *source) describe(name string) *Description {
	im := s.image
	d := &Description{Name: name, Location: im.Group.Location(), DType: s.stored.String(), Served: s.served.String(), Flat: s.levels[0].Flat(),
		Channel: -1, Others: []Other{}, Channels: []Channel{}, Warnings: im.Warnings, Labels: im.ImageLabel != nil}
	_, other := im.Group.Store().(store.Decoder)
	d.Stored = !other
	for i := range s.levels {
		l := &s.levels[i]
		d.Levels = append(d.Levels, Level{Shape: l.Shape, Chunk: l.Chunk, Size: l.Size, Origin: l.Origin})
	}
	for i, k := range s.levels[0].Others {
		d.Others = append(d.Others, Other{im.Axes[k].Name, s.sizes[i]})
		if im.Axes[k].Name == "c" {
			d.Channel = i
			d.Channels = channels(im.Omero, s.sizes[i])
		}
	}
	if d.Channel < 0 && im.Omero != nil && len(im.Omero.Channels) == 1 {
		d.Channels = channels(im.Omero, 1)
	}
	if im.ImageLabel != nil {
		for _, c := range im.ImageLabel.Colors {
			d.Colors = append(d.Colors, [5]int64{c.Value, int64(c.RGBA[0]), int64(c.RGBA[1]), int64(c.RGBA[2]), int64(c.RGBA[3])})
		}
	}
	return d
}

// channels returns n channels as described by the metadata. Without metadata, only the first is active.
func channels(o *ngff.Omero, n int) []Channel {
	list := make([]Channel, min(n, mostChannels))
	for i := range list {
		list[i] = Channel{Name: "channel " + strconv.Itoa(i), Active: i == 0}
		if o == nil || len(o.Channels) != n {
			continue
		}
		c := o.Channels[i]
		list[i].Active = c.Active
		if c.Label != "" {
			list[i].Name = c.Label
		}
		if _, err := strconv.ParseUint(c.Color, 16, 24); err == nil && len(c.Color) == 6 {
			list[i].Color = c.Color
		}
		if w := c.Window; w != nil && w.Start < w.End {
			list[i].Window = &[2]float64{w.Start, w.End}
		}
	}
	return list
}
