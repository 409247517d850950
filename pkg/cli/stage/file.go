package stage

import (
	"context"
	"io"

	"strata/pkg/address"
	"strata/pkg/cli"
	"strata/pkg/document"
	"strata/pkg/record"
)

// ReadFile reads a small file that an argument or a flag names, and notes it as an input of the run. What is
// wrong with it is the input's fault; messages call it name.
func ReadFile[T any](ctx context.Context, r *cli.Run, name string, read func(f io.Reader, name string) (T, error)) (t T, err error) {
	path, err := r.LocalInput(name)
	if err != nil {
		return t, err
	}
	f, err := document.Open(ctx, path)
	if err != nil {
		return t, cli.BadInput(err)
	}
	defer f.Close()
	r.Read(record.Dataset{Path: address.Address(name)})
	t, err = read(f, name)
	return t, cli.BadInput(err)
}
