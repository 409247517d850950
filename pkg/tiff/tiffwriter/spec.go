package tiffwriter

import (
	"fmt"
	"slices"

	"strata/pkg/dtype"
	"strata/pkg/mem"
	"strata/pkg/tiff"
	"strata/pkg/tiff/tilecodec"
)

// Spec describes the image to be written.
type Spec struct {
	Image         tiff.Image // Times, Channels, Depths, and fields of the OME-XML; Levels is ignored
	Width, Height int
	Samples       int // per pixel, which lie together: 1, or 3 or 4 for RGB
	Type          dtype.Type
	Tile          int // width and height of tiles, a multiple of 16

	Compression, Predictor int // as [tilecodec.Format] has them
	Level, Quality         int
	Subsampling            [2]int   // of the colours of JPEG; zero: 2 and 2
	Levels                 int      // below level 0 that the writer makes, at most [MaxLevels]
	Below                  [][2]int // widths and heights of lower levels whose bands the caller fills as well, instead of Levels
	Chained                bool     // levels are pages of the file, as generic pyramids have them, and no sub-IFDs
	Plain                  bool     // no OME-XML: Description is the text of the first page
	Description, Software  string
	Beside                 []Picture // written behind the image, unless Plain
	Classic                bool      // never write a BigTIFF; otherwise one is written if a classic file could be too small

	Planes  int   // of a stack that are better read together, such as the depth of its chunks; 0 is 1
	Workers int   // goroutines that encode; 0 is 1
	Budget  int64 // bytes of memory; 0: whatever is needed
}

// Picture is an additional image of one plane, such as that of a slide's label.
type Picture struct {
	Name          string
	Width, Height int
	Samples       int // per pixel, which lie together: 1, or 3 or 4 for RGB
	Type          dtype.Type
	Data          []byte // height × width × samples, in native byte order
}

// check returns an error if the picture cannot be written.
func (p *Picture) check() error {
	if p.Width < 1 || p.Height < 1 || p.Samples < 1 || len(p.Data) != mem.Product(p.Width, p.Height, p.Samples, p.Type.Size()) || !tiff.OMEHolds(p.Type) {
		return fmt.Errorf("a picture %q of %d × %d pixels, %d samples of %s and %d bytes", p.Name, p.Width, p.Height, p.Samples, p.Type, len(p.Data))
	}
	return nil
}

// MaxLevels returns the maximum number of levels below level 0 for an image of the given size; the last one
// has sides of at least one pixel.
func MaxLevels(width, height int) int {
	n := 0
	for min(width, height)>>(n+1) >= 1 {
		n++
	}
	return n
}

// Levels returns how many levels below level 0 are needed until the last fits into one tile.
func Levels(width, height, tile int) int {
	n := 0
	for max(width, height)>>n > tile && n < MaxLevels(width, height) {
		n++
	}
	return n
}

// check fills in defaults, and returns an error if the image cannot be written.
func (s *Spec) check() error {
	im := &s.Image
	im.Times, im.Channels, im.Depths = max(im.Times, 1), max(im.Channels, 1), max(im.Depths, 1)
	s.Samples, s.Planes, s.Workers = max(s.Samples, 1), max(s.Planes, 1), max(s.Workers, 1)
	if s.Subsampling == [2]int{} {
		s.Subsampling = [2]int{2, 2}
	}
	switch {
	case s.Width < 1 || s.Height < 1:
		return fmt.Errorf("an image of %d × %d pixels", s.Width, s.Height)
	case s.Tile < 16 || s.Tile%16 != 0 || s.Tile > 1<<15:
		return fmt.Errorf("tiles of %d pixels (must be a multiple of 16, at most %d)", s.Tile, 1<<15)
	case s.Levels > 0 && s.Below != nil:
		return fmt.Errorf("%d levels to be made and %d to be filled", s.Levels, len(s.Below))
	case slices.ContainsFunc(s.Below, func(size [2]int) bool { return size[0] < 1 || size[1] < 1 || size[0] > s.Width || size[1] > s.Height }):
		return fmt.Errorf("levels of %v pixels below one of %d × %d", s.Below, s.Width, s.Height)
	case s.Levels < 0 || s.Levels > MaxLevels(s.Width, s.Height):
		return fmt.Errorf("%d levels of %d × %d pixels (at most %d)", s.Levels, s.Width, s.Height, MaxLevels(s.Width, s.Height))
	case !s.Plain && !tiff.OMEHolds(s.Type):
		return fmt.Errorf("OME-TIFF has no elements of type %s", s.Type)
	}
	for i := range s.Beside {
		if err := s.Beside[i].check(); err != nil {
			return err
		}
	}
	f := s.format()
	return f.CheckEncode()
}

// format returns the format for encoding tiles.
func (s *Spec) format() tilecodec.Format {
	return tilecodec.Format{Compression: s.Compression, Predictor: s.Predictor, Type: s.Type, Bits: 8 * s.Type.Size(), Samples: s.Samples,
		Width: s.Tile, Height: s.Tile, Depth: 1, Photometric: s.photometric(), Subsampling: s.Subsampling, Level: s.Level, Quality: s.Quality}
}

func (s *Spec) photometric() int {
	switch {
	case s.Samples < 3:
		return tiff.MinIsBlack
	case s.Compression == tilecodec.JPEG && s.Samples == 3:
		return tiff.YCbCr
	}
	return tiff.RGB
}

// count returns the number of levels.
func (s *Spec) count() int { return 1 + s.Levels + len(s.Below) }

// size returns the width and height of a level.
func (s *Spec) size(level int) (width, height int) {
	if level > 0 && s.Below != nil {
		return s.Below[level-1][0], s.Below[level-1][1]
	}
	return s.Width >> level, s.Height >> level
}

// planes returns the number of planes.
func (s *Spec) planes() int { return s.Image.Times * s.Image.Channels * s.Image.Depths }

// pixel returns the number of bytes of a pixel.
func (s *Spec) pixel() int { return s.Samples * s.Type.Size() }

// bytes returns the memory in bytes of a band of so many planes, together with its lower levels and encoded tiles.
func (s *Spec) bytes(planes int) int64 {
	row := mem.Product(s.Width, s.pixel())
	band := mem.Product(row, s.Tile, planes)
	lower := 0
	if s.Levels > 0 {
		lower = band
	}
	tile := mem.Product(s.Tile, s.Tile, s.pixel())
	return int64(mem.Sum(band, lower, mem.Product(4*s.Workers, tile)))
}

// Bytes returns the minimum memory that writing needs.
func (s *Spec) Bytes() int64 { return s.bytes(1) }

// samples returns the size of all samples of all levels, tiles at the edges being whole.
func (s *Spec) samples() int64 {
	var sum int64
	for k := range s.count() {
		w, h := s.size(k)
		w, h = (w+s.Tile-1)/s.Tile, (h+s.Tile-1)/s.Tile
		sum += int64(w) * int64(h) * int64(s.Tile) * int64(s.Tile) * int64(s.pixel())
	}
	sum *= int64(s.planes())
	for _, p := range s.Beside {
		sum += int64(len(p.Data)) * 2
	}
	return sum
}
