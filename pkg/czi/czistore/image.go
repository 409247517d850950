package czistore

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	goimage "image"

	"strata/pkg/czi"
	"strata/pkg/dtype"
	"strata/pkg/zarr/codec"
	"strata/pkg/zarr/virtual"
)

// image is a scene, or all of them, as an image.
type image struct {
	file    *czi.File
	meta    *czi.Metadata
	name    string
	scene   int
	view    czi.Plane // its position along R, I, H, V and B
	box     goimage.Rectangle
	times   span
	depths  span
	parts   []part // channels and samples
	joined  int    // samples of a pixel, where all channels have as many; else 1
	elem    dtype.Type
	factors []int // of levels
}

// span is a range of positions along a dimension.
type span struct{ start, size int }

// part is a channel of the image: a sample of a channel of the file, in the order in which pixels hold them.
type part struct{ channel, sample int }

// newImage returns the image of a scene, or nil if there is nothing to see.
func (s *Store) newImage(meta *czi.Metadata, scene int, view czi.Plane, several bool) *image {
	f := s.file
	im := &image{file: f, meta: meta, scene: scene, view: view, box: f.Bounds(scene), name: meta.Name, times: spanOf(f, 'T'), depths: spanOf(f, 'Z'), factors: []int{1}}
	if im.box.Empty() {
		return nil
	}
	for _, c := range f.Channels() {
		p, _ := f.PixelType(c)
		n := p.Samples()
		if n == 0 {
			if text := fmt.Sprintf("%s: channel %d is left out: %s is not supported", s.where, c, p); !slices.Contains(s.warnings, text) {
				s.warnings = append(s.warnings, text)
			}
			continue
		}
		if len(im.parts) == 0 {
			im.joined = n
		} else if im.joined != n {
			im.joined = 1
		}
		im.elem = wider(im.elem, p.Elem())
		for k := range n {
			im.parts = append(im.parts, part{c, shownSample(n, k)})
		}
	}
	if len(im.parts) == 0 {
		return nil
	}
	for _, info := range meta.Scenes {
		if info.Index == scene {
			im.name = cmp.Or(info.Name, im.name)
		}
	}
	if several {
		im.name = strings.TrimSpace(fmt.Sprintf("%s R%d I%d H%d V%d B%d", im.name, view.R, view.I, view.H, view.V, view.B))
	}
	for _, k := range f.Factors(scene) {
		if im.box.Dx() >= k && im.box.Dy() >= k && f.Covers(scene, im.plane(0, im.parts[0].channel, 0), k, im.box) {
			im.factors = append(im.factors, k)
		}
	}
	return im
}

// shownSample returns the number among the samples of a pixel of the one that is shown as k: red first, in
// place of blue.
func shownSample(n, k int) int {
	if n >= 3 && k < 3 {
		return 2 - k
	}
	return k
}

// wider returns a type that holds the numbers of both.
func wider(a, b dtype.Type) dtype.Type {
	switch {
	case a == dtype.Invalid || a == b:
		return b
	case a.IsFloat() == b.IsFloat():
		if a.Size() > b.Size() {
			return a
		}
		return b
	case max(a.Size(), b.Size()) == 8 || a == dtype.Uint32 || b == dtype.Uint32:
		return dtype.Float64
	}
	return dtype.Float32
}

func spanOf(f *czi.File, dimension byte) span {
	start, end, ok := f.Dimension(dimension)
	if !ok {
		return span{0, 1}
	}
	return span{start, end - start}
}

// plane returns the plane at an index along time, of a channel of the file, and at an index along depth.
func (im *image) plane(t, channel, z int) czi.Plane {
	p := im.view
	p.C, p.Z, p.T = channel, im.depths.start+z, im.times.start+t
	return p
}

// assumed names the voxel sizes that a file does not state, for which 1 µm is assumed.
func (im *image) assumed() string {
	switch v := im.meta.VoxelUM; {
	case v[1] <= 0 && v[2] <= 0:
		return "states no size of pixels: 1 µm is taken for it"
	case im.depths.size > 1 && v[0] <= 0:
		return "states no distance of planes: 1 µm is taken for it"
	}
	return ""
}

// document returns the zarr.json of the image's group: its metadata as OME-Zarr 0.5, and what only CZI has
// under "czi".
func (im *image) document() ([]byte, error) {
	d := virtual.Image{Name: im.name}
	if im.times.size > 1 {
		d.Axes = append(d.Axes, virtual.TimeAxis(0))
	}
	if len(im.parts) > 1 {
		d.Axes = append(d.Axes, virtual.ChannelAxis())
	}
	z, y, x := im.meta.VoxelUM[0], im.meta.VoxelUM[1], im.meta.VoxelUM[2]
	if im.depths.size > 1 {
		d.Axes = append(d.Axes, virtual.SpaceAxis("z", z))
	}
	d.Axes = append(d.Axes, virtual.SpaceAxis("y", cmp.Or(y, x)), virtual.SpaceAxis("x", cmp.Or(x, y)))
	for _, k := range im.factors {
		d.Factors = append(d.Factors, [2]float64{float64(k), float64(k)})
	}
	if low, high, ok := virtual.Range(im.elem, 8*im.elem.Size()); ok && len(im.parts) <= 64 {
		for i, p := range im.parts {
			c := im.channel(i, p)
			c.Low, c.High = low, high
			d.Channels = append(d.Channels, c)
		}
	}
	more := map[string]any{"origin_px": []int{im.box.Min.Y, im.box.Min.X}}
	if im.scene != czi.AllScenes {
		more["scene"] = im.scene
	}
	if m := im.meta.Objective.Magnification; m > 0 {
		more["magnification"] = m
	}
	if im.meta.Acquired != "" {
		more["acquired"] = im.meta.Acquired
	}
	d.More = map[string]any{"czi": more}
	return d.Document()
}

// channel returns how channel i of the image is shown.
func (im *image) channel(i int, p part) virtual.Channel {
	pixel, _ := im.file.PixelType(p.channel)
	all, info := im.file.Channels(), czi.Channel{}
	at := p.channel
	if len(all) == len(im.meta.Channels) { // which may be numbered from another number than 0
		at = slices.Index(all, p.channel)
	}
	if at >= 0 && at < len(im.meta.Channels) {
		info = im.meta.Channels[at]
	}
	name := cmp.Or(info.Name, info.Fluor)
	if n := pixel.Samples(); n >= 3 {
		c := virtual.Sample(shownSample(n, p.sample))
		if len(all) > 1 { // each has red, green and blue
			c.Name = strings.TrimSpace(name + " " + c.Name)
		}
		return c
	}
	return virtual.Channel{Name: name, Color: cmp.Or(info.Color, virtual.Color(i, len(im.parts)))}
}

// chunkSide is the side of the chunks that are put together from tiles.
const chunkSide = 1024

// levelArray returns a level as an array.
func (im *image) levelArray(level int) *array {
	k := im.factors[level]
	a := &array{image: im, factor: k, box: im.box, scene: im.scene, elem: im.elem}
	add := func(role byte, name string, size, chunk int) {
		a.axes = append(a.axes, virtual.Along(role, name, size, chunk))
	}
	if im.times.size > 1 {
		add('t', "t", im.times.size, 1)
	}
	channels := -1
	if len(im.parts) > 1 {
		channels = len(a.axes)
		add('c', "c", len(im.parts), im.joined)
	}
	if im.depths.size > 1 {
		add('z', "z", im.depths.size, 1)
	}
	add('y', "y", im.box.Dy()/k, min(chunkSide, im.box.Dy()/k))
	add('x', "x", im.box.Dx()/k, min(chunkSide, im.box.Dx()/k))
	if im.joined > 1 { // the samples of a pixel lie together
		var order []int
		for d := range a.axes {
			if d != channels {
				order = append(order, d)
			}
		}
		a.codecs = append(a.codecs, virtual.Object("transpose", map[string]any{"order": append(order, channels)}))
	}
	a.addCodecs("tiles")
	return a
}

// addCodecs adds those of elements that Decode makes.
func (a *array) addCodecs(encoding string) {
	little := map[string]any{"endian": "little"}
	if a.elem.Size() == 1 {
		little = nil
	}
	a.codecs = append(a.codecs, virtual.Object("bytes", little), virtual.Object(codec.OfStoreName, map[string]any{"encoding": encoding}))
}
