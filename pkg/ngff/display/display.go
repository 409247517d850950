// Package display completes the display metadata of an image: its name and, in "omero", a colour, a label and a
// brightness window for each channel. Viewers that support these open the image with sensible contrast.
// [Attributes] returns the completed attributes; [Sample] and [Quantile] are the statistics behind them.
package display

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"strata/pkg/dtype"
	"strata/pkg/filter"
	"strata/pkg/mem"
	"strata/pkg/ngff"
	"strata/pkg/ngff/spatial"
	"strata/pkg/zarr"
)

// Limits of the search for windows. A window needs few voxels; decoding chunks takes the time.
const (
	windowVoxels = 1 << 16
	windowBytes  = 64 << 20 // of decoded chunks
	mostChannels = 64       // images with more get no settings: reading them would take too long
	mostActive   = 6        // channels shown at once
)

// colors are the colours of channels whose metadata state none.
var colors = [...]string{"FF0000", "00FF00", "0000FF", "FF00FF", "00FFFF", "FFFF00"}

// members holds JSON values by name.
type members = map[string]json.RawMessage

// Attributes returns the attributes of an image's group, completed by a name and display settings. Anything that the
// image already states stays unchanged. Channels without a window get the percentiles 0.1 and 99.9 of a coarse level,
// and so do those whose window is the whole range of their type: it says nothing of the image, and shows one that uses
// a small part of the range as black. Only colours (red, green, blue) keep it. Label images, images without finite
// voxels, and images with a chunk that needs more memory than their arrays may use, get no settings. If im has no name,
// Attributes sets it to name.
func Attributes(ctx context.Context, im *ngff.Image, name string) (map[string]any, error) {
	attrs := im.Group.Attributes()
	inner := attrs
	if raw, ok := attrs["ome"]; ok {
		inner = nil
		if err := json.Unmarshal(raw, &inner); err != nil {
			return nil, invalid(im, "ome", err)
		}
	}
	if im.Name == "" && name != "" {
		var scales []members
		if err := json.Unmarshal(inner["multiscales"], &scales); err != nil {
			return nil, invalid(im, "multiscales", err)
		}
		scales[0]["name"] = encoded(name)
		inner["multiscales"] = encoded(scales)
		im.Name = name
	}
	settings, err := complete(ctx, im, inner["omero"])
	if err != nil {
		return nil, err
	}
	if settings != nil {
		inner["omero"] = encoded(settings)
	}
	if _, ok := attrs["ome"]; ok {
		attrs["ome"] = encoded(inner)
	}
	all := make(map[string]any, len(attrs))
	for k, v := range attrs {
		all[k] = v
	}
	return all, nil
}

// invalid returns an error about an attribute.
func invalid(im *ngff.Image, field string, err error) error {
	return &zarr.FormatError{Path: im.Group.Location(), Field: field, Err: err}
}

// encoded returns the JSON of a value that can always be encoded.
func encoded(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // text, numbers that are finite, and JSON
	}
	return b
}

// complete returns the display settings with missing ones filled in, or nil if there can be none.
func complete(ctx context.Context, im *ngff.Image, stated json.RawMessage) (members, error) {
	if im.ImageLabel != nil || !im.DType().IsNumber() && im.DType() != dtype.Bool {
		return nil, nil
	}
	levels, err := spatial.Levels(im)
	if err != nil {
		return nil, nil // it cannot be shown
	}
	settings, channels := members{}, []members{}
	if stated != nil {
		if err := errors.Join(json.Unmarshal(stated, &settings), json.Unmarshal(settings["channels"], &channels)); err != nil {
			return nil, nil // the reader warns of it
		}
	}
	n := 1
	if d := im.Axis("c"); d >= 0 {
		n = levels[0].Array.Shape()[d]
	}
	if stated == nil {
		channels = make([]members, min(n, mostChannels+1))
	}
	if len(channels) != n || n > mostChannels {
		return nil, nil
	}
	picture, certain := inColours(channels, im.DType())
	for i := range channels {
		if channels[i] == nil {
			channels[i] = members{}
		}
		switch w := channels[i]["window"]; {
		case !picture && isWhole(w, im.DType()):
			delete(channels[i], "window")
		case certain && w == nil && im.DType() == dtype.Uint8:
			channels[i]["window"] = encoded(ngff.Window{Max: math.MaxUint8, End: math.MaxUint8})
		}
		err := channel(ctx, im, levels, i, n, channels[i])
		if errors.Is(err, mem.ErrBudget) {
			return nil, nil // a viewer can find a window itself
		} else if err != nil {
			return nil, err
		}
		if channels[i]["window"] == nil {
			return nil, nil
		}
	}
	settings["channels"] = encoded(channels)
	return settings, nil
}

// channel completes the settings of channel i of n.
func channel(ctx context.Context, im *ngff.Image, levels []spatial.Level, i, n int, c members) error {
	label, color := im.Name, "FFFFFF"
	if n > 1 {
		label, color = "channel "+strconv.Itoa(i), colors[i%len(colors)]
	}
	for key, v := range map[string]any{"label": label, "color": color, "active": i < mostActive} {
		if c[key] == nil && v != "" {
			c[key] = encoded(v)
		}
	}
	if w := c["window"]; w != nil && string(w) != "null" {
		return nil
	}
	delete(c, "window")
	w, err := window(ctx, im, levels, i, windowBytes/int64(n))
	if w != nil {
		c["window"] = encoded(w)
	}
	return err
}

// isWhole reports whether a window is all that a number of bits can hold, as writers have it who know nothing else.
func isWhole(raw json.RawMessage, t dtype.Type) bool {
	var w ngff.Window
	if !t.IsInteger() || json.Unmarshal(raw, &w) != nil || w.Start != w.Min || w.End != w.Max {
		return false
	}
	for bits := 8; bits <= 8*t.Size(); bits++ {
		n := math.Pow(2, float64(bits))
		if w.Min == 0 && w.Max == n-1 || w.Min == -n/2 && w.Max == n/2-1 {
			return true
		}
	}
	return false
}

// inColours reports whether channels are the red, green and blue of one picture, whose brightness means something only
// together: their names tell, or the usual colours with 8 bits. It is certain if they are not named otherwise.
func inColours(channels []members, t dtype.Type) (picture, certain bool) {
	if len(channels) < 3 || len(channels) > 4 {
		return false, false
	}
	named, unnamed, coloured := true, true, t == dtype.Uint8
	for i, name := range []string{"red", "green", "blue"} {
		var label, color string
		_ = json.Unmarshal(channels[i]["label"], &label) // what is no text is no name
		_ = json.Unmarshal(channels[i]["color"], &color)
		named, unnamed = named && strings.EqualFold(label, name), unnamed && label == ""
		coloured = coloured && strings.EqualFold(color, colors[i])
	}
	return named || coloured, named || coloured && unnamed
}

// window returns the range of values in which a channel is shown, or nil if no voxel is a finite number.
func window(ctx context.Context, im *ngff.Image, levels []spatial.Level, channel int, bytes int64) (*ngff.Window, error) {
	level, boxes := Sample(levels, windowVoxels, bytes)
	l := &levels[level]
	others := make([]int, len(l.Others))
	for i, d := range l.Others {
		if others[i] = l.Array.Shape()[d] / 2; im.Axes[d].Name == "c" {
			others[i] = channel
		}
	}
	var values []float64
	for _, b := range boxes {
		raw := make([]byte, b.Shape[0]*b.Shape[1]*b.Shape[2]*l.Array.DType().Size())
		if err := l.Array.Read(ctx, l.Region(b.Start, b.Shape, others), raw); err != nil {
			return nil, fmt.Errorf("display settings: %w", err)
		}
		values = AppendFinite(values, raw, l.Array.DType())
	}
	if len(values) == 0 {
		return nil, nil
	}
	w := &ngff.Window{Min: slices.Min(values), Max: slices.Max(values)}
	// sorting would take as long as a small stage
	w.Start, w.End = filter.SelectNth(values, rank(len(values), 0.001)), filter.SelectNth(values, rank(len(values), 0.999))
	if w.Start == w.End { // hardly anything in an empty image
		w.Start, w.End = w.Min, w.Max
	}
	if w.Start == w.End { // all voxels are equal
		w.End++
		w.Max++
	}
	return w, nil
}
