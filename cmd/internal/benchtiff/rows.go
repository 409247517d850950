package benchtiff

import (
	"os"
	"slices"

	"strata/pkg/zarr"
)

// rows describes the rows of a tile: runs of bytes that are contiguous in the image, too. A tile at the edge of
// the image has more and longer rows than the image.
type rows struct {
	box   zarr.Region
	outer []int // shape of the tile across rows
	have  []int // how much of that lies in the image
	row   int   // bytes of a row of the tile
	run   int   // of them in the image
	size  int   // of an element
}

func (l *level) rows(box zarr.Region) rows {
	layout := l.job.Target.Layout
	d := len(layout.Shape) - 1 // the dimension along which a row runs
	for d > 0 && layout.Chunks[d] == layout.Shape[d] {
		d--
	}
	r := rows{box: box, outer: layout.Chunks[:d], have: box.Shape[:d], size: layout.Size}
	r.row, r.run = layout.Size, layout.Size
	for k := d; k < len(layout.Shape); k++ {
		r.row *= layout.Chunks[k]
		r.run *= box.Shape[k]
	}
	return r
}

// each calls do with the number of each row of the tile that lies in the image, and its position across rows.
func (r rows) each(do func(n int, at []int)) {
	at := make([]int, len(r.outer))
	for n := 0; ; n++ {
		inside := true
		for d := range at {
			inside = inside && at[d] < r.have[d]
		}
		if inside {
			do(n, at)
		}
		d := len(at) - 1
		for ; d >= 0; d-- {
			if at[d]++; at[d] < r.outer[d] {
				break
			}
			at[d] = 0
		}
		if d < 0 {
			return
		}
	}
}

// place is the destination of a row in the image.
type place struct {
	n  int // the row's number in the tile
	to []byte
}

// places returns the places of all rows that lie in a part of the image, which is in buf.
func (r rows) places(part zarr.Region, buf []byte) []place {
	var out []place
	r.each(func(n int, at []int) {
		off := 0
		for d := range part.Shape {
			i := r.box.Start[d] - part.Start[d]
			if d < len(at) {
				i += at[d]
			}
			off = off*part.Shape[d] + i
		}
		out = append(out, place{n, buf[off*r.size:][:r.run]})
	})
	return out
}

// put copies the rows of a tile to their places.
func (r rows) put(list []place, tile []byte) {
	for _, p := range list {
		copy(p.to, tile[p.n*r.row:])
	}
}

// compact moves the part of a tile that lies in the image to its beginning.
func (r rows) compact(tile []byte) []byte {
	end := 0
	r.each(func(n int, _ []int) { end += copy(tile[end:end+r.run], tile[n*r.row:]) })
	return tile[:end]
}

// read reads rows from a tile's offset in a file directly to their places; bytes between them go to scratch
// memory.
func (r rows) read(f *os.File, list []place, scratch []byte, off int64) error {
	vectors := make([][]byte, 0, 2*len(list))
	at := 0 // in the tile
	for _, p := range list {
		if skip := p.n*r.row - at; skip > 0 {
			vectors = append(vectors, scratch[:skip])
		}
		vectors = append(vectors, p.to)
		at = p.n*r.row + r.run
	}
	return preadv(f, slices.Clip(vectors), off)
}
