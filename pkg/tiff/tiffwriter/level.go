package tiffwriter

import (
	"strata/pkg/dtype"
	"strata/pkg/mem"
)

// level collects rows of a plane of a lower level until they fill a row of tiles.
type level struct {
	width, height int
	tile, pixel   int
	samples       int
	row           int // of tiles
	have          int // rows of pixels in buf
	buf           []byte
	halve         func(dst, a, b []byte, samples int)
}

func newLevel(s *Spec, k int) (*level, error) {
	l := &level{width: s.Width >> k, height: s.Height >> k, tile: s.Tile, pixel: s.pixel(), samples: s.Samples, halve: dtype.Halver(s.Type)}
	var err error
	l.buf, err = mem.Alloc(l.width * l.tile * l.pixel)
	return l, err
}

// take computes rows from pairs of rows of the level above, of the given width, from row at on, as many as
// there is room for, and returns how many it has used.
func (l *level) take(above []byte, width, at, rows int) int {
	row, up := l.width*l.pixel, width*l.pixel
	used := 0
	for ; at+used+1 < rows && !l.full(); used += 2 {
		a := above[(at+used)*up:]
		l.halve(l.buf[l.have*row:(l.have+1)*row], a[:2*row], a[up:up+2*row], l.samples)
		l.have++
	}
	return used
}

// full reports whether the collected rows fill a row of tiles, or are the last rows of the plane.
func (l *level) full() bool {
	return l.have > 0 && (l.have == l.tile || l.row*l.tile+l.have == l.height)
}

func (l *level) data() []byte { return l.buf[:l.have*l.width*l.pixel] }

// next begins the next row of tiles, or the next plane.
func (l *level) next() {
	l.row++
	if l.row*l.tile >= l.height {
		l.row = 0
	}
	l.have = 0
}

// cut copies a tile out of a row of tiles. Pixels beyond the image's edge repeat the last ones: that compresses best,
// and gives JPEG no edges to blur.
func cut(tile, data []byte, x, width, rows, side, pixel int) []byte {
	n := min(side, width-x)
	for y := range side {
		dst := tile[y*side*pixel : (y+1)*side*pixel]
		if y >= rows {
			copy(dst, tile[(y-1)*side*pixel:y*side*pixel])
			continue
		}
		copy(dst, data[(y*width+x)*pixel:][:n*pixel])
		for i := n * pixel; i < len(dst); i += pixel {
			copy(dst[i:i+pixel], dst[(n-1)*pixel:])
		}
	}
	return tile
}
