// Package zarrtool implements the command zarr-tool, which inspects, converts and validates Zarr and OME-Zarr.
package zarrtool

import (
	"context"
	"errors"

	"strata/pkg/cli"
	"strata/pkg/images"
	"strata/pkg/zarr"
	"strata/pkg/zarr/store"
)

// Command returns the command zarr-tool.
func Command() *cli.Command {
	return &cli.Command{
		Name:  "zarr-tool",
		Usage: "inspect, convert and validate Zarr v2 and v3, OME-Zarr 0.4 and 0.5, TIFF and CZI",
		Commands: []*cli.Command{
			infoCommand(), catCommand(), importCommand(), exportCommand(), reencodeCommand(), omeCommand(), clipCommand(), maskCommand(), validateCommand(),
		},
		Aliases: []cli.Alias{
			{Name: "linum-extract-pyramid-levels", Command: "export", Args: []cli.Arg{
				{Name: "IN", Usage: "OME-Zarr image, beside which the files are written"},
				{Name: "LEVEL", Usage: "pyramid level to write, 0 for the finest; none with --list", Optional: true, Many: true},
			}, Defaults: cli.Defaults{"orientation": "LPS", "overwrite": "true"}},
			{Name: "linum-clip-percentile", Command: "clip", Defaults: cli.Defaults{"dtype": "float32", "overwrite": "true"}},
			{Name: "linum-axis-xyz-to-zyx", Command: "export", Defaults: cli.Defaults{"axes": "zyx", "overwrite": "true"}, Ignored: []cli.Flag{
				{Name: "resolution_xy", Kind: cli.Float, Ignored: "the voxel size is IN's: zarr-tool ome --scale states another"},
				{Name: "resolution_z", Kind: cli.Float, Ignored: "the voxel size is IN's: zarr-tool ome --scale states another"},
			}},
			{Name: "linum-segment-brain-3d", Command: "mask", Defaults: cli.Defaults{"level": "0", "smoothing": "0", "largest": "false", "fill": "planes", "median": "5", "overwrite": "true"},
				Flags: map[string]string{"median_size": "median"}},
		},
	}
}

// node is an opened array or group, with what must be closed after it.
type node struct {
	zarr.Node
	store store.Store
	key   string
	path  string // as the user named it
}

// openNode opens what the user named for reading, and records chunks that are not stored in missing, unless it is
// nil. Errors count as bad input unless the machine caused them.
func openNode(ctx context.Context, r *cli.Run, path string, missing *zarr.Missing) (*node, error) {
	return openBelow(ctx, r, path, "", missing)
}

// openBelow opens the node at a key below what the user named.
func openBelow(ctx context.Context, r *cli.Run, path, below string, missing *zarr.Missing) (*node, error) {
	path, err := r.Image(path)
	if err != nil {
		return nil, err
	}
	st, key, err := images.Open(ctx, path, store.Settings(r.Options.HTTP))
	if err != nil {
		return nil, cli.BadInput(err)
	}
	return nodeIn(ctx, r, path, st, store.Join(key, below), missing)
}

// nodeIn returns the node at a key of the store that was opened for path.
func nodeIn(ctx context.Context, r *cli.Run, path string, st store.Store, key string, missing *zarr.Missing) (*node, error) {
	r.ReadsFrom(st)
	for _, w := range images.Warnings(st) {
		r.Warn("%s", w)
	}
	opts := readOptions(r)
	if missing != nil && !images.Sparse(st) {
		opts = append(opts, zarr.NoteMissing(missing))
	}
	n, err := zarr.Open(ctx, st, key, opts...)
	if err != nil {
		return nil, cli.BadInput(errors.Join(err, st.Close()))
	}
	return &node{Node: n, store: st, key: key, path: path}, nil
}

// readOptions returns the options with which arrays are read.
func readOptions(r *cli.Run) []zarr.Option {
	return []zarr.Option{zarr.Workers(r.Options.Threads), zarr.Budget(r.Options.Mem / 2), zarr.Meter(r.Meter)}
}

// openArray opens the array that the user named, or at a key below that.
func openArray(ctx context.Context, r *cli.Run, path, below string, missing *zarr.Missing) (*zarr.Array, error) {
	n, err := openBelow(ctx, r, path, below, missing)
	if err != nil {
		return nil, err
	}
	a, ok := n.Node.(*zarr.Array)
	if !ok {
		return nil, cli.BadInputf("%s: is a group: name one of its arrays (zarr-tool info lists them)", path)
	}
	return a, nil
}
