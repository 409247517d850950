package stage

import (
	"strata/pkg/address"
	"strata/pkg/cli"
	"strata/pkg/images"
	"strata/pkg/ngff"
	"strata/pkg/oct"
)

// NoteTiles warns if a mosaic grid is a file of another format, such as TIFF: the tiles in which it is stored are taken
// for those of the microscope, which they rarely are.
func NoteTiles(r *cli.Run, path string, in *ngff.Image) {
	if !images.Sparse(in.Levels[0].Array.Store()) {
		return
	}
	m, err := oct.OpenMosaic(in)
	if err != nil {
		return // the stage says so
	}
	where := address.Address(path)
	if ny, nx := m.Tiles(); ny*nx > 1 {
		r.Warn("%s: its tiles of %d × %d pixels are how the file is stored, and are taken for %d rows and %d columns of the microscope's: zarr-tool import %s OUT --chunks Z,Y,X cuts tiles of another size",
			where, m.Chunk[1], m.Chunk[2], ny, nx, where)
	} else {
		r.Warn("%s: is taken for a mosaic grid of one tile: zarr-tool import %s OUT --chunks Z,Y,X cuts it into tiles, mosaic --pattern joins files with a tile each", where, where)
	}
}
