package webpage

import (
	"html"
	"html/template"
	"math"
	"slices"
	"strconv"
	"strings"

	"strata/pkg/pattern"
)

// Spot is a place in an image. A page marks a text with it; where view serves the page, the text is a link to that
// place. Elsewhere it is plain text.
type Spot struct {
	Image, Overlay string     // paths below the folder of the page; Overlay "": none
	At             [3]float64 // voxel (z, y, x) of Image; NaN stands for the middle
	Lay            []float64  // LayNumbers numbers that place the overlay; nil: its metadata place it
	Width          float64    // of the part to be shown, in voxels; 0: all of the image
	Panel          string     // cut to be shown: "xy", "xz" or "yz"; "": all
	Or             *Spot      // shown if Image or Overlay is not there; its own Or is not used
}

// LayNumbers is the number of values in Lay: the angle in radians, tx, ty, cx and cy of a transform from pixels of the
// image to pixels of the overlay, and the planes of the two that lie on each other.
const LayNumbers = 7

// Middle is a coordinate of [Spot.At] that stands for the middle of the image.
var Middle = math.NaN()

// Mark returns a text marked with the spot, or the text alone if the spot is nil.
func (s *Spot) Mark(text string) template.HTML {
	text = html.EscapeString(text)
	if s == nil {
		return template.HTML(text)
	}
	return template.HTML(`<span` + s.attributes() + `>` + text + `</span>`) // escaped above
}

// around returns a drawing in a group that is marked with the spot, or the drawing alone if the spot is nil.
func (s *Spot) around(drawing string) string {
	if s == nil {
		return drawing
	}
	return `<g` + s.attributes() + `>` + drawing + `</g>`
}

// attributes returns the attributes of a marked element.
func (s *Spot) attributes() string {
	var b strings.Builder
	b.WriteString(` class="view"`)
	for prefix := "data-"; s != nil; s, prefix = s.Or, prefix+"or-" {
		put := func(name, value string) {
			if value != "" {
				b.WriteString(` ` + prefix + name + `="` + html.EscapeString(value) + `"`)
			}
		}
		put("image", s.Image)
		put("overlay", s.Overlay)
		put("at", numbers(s.At[:]))
		put("lay", numbers(s.Lay))
		if s.Width > 0 {
			put("width", numbers([]float64{s.Width}))
		}
		put("panel", s.Panel)
	}
	return b.String()
}

// numbers joins numbers by commas; NaN is "".
func numbers(list []float64) string {
	var parts []string
	for _, v := range list {
		text := ""
		if Finite(v) {
			text = strconv.FormatFloat(v, 'g', 9, 64)
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ",")
}

// marked matches a marked text, and a marked group of an SVG that holds marks and their tooltips only.
var marked = pattern.Lazy(`<span class="view"((?: data-[a-z-]+="[^"<>]*")+)>([^<]*)</span>` +
	`|<g class="view"((?: data-[a-z-]+="[^"<>]*")+)>((?:[^<]|<(?:circle|path|rect)[^<>]*/?>|</(?:circle|path|rect)>|<title>|</title>)*)</g>`)

var attribute = pattern.Lazy(` data-([a-z-]+)="([^"]*)"`)

// mostNumber is the largest number that a spot may have.
const mostNumber = 1e9

// LinkSpots returns a page in which each mark for which address returns a link has become a link. It adds only the
// escaped result of address to the page, and leaves marks unchanged that are not in the form that Mark writes.
func LinkSpots(page []byte, address func(s *Spot) string) []byte {
	return marked().ReplaceAllFunc(page, func(mark []byte) []byte {
		parts := marked().FindSubmatch(mark)
		attributes, content := string(parts[1])+string(parts[3]), string(parts[2])+string(parts[4])
		s, ok := spotOf(attributes)
		if !ok {
			return mark
		}
		link := address(s)
		if link == "" && s.Or != nil {
			link = address(s.Or)
		}
		if link == "" {
			return mark
		}
		return []byte(`<a class="view" href="` + html.EscapeString(link) + `">` + content + `</a>`)
	})
}

// spotOf parses attributes; ok is false if they are not as Mark writes them.
func spotOf(text string) (s *Spot, ok bool) {
	s = &Spot{At: [3]float64{Middle, Middle, Middle}}
	for _, a := range attribute().FindAllStringSubmatch(text, -1) {
		to, name := s, a[1]
		if rest, is := strings.CutPrefix(name, "or-"); is {
			if s.Or == nil {
				s.Or = &Spot{At: [3]float64{Middle, Middle, Middle}}
			}
			to, name = s.Or, rest
		}
		if !to.set(name, html.UnescapeString(a[2])) {
			return nil, false
		}
	}
	return s, s.Image != "" && (s.Or == nil || s.Or.Image != "")
}

// set sets a field by the name of its attribute; it returns false if there is none, or the value is not valid.
func (s *Spot) set(name, value string) (ok bool) {
	var list []float64
	switch name {
	case "image":
		s.Image = value
	case "overlay":
		s.Overlay = value
	case "panel":
		s.Panel = value
		return slices.Contains([]string{"xy", "xz", "yz"}, value)
	case "at":
		if list, ok = parse(value, len(s.At), true); ok {
			copy(s.At[:], list)
		}
		return ok
	case "lay":
		s.Lay, ok = parse(value, LayNumbers, false)
		return ok
	case "width":
		if list, ok = parse(value, 1, false); ok {
			s.Width = list[0]
		}
		return ok && s.Width > 0
	default:
		return false
	}
	return value != ""
}

// parse parses n numbers that commas separate; an empty one is NaN, if that is allowed.
func parse(text string, n int, empty bool) (list []float64, ok bool) {
	for part := range strings.SplitSeq(text, ",") {
		v, err := strconv.ParseFloat(part, 64)
		switch {
		case part == "" && empty:
			v = Middle
		case err != nil || !(math.Abs(v) <= mostNumber):
			return nil, false
		}
		list = append(list, v)
	}
	return list, len(list) == n
}

// Query returns the part of the view's address that names the position in the images, after the images' numbers.
func (s *Spot) Query() string {
	q := "&mode=checkerboard&voxel=" + numbers(s.At[:])
	if s.Lay != nil {
		q += "&lay=" + numbers(s.Lay)
	}
	if s.Width > 0 {
		q += "&width=" + numbers([]float64{s.Width})
	}
	if s.Panel != "" {
		q += "&panel=" + s.Panel
	}
	return q
}
