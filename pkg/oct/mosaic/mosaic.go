// Package mosaic makes mosaic grids of raw tiles. It is the pipeline's first stage: [Open] checks the tiles of a slice
// and says what they will become, and [Mosaic.Write] does it.
package mosaic

import (
	"context"
	"fmt"
	"math"
	"strings"

	"strata/pkg/oct"
	"strata/pkg/rawtiles"
)

// Options says how a mosaic grid is made.
type Options struct {
	// Resolution is the voxel size of the output along all axes in µm. 0 keeps the voxels of the tiles.
	Resolution float64
	// Axial is the distance of samples of an A-line in µm. 0: as the tiles state it, or else DefaultAxial.
	Axial float64
	// Corner samples a tile from its first voxel to its last, and states Resolution as the voxel size, as linumpy does.
	Corner bool
	// KeepReturn keeps the A-lines of the mirror's way back, and all frames.
	KeepReturn bool
	// Galvo rolls the A-lines of all tiles so that the mirror's way back comes last, if its place is found with at
	// least the confidence GalvoThreshold.
	Galvo          bool
	GalvoThreshold float64
	// Camera rolls the A-lines of each tile so that its brightest comes first.
	Camera bool
	// Legacy exchanges x and y and reverses both, as old data need it.
	Legacy bool
	// Sharding is the number of tiles along y and x in a shard; up to 1: no shards.
	Sharding int
	// Whole stores a tile as one chunk, however large it is, as linumpy's programs need it.
	Whole bool
}

// DefaultAxial is the distance of samples in µm that is assumed if nothing states it.
const DefaultAxial = 3.5

// Mosaic is a slice whose tiles have been checked.
type Mosaic struct {
	Slice rawtiles.Slice
	Grid  *rawtiles.Grid
	Infos []rawtiles.Info // of the tiles
	// Places, Shape, Tile and Voxel describe the mosaic grid: tiles (y, x), voxels (z, y, x), voxels of a tile, and
	// their size in µm.
	Places      [2]int
	Shape, Tile [3]int
	Voxel       [3]float64
	Warnings    []string

	how Options
	// frames, A-lines and samples of a tile, as read for the image, and as they become
	before, after [3]int
	translation   [3]float64 // µm (z, y, x)
}

// Name returns the name of the mosaic grid of a slice, without its suffix.
func Name(slice int) string { return fmt.Sprintf("mosaic_grid_3d_z%02d", slice) }

// Open reads the settings of a slice's tiles. Tiles that differ, two at one place, or whose files are not as their
// settings say, are errors that wrap [oct.ErrInput]. Places without a tile are a warning.
func Open(ctx context.Context, s rawtiles.Slice, how Options) (*Mosaic, error) {
	m := &Mosaic{Slice: s, how: how}
	var err error
	if m.Grid, err = s.Grid(); err != nil {
		return nil, oct.InputFault(err)
	}
	surplus, first := 0, ""
	for k, t := range s.Tiles {
		info, err := t.Info(ctx)
		if err != nil {
			return nil, oct.InputFault(err)
		}
		m.Infos = append(m.Infos, info)
		f, err := t.Open(ctx, info, nil)
		if err != nil {
			return nil, oct.InputFault(err)
		}
		frames := info.NY
		if n := f.Len() / info.Repeat; how.KeepReturn {
			frames = n
		} else if n > frames {
			if surplus++; first == "" {
				first = fmt.Sprintf("%s: %d, ny is %d", t.Name(), n, info.NY)
			}
		}
		if k == 0 {
			m.before[0] = frames
		}
		if err := m.same(k, frames); err != nil {
			return nil, err
		}
	}
	m.before[1], m.before[2] = m.Infos[0].NX, m.Infos[0].Depth
	if how.KeepReturn {
		m.before[1] = m.Infos[0].Lines()
	}
	if surplus > 0 {
		m.warnf("slice %02d: %d of %d tiles have more frames than their ny, which are left out (first %s)", s.ID, surplus, len(s.Tiles), first)
	}
	m.warnMissing()
	return m, m.regrid()
}

func (m *Mosaic) warnf(format string, args ...any) {
	m.Warnings = append(m.Warnings, fmt.Sprintf(format, args...))
}

// mostNamed limits the missing tiles that a warning names.
const mostNamed = 8

func (m *Mosaic) warnMissing() {
	names, n := m.Grid.Missing(m.Slice.ID, mostNamed)
	if n == 0 {
		return
	}
	more := ""
	if n > len(names) {
		more = fmt.Sprintf(" and %d more", n-len(names))
	}
	m.warnf("slice %02d: %d of %d places have no tile and become 0: %s%s", m.Slice.ID, n, len(m.Grid.Tiles), strings.Join(names, ", "), more)
}

// same compares the settings of tile k with those of the first.
func (m *Mosaic) same(k, frames int) error {
	a, b := m.Infos[0], m.Infos[k]
	for _, c := range []struct {
		key          string
		value, first float64
	}{
		{"nx", float64(b.NX), float64(a.NX)}, {"ny", float64(b.NY), float64(a.NY)}, {"n_extra", float64(b.Extra), float64(a.Extra)},
		{"n_repeat", float64(b.Repeat), float64(a.Repeat)}, {"depth (bottom_z − top_z + 1)", float64(b.Depth), float64(a.Depth)},
		{"width", b.Width, a.Width}, {"height", b.Height, a.Height}, {"axial resolution", b.Axial, a.Axial}, {"number of frames", float64(frames), float64(m.before[0])},
	} {
		if c.value != c.first {
			return oct.BadInput("%s: %s is %v, but %v in %s: tiles of a slice must be alike", m.Slice.Tiles[k].Path, c.key, c.value, c.first, m.Slice.Tiles[0].Path)
		}
	}
	return nil
}

// regrid computes what the tiles become.
func (m *Mosaic) regrid() error {
	i := &m.Infos[0]
	x, y := i.Voxel()
	voxel := [3]float64{y, x, m.how.Axial}
	if voxel[2] == 0 {
		if voxel[2] = i.Axial; voxel[2] == 0 {
			voxel[2] = DefaultAxial
		}
	}
	m.after = m.before
	var size, move [3]float64
	for d, n := range m.before {
		size[d] = voxel[d]
		if m.how.Resolution <= 0 {
			continue
		}
		// a whole number in all but the last digits is that number
		scaled := max(1, math.Floor(float64(float64(n)*(voxel[d]/m.how.Resolution))+1e-9))
		if scaled > 1<<40 {
			return oct.LayoutErrorf("--resolution %v µm makes tiles of %.3g voxels of %d: is it meant to be in µm?", m.how.Resolution, scaled, n)
		}
		m.after[d] = int(scaled)
		if size[d] = m.how.Resolution; !m.how.Corner {
			size[d] = float64(voxel[d] * (float64(n) / scaled))
			move[d] = 0.5 * (size[d] - voxel[d])
		}
	}
	// z is the last of the files' axes; A-lines are y, or x in legacy data
	order := [3]int{2, 1, 0}
	m.Places = m.Grid.Size
	if m.how.Legacy {
		order = [3]int{2, 0, 1}
		m.Places = [2]int{m.Grid.Size[1], m.Grid.Size[0]}
	}
	bytes, before := 4.0, 4.0
	for d, from := range order {
		m.Tile[d], m.Voxel[d], m.translation[d] = m.after[from], size[from], move[from]
		m.Shape[d] = m.Tile[d]
		bytes, before = bytes*float64(m.after[from]), before*float64(m.before[from])
	}
	for d, n := range m.Places {
		m.Shape[1+d] = n * m.Tile[1+d]
		bytes, before = bytes*float64(n), before*float64(n)
	}
	if bytes > oct.VastBytes && bytes > 8*before || bytes > math.MaxInt64/64 {
		return oct.LayoutErrorf("slice %02d becomes an image of %.3g × %.3g × %.3g voxels, %.1f TiB, %.0f times that of its tiles: is --resolution %v meant to be in µm?",
			m.Slice.ID, float64(m.Tile[0]), float64(m.Places[0])*float64(m.Tile[1]), float64(m.Places[1])*float64(m.Tile[2]), bytes/oct.VastBytes, bytes/before, m.how.Resolution)
	}
	return nil
}

// Bytes returns the size of the frames that the mosaic is made of, as stored.
func (m *Mosaic) Bytes() int64 { return int64(len(m.Infos)) * m.tileBytes() }

// tileBytes returns the size of the frames of a tile that are read.
func (m *Mosaic) tileBytes() int64 {
	i := &m.Infos[0]
	return 4 * int64(m.before[0]) * int64(i.Repeat) * int64(i.Lines()) * int64(i.Depth)
}
