package oct

import (
	"math"
	"slices"

	"strata/pkg/dtype"
	"strata/pkg/ngff"
	"strata/pkg/registration"
	"strata/pkg/tilegrid"
)

// A Mosaic is a mosaic grid: an image whose chunk grid along Y and X is the grid of microscope tiles (stages
// specification, "Mosaic grid").
type Mosaic struct {
	Image *ngff.Image
	Shape [3]int // (z, y, x)
	Chunk [3]int // inner chunk; along Y and X the tile
	DType dtype.Type
	Where string
	Frames
	Recorded [][2]float64 // position (y, x) of each tile's first voxel in px, as recorded by the microscope's stage; nil: nominal
	Absent   []bool       // tiles without a recorded position
}

// OpenMosaic returns the mosaic grid of an image with axes z, y and x. Errors wrap [ErrInput].
func OpenMosaic(in *ngff.Image) (*Mosaic, error) {
	a := in.Levels[0].Array
	if n := len(a.Shape()); n != 3 {
		return nil, BadInput("%s: mosaic grid has %d axes, want 3 (z, y, x)", a.Location(), n)
	}
	for d, axis := range in.Axes {
		if axis.Name != string("zyx"[d]) {
			return nil, BadInput("%s: axis %d of the mosaic grid is %q, want z, y, x in this order", a.Location(), d, axis.Name)
		}
	}
	return newMosaic(in, Frames{})
}

// newMosaic returns the mosaic grid that shows a frame of an image.
func newMosaic(in *ngff.Image, f Frames) (*Mosaic, error) {
	a := in.Levels[0].Array
	m := &Mosaic{Image: in, DType: a.DType(), Where: a.Location(), Frames: f, Shape: [3]int{1, 1, 1}, Chunk: [3]int{1, 1, 1}}
	shape, lead := a.Shape(), len(f.Lengths)
	space := m.Shape[3-len(shape)+lead:]
	copy(space, shape[lead:])
	copy(m.Chunk[3-len(space):], a.Chunks()[lead:])
	size := float64(m.DType.Size())
	for _, n := range shape {
		if n == 0 {
			return nil, BadInput("%s: mosaic grid is empty: shape %v", m.Where, shape)
		}
		if size *= float64(n); size > math.MaxInt64 {
			return nil, BadInput("%s: mosaic grid of shape %v has more bytes than can be counted", m.Where, shape)
		}
	}
	for d, n := range m.Shape {
		m.Chunk[d] = min(m.Chunk[d], n)
	}
	if err := Computable(m.DType, m.Where); err != nil {
		return nil, err
	}
	return m, nil
}

// Computable returns an error for element types that the stages do not support; where names the array.
func Computable(t dtype.Type, where string) error {
	if !t.IsNumber() || t == dtype.Float16 {
		return BadInput("%s: data type %v: want integers of up to 64 bits, float32 or float64", where, t)
	}
	return nil
}

// Tiles returns the number of tiles along y and x, including partial ones.
func (m *Mosaic) Tiles() (ny, nx int) {
	return (m.Shape[1] + m.Chunk[1] - 1) / m.Chunk[1], (m.Shape[2] + m.Chunk[2] - 1) / m.Chunk[2]
}

// Format returns the Zarr format of the mosaic.
func (m *Mosaic) Format() int { return m.Image.Levels[0].Array.Format() }

// Axes returns the mosaic's axes with their stated or assumed units.
func (m *Mosaic) Axes() []ngff.Axis { return ImageAxes(m.Image) }

// ImageAxes returns an image's axes with their stated or assumed units.
func ImageAxes(im *ngff.Image) []ngff.Axis {
	axes := slices.Clone(im.Axes)
	for d := range axes {
		axes[d].Unit = im.Unit[d]
	}
	return axes
}

// ScanAttributes returns the attributes of an image that describe the scan of its tiles, such as their overlap, which a
// stage that keeps the tiles passes on; nil if there are none.
func ScanAttributes(im *ngff.Image) map[string]any {
	if overlap, ok := tilegrid.Overlap(im.Group.Attributes()); ok {
		return tilegrid.Attributes(overlap)
	}
	return nil
}

// Tile returns the shape (z, y, x) of a whole tile in its full depth.
func (m *Mosaic) Tile() []int { return []int{m.Shape[0], m.Chunk[1], m.Chunk[2]} }

// TileBytes returns the size of a whole tile in its full depth.
func (m *Mosaic) TileBytes() int64 {
	return int64(m.Shape[0]) * int64(m.Chunk[1]) * int64(m.Chunk[2]) * int64(m.DType.Size())
}

// Extent returns the rectangle of tile (i, j).
func (m *Mosaic) Extent(i, j int) Rectangle {
	y, x := i*m.Chunk[1], j*m.Chunk[2]
	return Rectangle{y, min(y+m.Chunk[1], m.Shape[1]), x, min(x+m.Chunk[2], m.Shape[2])}
}

// EachTile returns a function that returns the rectangles of the tiles, row by row, and then false.
func (m *Mosaic) EachTile() func() (Rectangle, bool) {
	ny, nx := m.Tiles()
	k := -1
	return func() (Rectangle, bool) {
		if k++; k >= ny*nx {
			return Rectangle{}, false
		}
		return m.Extent(k/nx, k%nx), true
	}
}

// farthest bounds recorded positions, in pixels.
const farthest = 1e12

// Record stores the positions of the tiles that the microscope's stage recorded. Tiles without a recorded position
// become Absent, with a warning unless the record states the grid.
func (m *Mosaic) Record(p *registration.TilePositions, res Resources) error {
	ny, nx := m.Tiles()
	if p.Grid != [2]int{} && p.Grid != [2]int{ny, nx} {
		return BadInput("%s: is of %d × %d tiles, %s has %d × %d", p.Name, p.Grid[0], p.Grid[1], m.Where, ny, nx)
	}
	voxel := [2]float64{1, 1}
	if !p.Pixels {
		voxel = m.Voxel()
		if voxel == [2]float64{} {
			return BadInput("%s: voxel size %v µm: %s has positions in micrometres, which need one", m.Where, m.Image.VoxelSize, p.Name)
		}
	}
	m.Recorded, m.Absent = make([][2]float64, ny*nx), make([]bool, ny*nx)
	for t := range m.Absent {
		m.Absent[t] = true
	}
	for _, t := range p.Tiles {
		if t.Tile[0] >= ny || t.Tile[1] >= nx {
			return BadInput("%s: there is no tile (%d, %d) in %s, which has %d × %d", p.Name, t.Tile[0], t.Tile[1], m.Where, ny, nx)
		}
		k := t.Tile[0]*nx + t.Tile[1]
		m.Absent[k] = false
		m.Recorded[k] = [2]float64{t.Position[0] / voxel[0], t.Position[1] / voxel[1]}
		if far := max(math.Abs(m.Recorded[k][0]), math.Abs(m.Recorded[k][1])); !(far <= farthest) {
			return BadInput("%s: tile (%d, %d) lies %.3g pixels away by voxels of %v µm in %s: wrong positions, or wrong voxel sizes", p.Name, t.Tile[0], t.Tile[1], far, voxel, m.Where)
		}
	}
	if left := ny*nx - len(p.Tiles); left > 0 && p.Grid == [2]int{} {
		res.Warnf("%s: has no position for %d of the %d tiles of %s: they are left out", p.Name, left, ny*nx, m.Where)
	}
	return nil
}

// Voxel returns the size (y, x) of a voxel in µm, or zero if the image states no valid one.
func (m *Mosaic) Voxel() [2]float64 {
	v := [2]float64(m.Image.VoxelSize[len(m.Image.VoxelSize)-2:])
	if !(min(v[0], v[1]) > 0 && max(v[0], v[1]) <= math.MaxFloat64) {
		return [2]float64{}
	}
	return v
}
