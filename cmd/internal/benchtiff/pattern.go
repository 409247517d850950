package benchtiff

import (
	"encoding/binary"
	"math"

	"strata/cmd/internal/benchzarr"
	"strata/pkg/dtype"
)

// pattern is the content of a generated image. A pixel depends only on the seed and its place, so that the image
// is the same for all bands and numbers of threads.
type pattern struct {
	kind    string
	seed    uint64
	samples int
	elem    dtype.Type
}

func newPattern(kind string, seed uint64, samples int, elem dtype.Type) *pattern {
	return &pattern{kind, benchzarr.Mix(seed), samples, elem}
}

// octaves lists the fields of smooth noise that are added: the distance of their grid points in pixels, and their
// share.
var octaves = []struct {
	step  int
	share float32
}{{4096, 0.5}, {1024, 0.28}, {256, 0.14}, {64, 0.08}}

// Colours of stained tissue: of the background, of tissue with the most stain, of nuclei.
var (
	glass   = [3]float32{243, 241, 244}
	eosin   = [3]float32{196, 92, 148}
	nucleus = [3]float32{86, 48, 128}
)

const (
	nucleusCell = 22   // pixels: at most one nucleus lies in a square of that side, and does not leave it
	tissueFrom  = 0.46 // of the density: less is background
)

// painter paints rows of a pattern in one goroutine.
type painter struct {
	*pattern
	width   int
	density []float32 // of a row, from 0 to 1
	inside  []bool    // a nucleus
	rgb     [][3]float32
}

func (p *pattern) painter(width int) *painter {
	return &painter{p, width, make([]float32, width), make([]bool, width), make([][3]float32, width)}
}

// row paints row y.
func (p *painter) row(y int, out []byte) {
	noise := p.seed ^ benchzarr.Mix(uint64(y)+1)
	if p.kind == "noise" {
		p.noise(noise, out)
		return
	}
	clear(p.density)
	for k, o := range octaves {
		p.add(uint64(k), y, o.step, o.share)
	}
	if p.kind == "smooth" {
		for x, d := range p.density {
			p.rgb[x] = [3]float32{255 * d, 255 * (1 - d), 128 + float32(64*d)}
		}
	} else {
		p.tissue(y, noise)
	}
	p.store(out)
}

// add adds smooth noise whose grid points are step pixels apart.
func (p *painter) add(field uint64, y, step int, share float32) {
	gy, ty := y/step, ease(y%step, step)
	at := func(gx int) float32 { // between the two grid points above and below
		a, b := p.point(field, gx, gy), p.point(field, gx, gy+1)
		return a + float32((b-a)*ty)
	}
	right := at(0)
	for gx, x := 0, 0; x < p.width; gx++ {
		left := right
		right = at(gx + 1)
		for i := 0; i < step && x < p.width; i++ {
			v := left + float32((right-left)*ease(i, step))
			p.density[x] += float32(v * share)
			x++
		}
	}
}

// ease rises smoothly from 0 to 1.
func ease(i, n int) float32 {
	t := float32(i) / float32(n)
	return t * t * (3 - float32(2*t))
}

// point returns the value of a grid point, from 0 to 1.
func (p *painter) point(field uint64, x, y int) float32 {
	return float32(benchzarr.Mix(p.seed+field*0x9e3779b97f4a7c15+uint64(x)<<32+uint64(y))>>40) / (1 << 24)
}

// tissue colours a row by its density, with nuclei and the camera's noise.
func (p *painter) tissue(y int, noise uint64) {
	p.nuclei(y)
	for x, d := range p.density {
		r := benchzarr.Mix(noise + uint64(x))
		grain := float32(int(r&15)+int(r>>4&15)-15) * 0.5
		stain := min(max((d-tissueFrom)*5, 0), 1)
		to := eosin
		if stain > 0 && p.inside[x] {
			to = nucleus
		}
		for c := range 3 {
			p.rgb[x][c] = glass[c] + float32((to[c]-glass[c])*stain) + float32(grain*(0.3+stain))
		}
	}
}

// nuclei marks the pixels of a row that lie in nuclei.
func (p *painter) nuclei(y int) {
	clear(p.inside)
	cy := y / nucleusCell
	for cx := range (p.width + nucleusCell - 1) / nucleusCell {
		r := benchzarr.Mix(p.seed ^ 0xd1342543de82ef95 ^ uint64(cx)<<24 ^ uint64(cy))
		radius := 3 + int(r%5)
		if r>>8%8 < 3 { // none here
			continue
		}
		room := uint64(nucleusCell - 2*radius)
		dy := y%nucleusCell - radius - int(r>>16%room)
		if dy*dy > radius*radius {
			continue
		}
		half := int(math.Sqrt(float64(radius*radius - dy*dy)))
		middle := cx*nucleusCell + radius + int(r>>32%room)
		for x := middle - half; x <= middle+half && x < p.width; x++ {
			p.inside[x] = true
		}
	}
}

// noise fills a row with bytes without repetition.
func (p *painter) noise(seed uint64, out []byte) {
	size := p.elem.Size()
	for i := 0; i < len(out); i += size {
		r := benchzarr.Mix(seed + uint64(i))
		switch p.elem {
		case dtype.Uint8:
			out[i] = byte(r)
		case dtype.Uint16:
			binary.NativeEndian.PutUint16(out[i:], uint16(r))
		default:
			binary.NativeEndian.PutUint32(out[i:], math.Float32bits(float32(r>>40)/(1<<24)))
		}
	}
}

// store writes the row's pixels in the image's type, opaque: bytes, 16 bits of the same range, or floats up to 1.
func (p *painter) store(out []byte) {
	size := p.elem.Size()
	for x, v := range p.rgb {
		s := []float32{v[0], v[1], v[2], 255}
		if p.samples == 1 {
			s[0] = float32(0.299*v[0]) + float32(0.587*v[1]) + float32(0.114*v[2])
		}
		for c := range p.samples {
			b := out[(x*p.samples+c)*size:]
			f := min(max(s[c], 0), 255)
			switch p.elem {
			case dtype.Uint8:
				b[0] = byte(f + 0.5)
			case dtype.Uint16:
				binary.NativeEndian.PutUint16(b, uint16(float32(f*257)+0.5))
			default:
				binary.NativeEndian.PutUint32(b, math.Float32bits(f/255))
			}
		}
	}
}
