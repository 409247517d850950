package oct

import (
	"slices"

	"strata/pkg/ngff"
)

// frames says how the planes of a mosaic grid lie in an image of more axes, or fewer, than (z, y, x): its channels and
// times follow each other, each a mosaic of its own whose tiles lie at the same places; an image without z has one plane.
// The zero value is an image (z, y, x).
type frames struct {
	lengths []int // of the axes before z
	at      []int // along these: the frame that the mosaic shows
	flat    bool  // there is no axis z
}

// openFrames opens a mosaic grid with axes t and c before, and with or without z. It shows the given channel of the
// first time.
func openFrames(in *ngff.Image, channel int) (*mosaic, error) {
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
	f := frames{lengths: shape[:lead], at: make([]int, lead), flat: len(space) == 2}
	if !slices.Equal(space, []string{"z", "y", "x"}) && !slices.Equal(space, []string{"y", "x"}) {
		return nil, badInput("%s: mosaic grid has the axes %v, want z, y, x or y, x, with t and c before them where there are times and channels", a.Location(), names)
	}
	channels := 1
	if c := in.Axis("c"); c >= 0 {
		channels = shape[c]
		f.at[c] = min(channel, max(channels-1, 0))
	}
	if channel >= channels {
		return nil, layoutErrorf("--channel %d: %s has %d, counted from 0", channel, a.Location(), channels)
	}
	return newMosaic(in, f)
}

// count is the number of frames.
func (f *frames) count() int {
	n := 1
	for _, k := range f.lengths {
		n *= k
	}
	return n
}

// number is that of the frame that is shown, in C order.
func (f *frames) number() (n int) {
	for d, k := range f.lengths {
		n = n*k + f.at[d]
	}
	return n
}

// frame is the mosaic that shows frame n.
func (m *mosaic) frame(n int) *mosaic {
	out := *m
	out.at = make([]int, len(m.lengths))
	for d := len(m.lengths) - 1; d >= 0; d-- {
		out.at[d] = n % m.lengths[d]
		n /= m.lengths[d]
	}
	return &out
}

// index is that of the image for an index (z, y, x), of voxels or of tiles, in the frame that is shown.
func (f *frames) index(z, y, x int) []int {
	out := append(make([]int, 0, len(f.at)+3), f.at...)
	if !f.flat {
		out = append(out, z)
	}
	return append(out, y, x)
}

// boxShape is the shape in the image of a box (z, y, x) of one frame.
func (f *frames) boxShape(z, y, x int) []int {
	out := f.index(z, y, x)
	for d := range f.at {
		out[d] = 1
	}
	return out
}

// whole is the shape of an image of all frames.
func (f *frames) whole(z, y, x int) []int {
	out := f.index(z, y, x)
	copy(out, f.lengths)
	return out
}

// planes is how many planes a box of the image has.
func (f *frames) planes(shape []int) int {
	if f.flat {
		return 1
	}
	return shape[len(f.at)]
}

// layout is the layout of an image of all frames, of which the flags name the chunks of one. It has 3 axes for the plan,
// and those of the image for the writer.
func (f *frames) layout(l Layout) (plan, image Layout, err error) {
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
		if f.flat {
			want = want[1:]
			n = slices.Concat([]int{1}, n)
		}
		if len(n) != 3 {
			return plan, image, layoutErrorf("%s has %d axes, the output has %d (%v)", shape.flag, len(*shape.plan), len(want), want)
		}
		*shape.plan, *shape.image = n, f.boxShape(n[0], n[1], n[2])
	}
	return plan, image, nil
}
