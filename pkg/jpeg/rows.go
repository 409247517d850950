package jpeg

import "encoding/binary"

func put64(b []byte, v uint64) { binary.LittleEndian.PutUint64(b, v) }

// slack is how far kernels may write behind a row: they process up to 32 samples at a time.
const slack = 64

// expansion describes how rows of a component become rows of the frame.
type expansion uint8

const (
	whole   expansion = iota // it has all samples
	fancyX                   // half of them in a row, triangle filter
	fancyY                   // half of the rows
	fancyXY                  // both
	nearest                  // repetition
)

// expansionOf chooses as libjpeg does.
func (f *frame) expansionOf(c *component) expansion {
	x2, y2 := 2*c.h == f.hmax, 2*c.v == f.vmax
	switch {
	case c.h == f.hmax && c.v == f.vmax:
		return whole
	case x2 && c.v == f.vmax && c.width > 2:
		return fancyX
	case c.h == f.hmax && y2:
		return fancyY
	case x2 && y2 && c.width > 2:
		return fancyXY
	}
	return nearest
}

// needsBelow reports whether a row of the frame may be made of the row of samples below that in which it
// lies.
func (e expansion) needsBelow() bool { return e == fancyY || e == fancyXY }

// row is row y of the component's samples, the first or last one outside. The strip has the latest ones only.
func (c *component) row(y int) []byte {
	y = max(0, min(y, c.height-1))
	return c.strip[y%c.ring*c.stride:][:c.stride]
}

// expander makes rows of the frame of a component's rows.
type expander struct {
	out  []byte
	sums []int16 // vertical ones; what lies left of the row is at margin-1
}

const margin = 16

func (e *expander) row(f *frame, c *component, y int) []byte {
	near, far := c.row(y*c.v/f.vmax), c.row(y/2-1+y%2*2)
	switch c.expand {
	case whole:
		return near
	case fancyX:
		e.spread(near, near, c.width, 4, 8)
	case fancyXY:
		e.spread(near, far, c.width, 8, 7)
	case fancyY:
		bias := uint16(1 + y%2)
		for i := range c.width {
			e.out[i] = byte((3*uint16(near[i]) + uint16(far[i]) + bias) >> 2)
		}
	default:
		repeat(e.out[:f.width], near, c.h, f.hmax)
	}
	return e.out
}

// spread makes two samples of each, of n: 9, 3, 3 and 1 sixteenths of the four nearest. first and second round them.
// Outside, the samples at the edges are repeated.
func (e *expander) spread(near, far []byte, n int, first, second uint16) {
	sums := e.sums[:margin+n+slack]
	k := 0
	if haveAVX2 {
		k = (n + 15) &^ 15 // a few too many: rows have slack
		columnsAVX2(&sums[margin], &near[0], &far[0], k)
	}
	for i := k; i < n; i++ {
		sums[margin+i] = int16(3*uint16(near[i]) + uint16(far[i]))
	}
	sums[margin-1], sums[margin+n] = sums[margin], sums[margin+n-1]
	if haveAVX2 {
		spreadAVX2(&e.out[0], &sums[margin], k, first, second)
		return
	}
	out, left := e.out[:2*n], uint16(sums[margin-1])
	here := uint16(sums[margin])
	for i, right := range sums[margin+1:][:n] {
		out[2*i] = byte((3*here + left + first) >> 4)
		out[2*i+1] = byte((3*here + uint16(right) + second) >> 4)
		left, here = here, uint16(right)
	}
}

// repeat takes the nearest of h samples for each hmax.
func repeat(dst, src []byte, h, hmax int) {
	if n := hmax / h; n*h == hmax {
		for i := 0; len(dst) > 0; i++ {
			m := min(n, len(dst))
			for j := range m {
				dst[j] = src[i]
			}
			dst = dst[m:]
		}
		return
	}
	for i := range dst {
		dst[i] = src[i*h/hmax]
	}
}

// mix puts rows of components together to a row of pixels.
type mix func(dst []byte, rows *[4][]byte, width int)

func mixOf(f *frame, c Color) mix {
	switch {
	case c == ToRGB && f.isYCC() && f.n == 4:
		return mixCMYK
	case c == ToRGB && f.isYCC():
		return mixRGB
	case f.n == 1:
		return func(dst []byte, rows *[4][]byte, width int) { copy(dst[:width], rows[0]) }
	case f.n == 3:
		return mix3
	}
	return mix4
}

// rgb converts a pixel, in 16 bits after the point.
func rgb(y, cb, cr byte) (r, g, b byte) {
	l, u, v := int32(y), int32(cb)-128, int32(cr)-128
	return clamp(l + (91881*v+1<<15)>>16), clamp(l + (-22554*u-46802*v+1<<15)>>16), clamp(l + (116130*u+1<<15)>>16)
}

func clamp(v int32) byte {
	if uint32(v) > 255 {
		return byte(^(v >> 31))
	}
	return byte(v)
}

// masks holds the masks of VPSHUFB that interleave three components.
type masks [9][32]byte

// thirds has in mask 3p+c which sample of component c, of 16, becomes each of bytes 16p … 16p+15 of their pixels, the
// same in both lanes.
var thirds = func() (m masks) {
	for i := range m {
		for j := range m[i] {
			m[i][j] = 0x80 // another component's
			if at := 16*(i/3) + j%16; at%3 == i%3 {
				m[i][j] = byte(at / 3)
			}
		}
	}
	return m
}()

func mixRGB(dst []byte, rows *[4][]byte, width int) {
	y, cb, cr := rows[0][:width], rows[1][:width], rows[2][:width]
	dst = dst[:3*width]
	k := 0
	if haveAVX2 && width >= 32 {
		k = width &^ 31
		rgbAVX2(&dst[0], &y[0], &cb[0], &cr[0], k, &thirds)
	}
	for i := k; i < width; i++ {
		dst[3*i], dst[3*i+1], dst[3*i+2] = rgb(y[i], cb[i], cr[i])
	}
}

func mix3(dst []byte, rows *[4][]byte, width int) {
	a, b, c := rows[0][:width], rows[1][:width], rows[2][:width]
	dst = dst[:3*width]
	k := 0
	if haveAVX2 && width >= 32 {
		k = width &^ 31
		interleaveAVX2(&dst[0], &a[0], &b[0], &c[0], k, &thirds)
	}
	for i := k; i < width; i++ {
		dst[3*i], dst[3*i+1], dst[3*i+2] = a[i], b[i], c[i]
	}
}

func mix4(dst []byte, rows *[4][]byte, width int) {
	a, b, c, d := rows[0][:width], rows[1][:width], rows[2][:width], rows[3][:width]
	for i := range a {
		binary.LittleEndian.PutUint32(dst[4*i:], uint32(a[i])|uint32(b[i])<<8|uint32(c[i])<<16|uint32(d[i])<<24)
	}
}

func mixCMYK(dst []byte, rows *[4][]byte, width int) {
	y, cb, cr, k := rows[0][:width], rows[1][:width], rows[2][:width], rows[3][:width]
	for i := range y {
		r, g, b := rgb(y[i], cb[i], cr[i])
		binary.LittleEndian.PutUint32(dst[4*i:], uint32(255-r)|uint32(255-g)<<8|uint32(255-b)<<16|uint32(k[i])<<24)
	}
}
