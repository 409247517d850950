package phantom

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"math"
	"strconv"

	"strata/pkg/dtype"
	"strata/pkg/mem"
	"strata/pkg/meter"
	"strata/pkg/ngff"
	"strata/pkg/npy"
	"strata/pkg/registration"
	"strata/pkg/work"
	"strata/pkg/zarr/codec"
	"strata/pkg/zarr/store"
)

// Storage sets how mosaics are stored, and the resources for writing them.
type Storage struct {
	Format        int         // Zarr format 2 or 3
	Codecs        codec.Chain // of level 0
	Chunks, Shard []int       // (z, y, x); nil chunks: one per tile; nil shard: none
	Levels        int         // pyramid levels below level 0
	Unit          string      // of the voxel size: micrometer, millimeter…
	Workers       int
	Mem           int64 // ceiling for buffers, bytes
	Meter         *meter.Meter
	Progress      func(bytes int64) // may be nil
}

// WriteMosaic writes the mosaic grid of a slice as an OME-Zarr image at the root of a store: tile (i, j) is
// chunk (·, i, j). Tiles are rendered in parallel and written as they become ready; memory is one tile per
// worker.
func (s *Specimen) WriteMosaic(ctx context.Context, out store.Writer, slice int, st Storage) error {
	shape := s.cfg.Shape()
	g := grid{shape: shape, tile: s.cfg.Tile, n: s.cfg.Tiles, name: MosaicName(slice)}
	return s.write(ctx, out, st, g, func(dst []byte, i, j, _, _ int) error { return s.RenderTile(dst, slice, i, j) })
}

// WriteTruth writes a slice as an ideal microscope would see it, over the canvas that its tiles cover (see
// [Specimen.Canvas]), as an OME-Zarr image.
func (s *Specimen) WriteTruth(ctx context.Context, out store.Writer, slice int, st Storage) error {
	origin, size := s.Canvas(slice)
	t := s.cfg.Tile
	g := grid{shape: [3]int{t[0], size[0], size[1]}, tile: t, name: fmt.Sprintf("slice_z%02d", slice),
		n: [2]int{(size[0] + t[1] - 1) / t[1], (size[1] + t[2] - 1) / t[2]}}
	return s.write(ctx, out, st, g, func(dst []byte, i, j, ny, nx int) error {
		pos := [2]float64{float64(origin[0] + i*t[1]), float64(origin[1] + j*t[2])}
		return s.RenderTruth(dst, slice, pos, ny, nx)
	})
}

// MosaicName returns the name of a slice's mosaic grid, without its suffix.
func MosaicName(slice int) string { return fmt.Sprintf("mosaic_grid_3d_z%02d", slice) }

// grid is an image cut into tiles.
type grid struct {
	shape, tile [3]int
	n           [2]int
	name        string
}

func (s *Specimen) write(ctx context.Context, out store.Writer, st Storage, g grid, render func(dst []byte, i, j, ny, nx int) error) error {
	um, _, ok := ngff.Micrometres(st.Unit)
	if !ok {
		return fmt.Errorf("phantom: unit %q is not known", st.Unit)
	}
	size := s.cfg.DType.Size() * g.tile[0] * g.tile[1] * g.tile[2]
	budget := st.Mem / 4
	// a tile and its encoded form for each worker
	workers := int(min(int64(max(st.Workers, 1)), (st.Mem-budget)/int64(2*size)))
	if workers < 1 {
		return fmt.Errorf("phantom: tiles of %v voxels need %d MiB of buffers, there are %d MiB", g.tile, int64(2*size)*4/3>>20+1, st.Mem>>20)
	}
	spec := ngff.ImageSpec{
		Format: st.Format, Name: g.name, Shape: g.shape[:], Chunks: st.Chunks, Shard: st.Shard, DType: s.cfg.DType, Codecs: st.Codecs,
		Axes: ngff.SpaceAxes("zyx", st.Unit), Levels: st.Levels, Workers: 1, Budget: budget, Meter: st.Meter,
	}
	if spec.Chunks == nil {
		spec.Chunks = g.tile[:]
	}
	for _, v := range s.cfg.Voxel {
		spec.Scale = append(spec.Scale, v/um)
	}
	w, err := ngff.Create(ctx, out, "", spec)
	if err != nil {
		return err
	}
	defer w.Abort()
	err = work.Share(ctx, workers, g.n[0]*g.n[1], func(ctx context.Context, _ int, tiles iter.Seq[int]) error {
		buf, err := mem.Alloc(size)
		if err != nil {
			return err
		}
		defer mem.Free(buf)
		for k := range tiles {
			i, j := k/g.n[1], k%g.n[1]
			y, x := i*g.tile[1], j*g.tile[2]
			ny, nx := min(g.tile[1], g.shape[1]-y), min(g.tile[2], g.shape[2]-x)
			b := buf[:s.cfg.DType.Size()*g.tile[0]*ny*nx]
			if err := render(b, i, j, ny, nx); err != nil {
				return err
			}
			if err := w.WriteTile(ctx, []int{0, y, x}, []int{g.tile[0], ny, nx}, b); err != nil {
				return err
			}
			if st.Progress != nil {
				st.Progress(int64(len(b)))
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return w.Close(ctx)
}

// WriteShifts writes the motor shifts between neighbouring slices as the microscope recorded them, glitches
// included: fixed_id, moving_id, x_shift, y_shift (px), x_shift_mm, y_shift_mm.
func (s *Specimen) WriteShifts(w io.Writer) error {
	out := csv.NewWriter(w)
	rows := [][]string{{"fixed_id", "moving_id", "x_shift", "y_shift", "x_shift_mm", "y_shift_mm"}}
	fixed, sum := -1, [2]float64{} // of the pairs since the last slice that there is
	if s.Present(0) {
		fixed = 0
	}
	for _, p := range s.csv {
		sum = [2]float64{sum[0] + p.Recorded[0], sum[1] + p.Recorded[1]}
		if !s.Present(p.Moving) {
			continue
		}
		num := func(px, um float64) string { return strconv.FormatFloat(px*um, 'g', 12, 64) }
		if fixed >= 0 {
			rows = append(rows, []string{strconv.Itoa(fixed), strconv.Itoa(p.Moving), num(sum[1], 1), num(sum[0], 1),
				num(sum[1], s.cfg.Voxel[2]/1000), num(sum[0], s.cfg.Voxel[1]/1000)})
		}
		fixed, sum = p.Moving, [2]float64{}
	}
	return out.WriteAll(rows)
}

// Truth holds the ground truth of an acquisition besides its voxels. Positions and shifts are (y, x) in px;
// larger arrays are .npy files beside it.
type Truth struct {
	Config    Config       `json:"config"`
	DType     string       `json:"dtype"`
	Positions [][2]float64 `json:"slice_positions_px"` // of each slice, true
	Pairs     []pair       `json:"pairs"`
	Canvas    []canvas     `json:"canvas"`
	Turns     []turn       `json:"slice_rotations,omitempty"`    // of slices that are rotated
	Rehomed   [][2]float64 `json:"rehomed_px,omitempty"`         // by how much each slice's recorded positions are off
	Stage     [][2]float64 `json:"stage_positions_mm,omitempty"` // where raw tiles state the first tile of each slice, along the microscope's (x, y)
	Beam      []float32    `json:"beam_profile,omitempty"`       // brightness of each plane of a tile
}

// turn is a rotation of a slice: its point p, as (y, x) in px, shows the point middle + R·(p − middle) of the block,
// where R has the rows (cos, sin) and (−sin, cos).
type turn struct {
	Slice   int        `json:"slice"`
	Degrees float64    `json:"degrees"`
	Middle  [2]float64 `json:"middle_px"`
}

type canvas struct {
	Origin [2]int `json:"origin_px"`
	Size   [2]int `json:"size_px"`
}

// WriteJSON writes the truth as one JSON document.
func (s *Specimen) WriteJSON(w io.Writer) error {
	t := Truth{Config: s.cfg, DType: s.cfg.DType.String(), Positions: s.shifts, Pairs: s.csv}
	for i := range s.cfg.Slices {
		origin, size := s.Canvas(i)
		t.Canvas = append(t.Canvas, canvas{origin, size})
		if s.turns[i] != 0 {
			t.Turns = append(t.Turns, turn{i, s.turns[i] * 180 / math.Pi, s.middle(i)})
		}
		if s.cfg.Raw {
			stage := s.stage(i, 0, 0)
			t.Stage = append(t.Stage, [2]float64{stage[0], stage[1]})
		}
	}
	if s.cfg.Rehome > 0 {
		t.Rehomed = s.rehomed
	}
	t.Beam = s.beam
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(t)
}

// WriteFlatField writes the illumination field of the tiles, shape (y, x), as
// float32 .npy.
func (s *Specimen) WriteFlatField(w io.Writer) error { return s.writeField(w, s.flat) }

// WriteCurvature writes the depth in voxels that the focal plane adds, shape (y, x), as float32 .npy.
func (s *Specimen) WriteCurvature(w io.Writer) error { return s.writeField(w, s.bowl) }

func (s *Specimen) writeField(w io.Writer, v []float32) error {
	if err := npy.WriteHeader(w, npy.Header{Type: dtype.Float32, Shape: s.cfg.Tile[1:]}); err != nil {
		return err
	}
	_, err := w.Write(dtype.Bytes(v))
	return err
}

// WritePositions writes the true positions (y, x) of all tiles in px, shape (slice, i, j, 2), as float64
// .npy.
func (s *Specimen) WritePositions(w io.Writer) error {
	n := s.cfg.Tiles
	if err := npy.WriteHeader(w, npy.Header{Type: dtype.Float64, Shape: []int{s.cfg.Slices, n[0], n[1], 2}}); err != nil {
		return err
	}
	for slice := range s.cfg.Slices {
		for i := range n[0] {
			for j := range n[1] {
				p := s.TilePosition(slice, i, j)
				if _, err := w.Write(dtype.Bytes(p[:])); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// WriteRecorded writes the recorded positions of the tiles of a slice for stitch --positions: the true
// positions with an error along each axis.
func (s *Specimen) WriteRecorded(w io.Writer, slice int) error {
	n := s.cfg.Tiles
	p := registration.TilePositions{Grid: n}
	for i := range n[0] {
		for j := range n[1] {
			p.Tiles = append(p.Tiles, registration.TilePosition{Tile: [2]int{i, j}, Position: s.recorded(slice, i, j)})
		}
	}
	return p.Write(w)
}

// WriteSurface writes the depth in voxels at which the tissue begins in every
// A-line of a slice's mosaic, curvature included, shape (y, x) of the mosaic, as
// float32 .npy.
func (s *Specimen) WriteSurface(w io.Writer, slice int) error {
	shape := s.cfg.Shape()
	if err := npy.WriteHeader(w, npy.Header{Type: dtype.Float32, Shape: shape[1:]}); err != nil {
		return err
	}
	row := make([]float32, shape[2])
	for y := range shape[1] {
		i, ty := y/s.cfg.Tile[1], y%s.cfg.Tile[1]
		for j := range s.cfg.Tiles[1] {
			p := s.TilePosition(slice, i, j)
			alines := s.row(slice, p[0]+float64(ty), p[1])
			for tx := range s.TileExtent(i, j)[1] {
				ay, ax := alines.at(tx)
				d := s.Surface(slice, ay, ax) + float64(s.bowl[ty*s.cfg.Tile[2]+tx])
				row[j*s.cfg.Tile[2]+tx] = float32(d)
			}
		}
		if _, err := w.Write(dtype.Bytes(row)); err != nil {
			return err
		}
	}
	return nil
}

// recorded returns where the stage recorded a tile, in µm.
func (s *Specimen) recorded(slice, i, j int) [2]float64 {
	at := s.TilePosition(slice, i, j)
	for d := range at {
		at[d] = at[d]*s.cfg.Voxel[1+d] + s.cfg.Stage*normal(s.seed(seedStage, 2*slice+d), i*s.cfg.Tiles[1]+j)
	}
	return at
}
