package oct

import (
	"slices"

	"strata/pkg/ngff"
)

// A Frames maps the axes (z, y, x) of a mosaic grid to an image with other axes. Each combination of channel and time
// is a frame: a mosaic of its own whose tiles have the same positions. An image without z has one plane. The zero value
// describes an image (z, y, x).
type Frames struct {
	Lengths []int // of the axes before z
	At      []int // indices along these: the current frame
	Flat    bool  // the image has no axis z
}

// OpenFrames opens a mosaic grid with optional axes t and c first, and with or without z. The result shows the
// given channel of the first time. Errors wrap [ErrInput], or [ErrLayout] if there is no such channel.
func OpenFrames(in *ngff.Image, channel int) (*Mosaic, error) {
	a := in.Levels[0].Array
	shape, lead := a.Shape(), 0
	names := make([]string, len(in.Axes))
	for d, axis := range in.Axes {
		names[d] = axis.Name
		if lead == d && (axis.Name == "t" || axis.Name == "c") {
			lead++
		}
	}
	space := names[lead:]
	f := Frames{Lengths: shape[:lead], At: make([]int, lead), Flat: len(space) == 2}
	if !slices.Equal(space, []string{"z", "y", "x"}) && !slices.Equal(space, []string{"y", "x"}) {
		return nil, BadInput("%s: mosaic grid has the axes %v, want z, y, x or y, x, with t and c before them where there are times and channels", a.Location(), names)
	}
	channels := 1
	if c := in.Axis("c"); c >= 0 {
		channels = shape[c]
		f.At[c] = min(channel, max(channels-1, 0))
	}
	if channel >= channels {
		return nil, LayoutErrorf("--channel %d: %s has %d channels, counted from 0", channel, a.Location(), channels)
	}
	return newMosaic(in, f)
}

// Count returns the number of frames.
func (f *Frames) Count() int {
	n := 1
	for _, k := range f.Lengths {
		n *= k
	}
	return n
}

// Number returns the index of the current frame, in C order.
func (f *Frames) Number() (n int) {
	for d, k := range f.Lengths {
		n = n*k + f.At[d]
	}
	return n
}

// Frame returns a copy of the mosaic that shows frame n.
func (m *Mosaic) Frame(n int) *Mosaic {
	out := *m
	out.At = make([]int, len(m.Lengths))
	for d := len(m.Lengths) - 1; d >= 0; d-- {
		out.At[d] = n % m.Lengths[d]
		n /= m.Lengths[d]
	}
	return &out
}

// Index returns the image's index for an index (z, y, x), of voxels or of tiles, in the current frame.
func (f *Frames) Index(z, y, x int) []int {
	out := append(make([]int, 0, len(f.At)+3), f.At...)
	if !f.Flat {
		out = append(out, z)
	}
	return append(out, y, x)
}

// BoxShape returns the image's shape of a box (z, y, x) of one frame.
func (f *Frames) BoxShape(z, y, x int) []int {
	out := f.Index(z, y, x)
	for d := range f.At {
		out[d] = 1
	}
	return out
}

// Whole returns the shape of an image of all frames, each of shape (z, y, x).
func (f *Frames) Whole(z, y, x int) []int {
	out := f.Index(z, y, x)
	copy(out, f.Lengths)
	return out
}

// Planes returns the number of planes in a box of the image.
func (f *Frames) Planes(shape []int) int {
	if f.Flat {
		return 1
	}
	return shape[len(f.At)]
}

// First returns the first plane of a box of the image that begins at start.
func (f *Frames) First(start []int) int {
	if f.Flat {
		return 0
	}
	return start[len(f.At)]
}

// Layout converts a layout whose chunks and shards are given for one frame. It returns one with 3 axes for
// planning, and one with the image's axes for the writer.
func (f *Frames) Layout(l Layout) (plan, image Layout, err error) {
	plan, image = l, l
	for _, shape := range []struct {
		flag        string
		plan, image *[]int
	}{{"--chunks", &plan.Chunks, &image.Chunks}, {"--shard", &plan.Shard, &image.Shard}} {
		n := *shape.plan
		if n == nil {
			continue
		}
		want := []string{"z", "y", "x"}
		if f.Flat {
			want = want[1:]
			n = slices.Concat([]int{1}, n)
		}
		if len(n) != 3 {
			return plan, image, LayoutErrorf("%s has %d axes, the output has %d (%v)", shape.flag, len(*shape.plan), len(want), want)
		}
		*shape.plan, *shape.image = n, f.BoxShape(n[0], n[1], n[2])
	}
	return plan, image, nil
}
