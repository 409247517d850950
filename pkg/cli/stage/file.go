package stage

import (
	"context"
	"encoding/json"
	"io"
	"path/filepath"

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

// Metrics starts the metrics file of an output. The file is put in place together with the output. For an output in a
// bucket, it warns that no metrics are written and returns nil.
func Metrics(r *cli.Run, out string) (*atomic.Output, error) {
	if cli.InBucket(out) {
		r.Warn("no metrics are written beside an output in a bucket")
		return nil, nil
	}
	return r.OutputFile(metrics.FileName(out))
}

// WriteMetrics writes the metrics of a step to a file that [Metrics] started, and warns of what they judge as bad.
func WriteMetrics(r *cli.Run, file *atomic.Output, s *metrics.Step) error {
	for _, w := range append(s.Errors, s.Warnings...) {
		r.Warn("%s", w)
	}
	if file == nil {
		return nil
	}
	return file.Write(MetricsJSON(s))
}

// Shown returns a path as metrics name it, without secrets of an address.
func Shown(path string) string { return address.Address(path).String() }

// Stem returns the path of an output without .ome.zarr, .zarr or another extension. The names of files beside the
// output begin with it.
func Stem(out string) string { return cli.Stem(filepath.Clean(out)) }
