// Package czitiles describes the tiles of a CZI file as a scan, which package tilegrid writes as a mosaic grid.
package czitiles

import (
	"context"
	"fmt"
	"image"

	"strata/pkg/czi"
	"strata/pkg/dtype"
	"strata/pkg/mem"
	"strata/pkg/tilegrid"
)

// tileKey holds what the sub-blocks of a tile share; in files without mosaic indexes, their place.
type tileKey struct {
	scene, m int
	at       image.Point
}

// tiles finds the sub-blocks of a scene's tiles.
type tiles struct {
	f              *czi.File
	number         map[tileKey]int
	first          []int   // sub-block of each tile
	blocks         []int32 // by tile, time, channel, depth; −1: there is none
	channels       []int
	z0, t0, nz, nt int
	pixels         czi.PixelType
	width, height  int
}

// Of returns the tiles of a scene, or of [czi.AllScenes], as a scan. Positions are those of the tiles' first
// pixels in the directory. All tiles must have one size and type. A voxel size missing in the file becomes 1
// µm. The scan reads from f.
func Of(ctx context.Context, f *czi.File, scene int) (*tilegrid.Scan, error) {
	meta, err := f.Metadata(ctx)
	if err != nil {
		return nil, err
	}
	t := &tiles{f: f, number: map[tileKey]int{}, channels: f.Channels()}
	if err := t.find(scene); err != nil {
		return nil, err
	}
	s := &tilegrid.Scan{Name: meta.Name, Tile: [2]int{t.height, t.width}, Voxel: meta.VoxelUM, DType: t.pixels.Elem()}
	for d, v := range s.Voxel {
		if !(v > 0) {
			s.Voxel[d] = 1
		}
	}
	if samples := t.pixels.Samples(); len(t.channels) > 1 || samples > 1 {
		s.Channels, s.Together = len(t.channels)*samples, samples
	}
	if t.nt > 1 {
		s.Times = t.nt
	}
	if t.nz > 1 {
		s.Planes = t.nz
	}
	for _, i := range t.first {
		at := f.SubBlock(i).Rect.Min
		s.Positions = append(s.Positions, [2]float64{float64(at.Y) * s.Voxel[1], float64(at.X) * s.Voxel[2]})
	}
	s.Read = t.read
	return s, nil
}

// find numbers the tiles and their sub-blocks.
func (t *tiles) find(scene int) error {
	var list []int
	for i := range t.f.Len() {
		sb := t.f.SubBlock(i)
		if !sb.Level0() || scene != czi.AllScenes && sb.S != scene || sb.Plane() != t.f.Plane(sb.C, sb.Z, sb.T) {
			continue
		}
		if len(list) == 0 {
			t.pixels, t.width, t.height = sb.Pixels, sb.StoredWidth, sb.StoredHeight
		}
		if sb.Pixels != t.pixels || sb.StoredWidth != t.width || sb.StoredHeight != t.height {
			return fmt.Errorf("%s: sub-block %d is %d × %d pixels of %s, the first tile %d × %d of %s: a mosaic grid has tiles of one kind",
				t.f.Name, i, sb.StoredWidth, sb.StoredHeight, sb.Pixels, t.width, t.height, t.pixels)
		}
		key := keyOf(sb)
		if _, ok := t.number[key]; !ok {
			t.number[key] = len(t.first)
			t.first = append(t.first, i)
		}
		list = append(list, i)
	}
	if len(list) == 0 {
		return fmt.Errorf("%s: there are no tiles of full resolution", t.f.Name)
	}
	z0, z1, _ := t.f.Dimension('Z')
	t0, t1, _ := t.f.Dimension('T')
	t.z0, t.nz, t.t0, t.nt = z0, max(z1-z0, 1), t0, max(t1-t0, 1)
	n := mem.Product(len(t.first), t.nt, len(t.channels), t.nz)
	if most := 64*len(list) + 1<<16; n > most {
		return fmt.Errorf("%s: %d sub-blocks for %d tiles, %d times, %d channels and %d planes", t.f.Name, len(list), len(t.first), t.nt, len(t.channels), t.nz)
	}
	t.blocks = make([]int32, n)
	for k := range t.blocks {
		t.blocks[k] = -1
	}
	channel := map[int]int{}
	for k, c := range t.channels {
		channel[c] = k
	}
	for _, i := range list { // of several the last, which lies on top
		sb := t.f.SubBlock(i)
		t.blocks[t.index(t.number[keyOf(sb)], sb.T-t.t0, channel[sb.C], sb.Z-t.z0)] = int32(i)
	}
	return nil
}

func keyOf(sb czi.SubBlock) tileKey {
	if sb.Has('M') {
		return tileKey{scene: sb.S, m: sb.M}
	}
	return tileKey{scene: sb.S, at: sb.Rect.Min}
}

func (t *tiles) index(tile, time, channel, z int) int {
	return ((tile*t.nt+time)*len(t.channels)+channel)*t.nz + z
}

// read reads a plane of a tile, colours as channels red, green, blue. What the file does not have is 0.
func (t *tiles) read(ctx context.Context, tile, time, c, z int, dst []byte) error {
	samples := t.pixels.Samples()
	i := t.blocks[t.index(tile, time, c/samples, z)]
	if i < 0 {
		clear(dst)
		return nil
	}
	if samples == 1 {
		return t.f.ReadSubBlock(ctx, int(i), dst)
	}
	b, err := mem.Alloc(len(dst))
	if err != nil {
		return err
	}
	defer mem.Free(b)
	if err := t.f.ReadSubBlock(ctx, int(i), b); err != nil {
		return err
	}
	switch t.pixels.Elem().Size() {
	case 1:
		spread(dst, b, samples)
	case 2:
		spread(dtype.Slice[uint16](dst), dtype.Slice[uint16](b), samples)
	default:
		spread(dtype.Slice[uint32](dst), dtype.Slice[uint32](b), samples)
	}
	return nil
}

// spread takes the colours of pixels apart: planes of red, green, blue and, of four, opacity.
func spread[T uint8 | uint16 | uint32](dst, src []T, samples int) {
	n := len(dst) / samples
	for k, from := range []int{2, 1, 0, 3}[:samples] {
		plane := dst[k*n:][:n]
		for i := range plane {
			plane[i] = src[i*samples+from]
		}
	}
}
