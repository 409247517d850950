package stage

import (
	"context"
	"encoding/json"
	"io"

	"strata/pkg/address"
	"strata/pkg/atomic"
	"strata/pkg/cli"
	"strata/pkg/metrics"
	"strata/pkg/runrecord"
	"strata/pkg/smallfile"
)

// ReadFile reads a small file that an argument or a flag names, and notes it as an input of the run. What is
// wrong with it is the input's fault; messages call it name.
func ReadFile[T any](ctx context.Context, r *cli.Run, name string, read func(f io.Reader, name string) (T, error)) (t T, err error) {
	path, err := r.LocalInput(name)
	if err != nil {
		return t, err
	}
	f, err := smallfile.Open(ctx, path)
	if err != nil {
		return t, cli.BadInput(err)
	}
	defer f.Close()
	r.Read(runrecord.Dataset{Path: address.Address(name)})
	t, err = read(f, name)
	return t, cli.BadInput(err)
}

// WriteFile writes a plain file that is an output of the run, and notes it in the record.
func WriteFile(r *cli.Run, path string, write func(w io.Writer) error) error {
	out, err := r.OutputFile(path)
	if err != nil {
		return err
	}
	return FillFile(r, out, write)
}

// FillFile is [WriteFile] of an output that was begun before the work.
func FillFile(r *cli.Run, out *atomic.Output, write func(w io.Writer) error) error {
	if err := out.Write(write); err != nil {
		return err
	}
	r.Wrote(runrecord.Dataset{Path: address.Address(out.Path())})
	return nil
}

// JSON returns a function that writes a value as indented JSON.
func JSON(v any) func(w io.Writer) error {
	return func(w io.Writer) error {
		e := json.NewEncoder(w)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		return e.Encode(v)
	}
}

// MetricsJSON returns a function that writes the metrics of a step.
func MetricsJSON(s *metrics.Step) func(w io.Writer) error {
	return func(w io.Writer) error {
		text, err := s.JSON()
		if err != nil {
			return err
		}
		_, err = w.Write(text)
		return err
	}
}
