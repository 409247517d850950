package preview

import (
	"image"
	"math"
)

// layout holds the positions of everything in the picture.
type layout struct {
	labels, scaleBar bool
	tall             bool // yz stands beside xz, z down, and not beside xy

	size    image.Point
	pixel   float64           // side of a pixel of the panels, µm
	panels  []image.Rectangle // xy, or xy, xz and yz
	samples [][2]int          // voxels of each panel, down and to the right

	font   float64 // of captions, px
	margin int
	gap    int // between panels
	line   int // height of a line of text
	footer int // top of the scale bar and the colour bar
}

// smallPicture is the longest side up to which the panels are magnified by a
// whole number, so that a picture of few voxels is not a stamp; doublePicture the
// one up to which they are magnified twofold.
const (
	smallPicture  = 900
	doublePicture = 1200
)

// roomForWords and roomForBar are the smallest values of a picture's maximum size, in px, at which it gets captions and
// a scale bar.
const (
	roomForWords = 480
	roomForBar   = 128
)

// captionWidth is the width reserved for a caption such as "YZ x = 12345 µm", in multiples of the font size.
const captionWidth = 9.5

// extent returns the size of the volume in µm.
func (v *volume) extent() (e [3]float64) {
	for d := range e {
		e[d] = float64(v.Shape[d]) * v.Size[d]
	}
	return e
}

// tall reports whether the volume is so deep that its panels take less room side by side than with xz below
// xy and yz beside it.
func (v *volume) tall() bool {
	e := v.extent()
	return v.deep() && (2*e[2]+e[1])*max(e[1], e[0]) < (e[2]+e[0])*(e[1]+e[0])
}

// arrange places the panels, all in the same scale: xy with xz below it and yz to its right, or the three
// side by side if that takes less room. A pixel is as large as a voxel along Y or X (the smaller one), or
// larger if the picture would exceed its maximum size.
func arrange(v *volume, o *Options) *layout {
	lay := &layout{tall: v.tall(), labels: o.Labels && o.MaxSize >= roomForWords, scaleBar: o.ScaleBar && o.MaxSize >= roomForBar, samples: [][2]int{{v.Shape[1], v.Shape[2]}}}
	if v.deep() {
		yz := [2]int{v.Shape[1], v.Shape[0]}
		if lay.tall {
			yz = [2]int{v.Shape[0], v.Shape[1]}
		}
		lay.samples = append(lay.samples, [2]int{v.Shape[0], v.Shape[2]}, yz)
	}
	extent := v.extent()
	width, height := extent[2], extent[1]
	switch {
	case lay.tall:
		width, height = 2*extent[2]+extent[1], max(extent[1], extent[0])
	case v.deep():
		width, height = width+extent[0], height+extent[0]
	}
	lay.pixel = v.inPlane()
	longest := max(width, height) / lay.pixel
	if lay.labels && longest*2 <= float64(min(o.MaxSize, doublePicture)) {
		k := max(2, math.Floor(float64(min(o.MaxSize, smallPicture))/longest))
		lay.pixel /= k
		longest *= k
	}
	lay.font = math.Round(min(26, max(13, min(float64(o.MaxSize), longest)/58)))
	switch {
	case lay.labels:
		lay.margin, lay.gap, lay.line = int(lay.font*1.5), int(lay.font), int(lay.font*1.6)
	case o.ScaleBar:
		lay.margin, lay.gap, lay.line = int(lay.font), int(lay.font/2), int(lay.font*1.6)
	default:
		lay.gap = 4
	}
	fits := func(pixel float64) bool {
		lay.place(v, extent, pixel)
		return lay.size.X <= o.MaxSize && lay.size.Y <= o.MaxSize
	}
	if low := lay.pixel; !fits(low) {
		high, most := 2*low, max(extent[0], extent[1], extent[2])
		for !fits(high) && high < most { // with a pixel of most, every panel is one pixel wide
			high *= 2
		}
		for range 40 {
			if mid := (low + high) / 2; fits(mid) {
				high = mid
			} else {
				low = mid
			}
		}
		fits(high)
	}
	return lay
}

// header returns the height of the title and the line below it.
func (lay *layout) header() int {
	if !lay.labels {
		return 0
	}
	return int(lay.font*1.9) + lay.line
}

// caption returns the height of the line above each panel; a single one needs none.
func (lay *layout) caption() int {
	if !lay.labels || len(lay.samples) == 1 {
		return 0
	}
	return lay.line
}

// place puts the panels where they are with a pixel of that many µm.
func (lay *layout) place(v *volume, extent [3]float64, pixel float64) {
	lay.pixel = pixel
	px := func(um float64) int { return int(min(1<<30, max(1, math.Round(um/pixel)))) }
	nz, ny, nx := px(extent[0]), px(extent[1]), px(extent[2])
	words := 0 // least distance from one panel's left side to the next one's
	if lay.labels {
		words = int(captionWidth * lay.font)
	}
	x, y := lay.margin, lay.margin+lay.header()+lay.caption()
	lay.panels = append(lay.panels[:0], image.Rect(x, y, x+nx, y+ny))
	right, below := x+max(nx, words), y+ny
	switch {
	case lay.tall:
		xz := right + lay.gap
		yz := xz + max(nx, words) + lay.gap
		lay.panels = append(lay.panels, image.Rect(xz, y, xz+nx, y+nz), image.Rect(yz, y, yz+ny, y+nz))
		right, below = yz+max(ny, words), y+max(ny, nz)
	case v.deep():
		xz, yz := y+ny+lay.gap+lay.caption(), right+lay.gap
		lay.panels = append(lay.panels, image.Rect(x, xz, x+nx, xz+nz), image.Rect(yz, y, yz+nz, y+ny))
		right, below = yz+max(nz, words), xz+nz
	}
	lay.size = image.Pt(right+lay.margin, below+lay.margin)
	if lay.labels || lay.scaleBar {
		lay.footer = below + lay.gap + lay.gap/4
		lay.size.Y = lay.footer + lay.bar() + lay.line + lay.margin
	}
	if lay.labels { // the title, and the two bars side by side
		lay.size.X = max(lay.size.X, int(lay.font*22))
	}
}

// bar returns the height of the scale bar's and the colour bar's place.
func (lay *layout) bar() int { return int(math.Round(lay.font * 0.7)) }
