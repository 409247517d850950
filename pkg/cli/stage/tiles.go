package stage

import (
	"context"

	"strata/pkg/cli"
	"strata/pkg/rawtiles"
)

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
