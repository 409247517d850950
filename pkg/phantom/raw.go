package phantom

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"strata/pkg/dtype"
	"strata/pkg/filter"
	"strata/pkg/mem"
	"strata/pkg/work"
)

// Files sets the resources for writing raw tiles.
type Files struct {
	Workers  int
	Mem      int64             // ceiling for buffers, bytes
	Progress func(bytes int64) // may be nil
}

// stageOrigin is the stage's position in mm along x and y where the first tile of a specimen at (0, 0) is recorded.
const stageOrigin = 50

// RawName returns the name of the folder of a slice's raw tiles.
func RawName(slice int) string { return fmt.Sprintf("z%02d", slice) }

// stage returns the stage's position (x, y, z) in mm that the microscope records with a tile. Its x is the image's y.
// The stage carries the specimen: it moves the other way than the view of it.
func (s *Specimen) stage(slice, i, j int) (at [3]float64) {
	c := &s.cfg
	m := &c.Matrix
	det := float64(m[0][0]*m[1][1]) - float64(m[0][1]*m[1][0])
	p := s.shifts[slice] // of the image; where the stage was sent for it
	p = [2]float64{(float64(m[1][1]*p[0]) - float64(m[0][1]*p[1])) / det, (float64(m[0][0]*p[1]) - float64(m[1][0]*p[0])) / det}
	step := s.step()
	index := [2]int{i, j}
	for d := range p {
		um := float64((p[d] + s.recordedError(slice)[d] + float64(float64(index[d])*step[d])) * c.Voxel[1+d])
		um += float64(c.Stage * normal(s.seed(seedStage, 2*slice+d), i*c.Tiles[1]+j))
		at[d] = stageOrigin - um/1000
	}
	at[2] = float64(slice) * c.Cut / 1000
	return at
}

// recordedError returns by how much the recorded position of a slice differs from its own, in px: what is wrong with
// the shifts up to it, and the stage's loss of its home.
func (s *Specimen) recordedError(slice int) (sum [2]float64) {
	for _, p := range s.csv[:slice] {
		for d := range sum {
			sum[d] += p.Recorded[d] - p.True[d]
		}
	}
	for d := range sum {
		sum[d] += s.rehomed[0][d]
	}
	return sum
}

// WriteRaw writes a slice as the microscope does: for each tile (i, j) a folder tile_x<i>_y<j>_z<slice> with info.txt
// and frames of float32 A-lines, as package rawtiles reads them. A-lines follow each other along the image's y, frames
// along x. Tiles are rendered in parallel; memory is two tiles per worker.
func (s *Specimen) WriteRaw(ctx context.Context, dir string, slice int, f Files) error {
	c := &s.cfg
	tile := mem.Product(4, c.Tile[0], c.Tile[1], c.Tile[2])
	raw := mem.Product(4, c.Tile[0], c.Tile[1]+c.Extra, c.Tile[2])
	workers := int(min(int64(max(f.Workers, 1)), f.Mem/int64(mem.Sum(tile, raw))))
	if workers < 1 {
		return fmt.Errorf("phantom: raw tiles of %v voxels need %d MiB of buffers, there are %d MiB", c.Tile, mem.Sum(tile, raw)>>20+1, f.Mem>>20)
	}
	return work.Share(ctx, workers, c.Tiles[0]*c.Tiles[1], func(_ context.Context, _ int, tiles iter.Seq[int]) error {
		buffers := [2][]byte{}
		defer func() {
			mem.Free(buffers[0])
			mem.Free(buffers[1])
		}()
		for k, n := range []int{tile, raw} {
			var err error
			if buffers[k], err = mem.Alloc(n); err != nil {
				return err
			}
		}
		for k := range tiles {
			i, j := k/c.Tiles[1], k%c.Tiles[1]
			if err := s.RenderTile(buffers[0], slice, i, j); err != nil {
				return err
			}
			frames := dtype.Slice[float32](buffers[1])
			s.frames(frames, dtype.Slice[float32](buffers[0]))
			path := filepath.Join(dir, fmt.Sprintf("tile_x%02d_y%02d_z%02d", i, j, slice))
			if err := s.writeFrames(path, frames, s.stage(slice, i, j)); err != nil {
				return err
			}
			if f.Progress != nil {
				f.Progress(int64(raw))
			}
		}
		return nil
	})
}

// frames fills out, of shape (frame, A-line, z), with a tile of shape (z, y, x). After the A-lines of the image come
// those of the mirror's way back, which sees them again, backwards, faster and darker; then all are rolled.
func (s *Specimen) frames(out, tile []float32) {
	c := &s.cfg
	nz, ny, nx := c.Tile[0], c.Tile[1], c.Tile[2]
	lines := ny + c.Extra
	at := func(l int) int { return (l + lines - c.GalvoShift) % lines * nz }
	for l := range ny {
		filter.Transpose(out[at(l):], tile[l*nx:], nz, nx, lines*nz, ny*nx)
	}
	for frame := range nx {
		v := out[frame*lines*nz:][:lines*nz]
		for e := range c.Extra {
			from := v[at(ny-1-(2*e+1)*ny/(2*c.Extra)):][:nz]
			for z, x := range from {
				v[at(ny+e)+z] = float32(x * float32(c.Return))
			}
		}
	}
}

// fileBytes limits the length of a file of frames; a tile has at least two.
const fileBytes = 64 << 20

// writeFrames writes the folder of a tile.
func (s *Specimen) writeFrames(path string, frames []float32, stage [3]float64) error {
	c := &s.cfg
	num := func(v float64) string { return strconv.FormatFloat(v, 'g', 12, 64) }
	var info strings.Builder
	for _, l := range [][2]string{
		{"nx", strconv.Itoa(c.Tile[1])}, {"ny", strconv.Itoa(c.Tile[2])}, {"n_extra", strconv.Itoa(c.Extra)}, {"n_repeat", "1"},
		{"width", num(c.Voxel[1] * float64(c.Tile[1]))}, {"height", num(c.Voxel[2] * float64(c.Tile[2]))},
		{"n_samples", strconv.Itoa(2 * c.Tile[0])}, {"top_z", "0"}, {"bottom_z", strconv.Itoa(c.Tile[0] - 1)}, {"axial_resolution", num(c.Voxel[0])},
		{"stage_x_pos_mm", num(stage[0])}, {"stage_y_pos_mm", num(stage[1])}, {"stage_z_pos_mm", num(stage[2])},
	} {
		info.WriteString(l[0] + ": " + l[1] + "\n")
	}
	err := errors.Join(os.MkdirAll(path, 0o777), os.WriteFile(filepath.Join(path, "info.txt"), []byte(info.String()), 0o666))
	size := len(frames) / c.Tile[2]
	each := max(1, min((c.Tile[2]+1)/2, fileBytes/(4*size)))
	for n := 0; err == nil && n*each < c.Tile[2]; n++ {
		b := dtype.Bytes(frames[n*each*size : min((n+1)*each, c.Tile[2])*size])
		err = os.WriteFile(filepath.Join(path, fmt.Sprintf("image_%05d.bin", n)), b, 0o666)
	}
	return err
}
