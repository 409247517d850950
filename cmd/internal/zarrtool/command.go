// Package zarrtool is the command zarr-tool, which looks at, converts and validates Zarr and OME-Zarr.
package zarrtool

import (
	"context"
	"errors"

	"strata/pkg/cli"
	"strata/pkg/zarr"
	"strata/pkg/zarr/store"
)

// Command is zarr-tool.
func Command() *cli.Command {
	return &cli.Command{
		Name:  "zarr-tool",
		Usage: "look at, convert and validate Zarr v2 and v3 and OME-Zarr 0.4 and 0.5",
		Commands: []*cli.Command{
			infoCommand(), catCommand(), importCommand(), reencodeCommand(), omeCommand(), validateCommand(),
		},
	}
}

// node is an opened array or group and what has to be closed after it.
type node struct {
	zarr.Node
	store store.Store
	key   string
	path  string // as the user named it
}

// openNode opens what the user named for reading. Errors are the input's fault
// unless the machine's.
func openNode(ctx context.Context, r *cli.Run, path string, opts ...zarr.Option) (*node, error) {
	path, err := r.Image(path)
	if err != nil {
		return nil, err
	}
	st, key, err := store.OpenURL(ctx, path, store.Settings(r.Options.HTTP))
	if err != nil {
		return nil, cli.BadInput(err)
	}
	if _, far := st.(store.Distant); far {
		r.ReadsFar()
	}
	opts = append([]zarr.Option{zarr.Workers(r.Options.Threads), zarr.Budget(r.Options.Mem / 2), zarr.Meter(r.Meter)}, opts...)
	n, err := zarr.Open(ctx, st, key, opts...)
	if err != nil {
		return nil, cli.BadInput(errors.Join(err, st.Close()))
	}
	return &node{Node: n, store: st, key: key, path: path}, nil
}

// openArray opens what the user named, which must be an array.
func openArray(ctx context.Context, r *cli.Run, path string, opts ...zarr.Option) (*zarr.Array, error) {
	n, err := openNode(ctx, r, path, opts...)
	if err != nil {
		return nil, err
	}
	a, ok := n.Node.(*zarr.Array)
	if !ok {
		return nil, cli.BadInputf("%s: is a group: name one of its arrays (zarr-tool info lists them)", path)
	}
	return a, nil
}
