package display

import (
	"context"
	"encoding/json"
	"math"
	"slices"
	"testing"

	"strata/pkg/dtype"
	"strata/pkg/ngff"
	"strata/pkg/ngff/spatial"
	"strata/pkg/zarr"
	"strata/pkg/zarr/codec"
	"strata/pkg/zarr/store"
)

var ctx = context.Background()

// create writes an image whose voxels are f(index in C order).
func create[T dtype.Element](t *testing.T, spec ngff.ImageSpec, f func(i int) T) *ngff.Image {
	t.Helper()
	st := store.Memory()
	n := 1
	for _, k := range spec.Shape {
		n *= k
	}
	spec.DType, spec.Chunks = dtype.Of[T](), spec.Shape
	spec.Scale = slices.Repeat([]float64{1}, len(spec.Shape))
	w, err := ngff.Create(ctx, st, "", spec)
	if err != nil {
		t.Fatal(err)
	}
	v := make([]T, n)
	for i := range v {
		v[i] = f(i)
	}
	if err := w.WriteTile(ctx, make([]int, len(spec.Shape)), spec.Shape, dtype.Bytes(v)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(ctx); err != nil {
		t.Fatal(err)
	}
	im, err := ngff.Open(ctx, st, "")
	if err != nil {
		t.Fatal(err)
	}
	return im
}

// completed writes the completed attributes and opens the image with them, which must be valid.
func completed(t *testing.T, im *ngff.Image, name string) *ngff.Image {
	t.Helper()
	attrs, err := Attributes(ctx, im, name)
	if err != nil {
		t.Fatal(err)
	}
	if err := im.Group.SetAttributes(ctx, attrs); err != nil {
		t.Fatal(err)
	}
	st := im.Group.Store()
	for _, p := range ngff.Validate(ctx, st, "") {
		t.Errorf("the completed image: %v", p)
	}
	if im, err = ngff.Open(ctx, st, ""); err != nil {
		t.Fatal(err)
	}
	return im
}

// An image without settings gets a name, and a window by the percentiles of a coarse level, in both versions.
func TestCompletesImage(t *testing.T) {
	for _, format := range []int{2, 3} {
		im := completed(t, create(t, ngff.ImageSpec{Format: format, Axes: ngff.SpaceAxes("yx", "micrometer"), Shape: []int{100, 100}},
			func(i int) float32 { return float32(i) }), "slice")
		if im.Name != "slice" {
			t.Errorf("format %d: the name is %q", format, im.Name)
		}
		want := ngff.Channel{Label: "slice", Color: "FFFFFF", Active: true, Window: &ngff.Window{Min: 0, Max: 9999, Start: 10, End: 9989}}
		if got := im.Omero.Channels; len(got) != 1 || *got[0].Window != *want.Window || got[0].Label != want.Label || got[0].Color != want.Color || !got[0].Active {
			t.Errorf("format %d: %+v %+v, want %+v", format, got, got[0].Window, want)
		}
	}
}

// What the image states stays, members without a field here too; each channel has a window of its own values.
func TestCompletesChannels(t *testing.T) {
	stated := json.RawMessage(`{"rdefs":{"model":"color"},"channels":[{"color":"00FFFF","label":"DAPI","coefficient":1,"window":{"min":0,"max":9,"start":2,"end":3}},{"color":"112233"}]}`)
	im := create(t, ngff.ImageSpec{Name: "own", Axes: ngff.SpaceAxes("cyx", "micrometer"), Shape: []int{2, 50, 100}, Omero: &ngff.Omero{Raw: stated}},
		func(i int) uint16 { return uint16(i / 5000 * 40000) })
	im = completed(t, im, "other")
	var got struct {
		Rdefs    map[string]string
		Channels []struct {
			ngff.Channel
			Coefficient int
		}
	}
	if err := json.Unmarshal(im.Omero.Raw, &got); err != nil {
		t.Fatal(err)
	}
	if im.Name != "own" || got.Rdefs["model"] != "color" || got.Channels[0].Coefficient != 1 || got.Channels[0].Label != "DAPI" || *got.Channels[0].Window != (ngff.Window{Min: 0, Max: 9, Start: 2, End: 3}) {
		t.Errorf("%q: what was stated became %s", im.Name, im.Omero.Raw)
	}
	if c := got.Channels[1]; c.Color != "112233" || c.Label != "channel 1" || !c.Active || *c.Window != (ngff.Window{Min: 40000, Max: 40001, Start: 40000, End: 40001}) {
		t.Errorf("the second channel became %+v %+v", c, c.Window)
	}
}

// A window that is all that the type, or the bits in use, can hold is no statement, but for the colours of a picture. A
// channel's other settings stay.
func TestWholeRangeIsNoWindow(t *testing.T) {
	channel := func(label, color string, min, max, start, end float64) ngff.Channel {
		return ngff.Channel{Label: label, Color: color, Window: &ngff.Window{Min: min, Max: max, Start: start, End: end}}
	}
	measured := ngff.Window{Min: 100, Max: 8299, Start: 108, End: 8291}
	grey := func(i int) uint16 { return uint16(100 + i%8200) }
	for what, c := range map[string]struct {
		channel ngff.Channel
		want    ngff.Window
	}{
		"16 bits":            {channel("OCT", "00FF00", 0, 65535, 0, 65535), measured},
		"12 bits":            {channel("OCT", "00FF00", 0, 4095, 0, 4095), measured},
		"all, less shown":    {channel("OCT", "00FF00", 0, 65535, 0, 9000), ngff.Window{Min: 0, Max: 65535, Start: 0, End: 9000}},
		"some range":         {channel("OCT", "00FF00", 0, 9000, 0, 9000), ngff.Window{Min: 0, Max: 9000, Start: 0, End: 9000}},
		"more than the type": {channel("OCT", "00FF00", 0, 131071, 0, 131071), ngff.Window{Min: 0, Max: 131071, Start: 0, End: 131071}},
	} {
		im := completed(t, create(t, ngff.ImageSpec{Axes: ngff.SpaceAxes("yx", "micrometer"), Shape: []int{100, 82}, Levels: 1,
			Omero: &ngff.Omero{Channels: []ngff.Channel{c.channel}}}, grey), "x")
		if got := im.Omero.Channels[0]; *got.Window != c.want || got.Label != "OCT" || got.Color != "00FF00" {
			t.Errorf("%s: %+v %+v, want %+v", what, got, *got.Window, c.want)
		}
	}
	signed := completed(t, create(t, ngff.ImageSpec{Axes: ngff.SpaceAxes("yx", "micrometer"), Shape: []int{10, 10},
		Omero: &ngff.Omero{Channels: []ngff.Channel{channel("", "FFFFFF", -32768, 32767, -32768, 32767)}}}, func(i int) int16 { return int16(i - 50) }), "x")
	if w := signed.Omero.Channels[0].Window; w.Start != -50 || w.End != 49 {
		t.Errorf("signed: %+v", w)
	}
	whole := ngff.Window{Max: 255, End: 255}
	for _, labels := range [][]string{{"red", "green", "blue"}, {"", "", ""}, {"red", "green", "blue", "alpha"}, {"C0", "C1", "C2", ""}} {
		o := &ngff.Omero{}
		for i, l := range labels {
			o.Channels = append(o.Channels, channel(l, append(colors[:3:3], "FFFFFF")[i], 0, 255, 0, 255))
		}
		if len(labels) == 3 { // as those have it whose values were changed
			o = o.WithoutWindows()
		}
		im := completed(t, create(t, ngff.ImageSpec{Axes: ngff.SpaceAxes("cyx", "micrometer"), Shape: []int{len(labels), 10, 10}, Omero: o},
			func(i int) uint8 { return uint8(i % 50) }), "x")
		for i, c := range im.Omero.Channels {
			if *c.Window != whole {
				t.Errorf("colour %d of %q: %+v", i, labels, *c.Window)
			}
		}
	}
}

// Images that cannot be shown by brightness get no settings.
func TestNoSettings(t *testing.T) {
	nan := create(t, ngff.ImageSpec{Axes: ngff.SpaceAxes("yx", "micrometer"), Shape: []int{4, 4}}, func(int) float32 { return float32(math.NaN()) })
	many := create(t, ngff.ImageSpec{Axes: ngff.SpaceAxes("cyx", "micrometer"), Shape: []int{mostChannels + 1, 2, 2}}, func(i int) uint8 { return uint8(i) })
	label := create(t, ngff.ImageSpec{Axes: ngff.SpaceAxes("yx", "micrometer"), Shape: []int{4, 4}}, func(i int) uint8 { return uint8(i) })
	label.ImageLabel = &ngff.ImageLabel{}
	whole, err := codec.FromFlag("gzip:1", dtype.Float32, 3) // is decoded whole
	if err != nil {
		t.Fatal(err)
	}
	large := create(t, ngff.ImageSpec{Axes: ngff.SpaceAxes("yx", "micrometer"), Shape: []int{64, 64}, Codecs: whole}, func(i int) float32 { return float32(i) })
	large, err = ngff.Open(t.Context(), large.Group.Store(), "", zarr.Budget(1000)) // less than a chunk takes
	if err != nil {
		t.Fatal(err)
	}
	for what, im := range map[string]*ngff.Image{"NaN": nan, "many channels": many, "labels": label, "large chunks": large} {
		if im = completed(t, im, "x"); im.Omero != nil {
			t.Errorf("%s: %s", what, im.Omero.Raw)
		}
	}
}

// A sample lies in the image, within its limits, and is spread over it.
func TestSample(t *testing.T) {
	im := create(t, ngff.ImageSpec{Axes: ngff.SpaceAxes("zyx", "micrometer"), Shape: []int{20, 64, 128}, Levels: 1}, func(i int) uint8 { return uint8(i) })
	levels, err := spatial.Levels(im)
	if err != nil {
		t.Fatal(err)
	}
	if level, boxes := Sample(levels, 1<<20, 1); level != 0 || len(boxes) != 1 || boxes[0].Shape != [3]int{20, 64, 128} {
		t.Errorf("of a small image: level %d, %v", level, boxes)
	}
	if level, boxes := Sample(levels, 10*32*64, 1); level != 1 || len(boxes) != 1 || boxes[0].Shape != [3]int{10, 32, 64} {
		t.Errorf("the level that is small enough: level %d, %v", level, boxes)
	}
	small := levels[:1]
	small[0].Chunk = [3]int{10, 16, 16} // as if the array had smaller chunks than it has: 2 × 4 × 8 of them
	chunk := int64(20 * 64 * 128)
	for _, c := range []struct {
		bytes int64
		boxes int
	}{{0, 1}, {chunk, 1}, {6 * chunk, 4}, {1 << 40, 64}} {
		_, boxes := Sample(small, 2000, c.bytes)
		total, seen := 0, map[[3]int]bool{}
		for _, b := range boxes {
			total += b.Shape[0] * b.Shape[1] * b.Shape[2]
			for d := range 3 {
				if b.Start[d] < 0 || b.Shape[d] < 1 || b.Start[d]+b.Shape[d] > small[0].Shape[d] || b.Start[d]/small[0].Chunk[d] != (b.Start[d]+b.Shape[d]-1)/small[0].Chunk[d] {
					t.Errorf("%d bytes: box %v leaves the image or its chunk", c.bytes, b)
				}
			}
			seen[b.Start] = true
		}
		if len(boxes) != c.boxes || len(seen) != c.boxes || total > 2000 || total < 2000/8 {
			t.Errorf("%d bytes: %d boxes at %d places with %d voxels, want %d", c.bytes, len(boxes), len(seen), total, c.boxes)
		}
	}
}
