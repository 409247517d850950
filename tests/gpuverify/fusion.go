package main

import (
	"fmt"

	"strata/pkg/dtype"
	"strata/pkg/gpu"
	"strata/pkg/gpu/kernels"
)

// measureFusion measures fusing tiles: a tile of planes of ny × nx pixels in a is added to columns of 64 × 64 in
// b, alone, and blended with running means (in c, unless they are kept in b) without being the last tile.
func measureFusion(s *gpu.Stream, run func(name string, moved int64, f func() error) error, a, b, c gpu.Span, kind dtype.Type, ny, nx int) error {
	const side, box = 64, 64 * 64
	size, n := int64(kind.Size()), (ny/side)*(nx/side)
	planes := min(a.Bytes(), b.Bytes()) / (size * int64(ny*nx))
	inPlace := kernels.FuseType(kind) == kind
	if !inPlace {
		planes = min(planes, c.Bytes()/int64(4*ny*nx))
	}
	voxels := planes * int64(ny*nx)
	sums, err := s.Device().Memory().Get(int64(8 * ny * nx))
	if err != nil {
		return err
	}
	defer sums.Release()
	host, err := s.Device().Host(n * kernels.CellBytes)
	if err != nil {
		return err
	}
	defer host.Release()
	table, err := s.Device().Memory().Get(int64(n * kernels.CellBytes))
	if err != nil {
		return err
	}
	defer table.Release()
	s.Zero(sums.Span)
	tile := kernels.Tile{At: a, Type: kind, Planes: int(planes), NY: ny, NX: nx}
	for _, m := range []struct {
		name  string
		do    kernels.CellWork
		moved int64
	}{
		{"fuse_alone", kernels.CellCopy, 2 * size * voxels},
		{"fuse_blend", kernels.CellSample | kernels.CellBlend, (size + 8) * voxels},
	} {
		for i := range n {
			at := int64(i) * box * planes
			cell := kernels.Cell{
				Voxels: b.From(at*size, box*planes*size), Pitch: side, Stride: box,
				Y: i / (nx / side) * side, X: i % (nx / side) * side, NY: side, NX: side, Do: m.do,
			}
			if m.do != kernels.CellCopy {
				cell.Mean, cell.MeanPitch, cell.MeanStride = cell.Voxels, side, box
				if !inPlace {
					cell.Mean = c.From(at*4, box*planes*4)
				}
				cell.Before, cell.After = sums.From(int64(4*i*box), 4*box), sums.From(int64(4*(n+i)*box), 4*box)
			}
			kernels.PutCell(host.B, i, &cell)
		}
		s.Upload(table.Span, host.B)
		if err := s.Wait(); err != nil {
			return err
		}
		if err := run(fmt.Sprintf("%s_%v", m.name, kind), m.moved, func() error {
			return kernels.Fuse(s, tile, table.Span, n, box, gpu.Span{}, false)
		}); err != nil {
			return err
		}
	}
	return nil
}
