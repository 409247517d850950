package phantom

import (
	"context"
	"fmt"
	"io"
	"math"

	"strata/pkg/czi"
	"strata/pkg/dtype"
)

// Scan holds the storage format of a slide scan, and the resources for writing it.
type Scan struct {
	Channels    int
	Compression czi.Compression // czi.None or czi.Zstd1
	Level       int             // of Zstandard
	Pyramid     bool
	Workers     int
	Mem         int64             // ceiling for buffers, bytes
	Progress    func(bytes int64) // may be nil
}

// ScanName returns the name of a slice's slide scan, without its suffix.
func ScanName(slice int) string { return fmt.Sprintf("scan_z%02d", slice) }

// ScanPixels returns the pixel type that slide scans use for an element type; ok is false if there is none.
func ScanPixels(t dtype.Type) (czi.PixelType, bool) {
	p, ok := map[dtype.Type]czi.PixelType{dtype.Uint8: czi.Gray8, dtype.Uint16: czi.Gray16, dtype.Float32: czi.Gray32Float, dtype.Float64: czi.Gray64Float}[t]
	return p, ok
}

// WriteCZI writes a slice as a slide scan: its tiles, with one sub-block per channel and plane, at the
// positions where the stage was sent, or, with a stage error, where it recorded them: in whole pixels in the
// directory, and in µm in the sub-blocks' metadata. [Specimen.TilePosition] returns the true positions.
func (s *Specimen) WriteCZI(ctx context.Context, out interface {
	io.WriterAt
	io.ReaderAt
}, slice int, sc Scan) error {
	c := &s.cfg
	pixel, ok := ScanPixels(c.DType)
	if !ok {
		return fmt.Errorf("phantom: CZI files cannot store pixels of %s (must be uint8, uint16, float32 or float64)", c.DType)
	}
	size := int64(c.DType.Size()) * int64(c.Tile[1]) * int64(c.Tile[2])
	workers := int(min(int64(max(sc.Workers, 1)), sc.Mem/(8*size))) // a tile, its parts, its encoded form; four pixels for each of the pyramid
	if workers < 1 {
		return fmt.Errorf("phantom: tiles of %d × %d pixels need %d MiB of buffers, there are %d MiB", c.Tile[1], c.Tile[2], 8*size>>20+1, sc.Mem>>20)
	}
	spec := czi.Spec{Compression: sc.Compression, Level: sc.Level}
	spec.Name, spec.VoxelUM = ScanName(slice), c.Voxel
	spec.Objective = czi.Objective{Name: "phantom"}
	channels := make([]*Specimen, max(sc.Channels, 1))
	for k := range channels {
		channels[k] = s.Channel(k)
		spec.Channels = append(spec.Channels, czi.Channel{Name: fmt.Sprintf("channel %d", k), Color: [...]string{"0000FF", "00FF00", "FF0000", "FFFFFF"}[k%4]})
	}
	w, err := czi.NewWriter(out, spec)
	if err != nil {
		return err
	}
	depth := c.Tile[0]
	n := c.Tiles[0] * c.Tiles[1] * len(channels) * depth
	err = w.Add(ctx, workers, n, func(k int, t *czi.Tile) error {
		z, k := k%depth, k/depth
		ch, tile := k%len(channels), k/len(channels)
		i, j := tile/c.Tiles[1], tile%c.Tiles[1]
		extent := s.TileExtent(i, j)
		step := s.step()
		y, x := float64(i)*step[0], float64(j)*step[1]
		if c.Stage > 0 {
			at := s.recorded(slice, i, j)
			y, x = at[0]/c.Voxel[1], at[1]/c.Voxel[2]
		}
		t.C, t.Z, t.M, t.Pixels = ch, z, tile, pixel
		t.Y, t.X, t.Height, t.Width = int(math.Round(y)), int(math.Round(x)), extent[0], extent[1]
		t.Stage = &czi.Stage{X: x * c.Voxel[2], Y: y * c.Voxel[1], Z: float64(z) * c.Voxel[0], HasZ: true}
		t.Grow(extent[0] * extent[1] * pixel.Bytes())
		if err := channels[ch].RenderPlane(t.Data, slice, i, j, z); err != nil {
			return err
		}
		if sc.Progress != nil {
			sc.Progress(int64(len(t.Data)))
		}
		return nil
	})
	if err == nil && sc.Pyramid {
		err = w.AddPyramid(ctx, workers, max(c.Tile[1], c.Tile[2]))
	}
	if err != nil {
		return err
	}
	return w.Close()
}
