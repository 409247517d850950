package flatfield

// Pictures shows a plane of the mosaic before and after the correction, reduced to a few pixels for each tile.
type Pictures struct {
	Height, Width int // of both
	Before, After []float32

	tall, wide int // of a tile
}

// mostPicture is the largest height and width of pictures in pixels, unless there are more tiles.
const mostPicture = 1024

func (f *fitting) newPictures() Pictures {
	most := max(1, min(64, mostPicture/max(f.ny, f.nx)))
	p := Pictures{tall: min(most, f.height), wide: min(most, f.width)}
	p.Height, p.Width = p.tall*f.ny, p.wide*f.nx
	p.Before, p.After = make([]float32, p.Height*p.Width), make([]float32, p.Height*p.Width)
	return p
}

func (p *Pictures) bytes() int64 { return 8 * int64(p.Height) * int64(p.Width) }

// add draws a tile of plane z: means over the pixels that lie in a pixel of the picture.
func (p *Pictures) add(f *fitting, tile, z int, voxels []float32) {
	top, left := tile/f.nx*p.tall, tile%f.nx*p.wide
	sums := make([]float64, 2*p.wide)
	row := make([]float32, f.width)
	for k := range p.tall {
		clear(sums)
		y0, y1 := k*f.height/p.tall, (k+1)*f.height/p.tall
		for y := y0; y < y1; y++ {
			copy(row, voxels[y*f.width:])
			f.correct(row, z, y*f.width)
			for x, v := range row {
				sums[x*p.wide/f.width] += float64(voxels[y*f.width+x])
				sums[p.wide+x*p.wide/f.width] += float64(v)
			}
		}
		for i := range p.wide {
			x0, x1 := (i*f.width+p.wide-1)/p.wide, ((i+1)*f.width+p.wide-1)/p.wide
			n := float64((y1 - y0) * (x1 - x0))
			p.Before[(top+k)*p.Width+left+i] = float32(sums[i] / n)
			p.After[(top+k)*p.Width+left+i] = float32(sums[p.wide+i] / n)
		}
	}
}
