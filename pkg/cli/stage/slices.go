package stage

import (
	"context"

	"strata/pkg/cli"
	"strata/pkg/cli/datasets"
	"strata/pkg/ngff"
	"strata/pkg/oct/slicefiles"
	"strata/pkg/rawtiles"
	"strata/pkg/zarr/store"
)

// A Slice is a slice of a folder.
type Slice struct {
	slicefiles.File
	Image *ngff.Image
	Err   error // why it cannot be opened
}

// OpenSlices opens the slices of a folder or a bucket, slice_z<NN>*.ome.zarr, ordered by number, and enters them into
// the run record. With skip, a slice that cannot be opened is listed with its error.
func OpenSlices(ctx context.Context, r *cli.Run, folder string, skip bool) ([]Slice, error) {
	dir, err := r.Input(folder)
	if err != nil {
		return nil, err
	}
	files, err := slicefiles.Find(ctx, dir, store.Settings(r.Options.HTTP))
	if err != nil {
		return nil, Failed(err)
	}
	var all []Slice
	for _, f := range files {
		s := Slice{File: f}
		if s.Image, s.Err = Open(ctx, r, f.Path); s.Err == nil {
			r.Read(datasets.DescribeImage(s.Image, f.Path))
		} else if !skip || ctx.Err() != nil {
			return nil, s.Err
		}
		all = append(all, s)
	}
	return all, nil
}

// RawTiles returns the slices whose raw tiles lie below a folder that an argument or a flag names, and the folder's
// path.
func RawTiles(ctx context.Context, r *cli.Run, name string) ([]rawtiles.Slice, string, error) {
	dir, err := r.LocalInput(name)
	if err != nil {
		return nil, "", err
	}
	all, err := rawtiles.Find(ctx, dir)
	return all, dir, cli.BadInput(err)
}
