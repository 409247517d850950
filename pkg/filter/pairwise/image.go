package pairwise

import (
	"fmt"
	"math"
	"slices"

	"strata/pkg/filter"
)

// Image is a plane that is prepared for [Register]: brightness from 0 to 1, pixels without data marked, and a pyramid
// of halved planes. It is safe for concurrent use.
type Image struct {
	levels []*level // from full size on
	data   int      // pixels with data
	blank  string   // why it cannot be registered; "": it can
}

// level is a plane of the pyramid. Pixels without data are NaN in all its forms.
type level struct {
	ny, nx int
	scale  float64   // pixels of level 0 per pixel
	data   int       // pixels with data
	v      []float32 // as halved
	smooth []float32 // v after a Gaussian of [smoothing] pixels
	detail []float32 // smooth less a Gaussian of [shading] pixels, of levels on which displacements are searched for
}

const (
	// solid is the side in pixels of the smallest square of one value that counts as no data: canvas around a slice, a
	// missing tile, saturation. Noise leaves no such squares.
	solid = 7
	// darkest and brightest are the percentiles of the data that become 0 and 1.
	darkest, brightest = 1, 99
	// smallest is the least length of a plane of the pyramid, least that of a plane at all.
	smallest, least = 24, 16
	// smoothing and shading are the standard deviations of the Gaussians between which structure is compared, in pixels
	// of a level. Smoothing keeps linear interpolation from preferring displacements by half pixels, where it removes
	// noise. What is larger than shading is compared on coarser levels only: on this one it is few independent samples,
	// and in neighbouring planes it moves the optimum by its own differences. It also is where illumination shows.
	smoothing, shading = 1.0, 4.0
)

// NewImage prepares a plane of ny × nx pixels in C order, which it does not keep. Pixels without data are those that
// are not finite and those in squares of one value.
func NewImage(v []float32, ny, nx int) *Image {
	im := NewPlane(v, ny, nx)
	if im.blank != "" {
		return im
	}
	for l := im.levels[0]; min(l.ny, l.nx) >= 2*smallest; {
		l = l.half()
		im.levels = append(im.levels, l)
	}
	for i, l := range im.levels {
		if l.smooth == nil {
			l.smooth = blurred(l.v, l.ny, l.nx, smoothing)
		}
		if max(l.ny, l.nx) > fine && i < len(im.levels)-1 {
			continue // no displacements are searched for on this level
		}
		l.detail = blurred(l.v, l.ny, l.nx, shading)
		for i, f := range l.smooth {
			l.detail[i] = f - l.detail[i]
		}
	}
	return im
}

// NewPlane prepares a plane as [NewImage] does, for [Agreement] only.
func NewPlane(v []float32, ny, nx int) *Image {
	full := &level{ny: ny, nx: nx, scale: 1, v: make([]float32, ny*nx)}
	copy(full.v, v)
	for i, f := range full.v {
		if f-f != 0 {
			full.v[i] = nan
		}
	}
	dropSolid(full.v, ny, nx)
	im := &Image{levels: []*level{full}}
	if im.stretch(); im.blank == "" {
		full.smooth = blurred(full.v, ny, nx, smoothing)
	}
	return im
}

// nan marks a pixel without data.
var nan = float32(math.NaN())

// stretch maps the brightness to 0 … 1.
func (im *Image) stretch() {
	l := im.levels[0]
	v := l.v
	if min(l.ny, l.nx) < least {
		im.blank = fmt.Sprintf("has less than %d × %d pixels", least, least)
		return
	}
	l.data = countData(v)
	if im.data = l.data; im.data < leastPixels {
		im.blank = "shows nothing: it has no data, or is constant"
		return
	}
	p := filter.Percentiles(slices.Clone(v), darkest, brightest)
	lo, span := float32(p[0]), float32(p[1]-p[0])
	if !(float64(span) > 1e-6*math.Abs(p[1])) {
		im.blank = "is nearly constant"
		return
	}
	for i, f := range v {
		if f == f {
			v[i] = min(max((f-lo)/span, 0), 1)
		}
	}
}

// dropSolid marks the pixels of all squares of one value.
func dropSolid(v []float32, ny, nx int) {
	if ny < solid || nx < solid {
		return
	}
	run := make([]int32, nx)    // equal pixels that end here, along x
	tall := make([]int32, nx)   // rows above with such a run of the same value
	before := make([]uint8, nx) // of the row above: rows still to be marked
	drop := make([]uint8, ny*nx)
	for y := range ny {
		row := v[y*nx:][:nx]
		for x, f := range row {
			run[x] = 1
			if x > 0 && f == row[x-1] {
				run[x] += run[x-1]
			}
			switch {
			case run[x] < solid:
				tall[x] = 0
			case y > 0 && f == v[(y-1)*nx+x] && tall[x] > 0:
				tall[x]++
			default:
				tall[x] = 1
			}
			if tall[x] >= solid {
				drop[y*nx+x] = solid // the lower right corner of a square
			}
		}
	}
	// marks reach as far up and left as a square does
	for y := ny - 1; y >= 0; y-- {
		row := drop[y*nx:][:nx]
		for x := range row {
			row[x] = max(row[x], before[x])
			before[x] = max(row[x], 1) - 1
		}
		left := uint8(0)
		for x := nx - 1; x >= 0; x-- {
			if row[x] > 0 {
				left = solid
			}
			if left > 0 {
				left--
				v[y*nx+x] = nan
			}
		}
	}
}

// half returns the plane at half the size: means of two by two pixels, of which two or more must have data.
func (l *level) half() *level {
	h := &level{ny: l.ny / 2, nx: l.nx / 2, scale: 2 * l.scale}
	h.v = make([]float32, h.ny*h.nx)
	for y := range h.ny {
		up, down := l.v[2*y*l.nx:][:l.nx], l.v[(2*y+1)*l.nx:][:l.nx]
		for x := range h.nx {
			var sum, n float32
			for _, f := range [4]float32{up[2*x], up[2*x+1], down[2*x], down[2*x+1]} {
				if f == f {
					sum += f
					n++
				}
			}
			if h.v[y*h.nx+x] = nan; n >= 2 {
				h.v[y*h.nx+x] = sum / n
				h.data++
			}
		}
	}
	return h
}

// blurred returns a plane after a Gaussian over the pixels that have data.
func blurred(v []float32, ny, nx int, sigma float64) []float32 {
	var taps []float32
	for _, k := range filter.GaussianKernel(sigma, 0) {
		taps = append(taps, float32(k))
	}
	data, known, whole := make([]float32, len(v)), make([]float32, len(v)), true
	for i, f := range v {
		if f == f {
			data[i], known[i] = f, 1
		} else {
			whole = false
		}
	}
	out := make([]float32, len(v))
	filter.Separable(out, data, ny, nx, taps)
	if whole {
		return out
	}
	weight := data
	filter.Separable(weight, known, ny, nx, taps)
	for i, k := range known {
		if k > 0 {
			out[i] /= weight[i]
		} else {
			out[i] = nan
		}
	}
	return out
}

// at returns a transform of level 0 in the pixels of the level, whose pixel i covers pixels scale·i … scale·(i+1)−1.
func (l *level) at(t filter.Rigid) filter.Rigid {
	o := (l.scale - 1) / 2
	return filter.Rigid{Angle: t.Angle, TX: t.TX / l.scale, TY: t.TY / l.scale, CX: (t.CX - o) / l.scale, CY: (t.CY - o) / l.scale}
}

// whole is the inverse of at: it returns a transform of the level in pixels of level 0, with the centre of like.
func (l *level) whole(t, like filter.Rigid) filter.Rigid {
	return filter.Rigid{Angle: t.Angle, TX: t.TX * l.scale, TY: t.TY * l.scale, CX: like.CX, CY: like.CY}
}
