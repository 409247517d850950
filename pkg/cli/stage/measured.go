package stage

import (
	"context"

	"strata/pkg/cli"
	"strata/pkg/cli/datasets"
	"strata/pkg/cli/zarrout"
	"strata/pkg/metrics"
	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/zarr/store"
)

// Measured is a stage from the argument IN to the argument OUT that writes metrics beside OUT.
type Measured struct {
	Name   string // of its progress
	Passes int64  // how often it reads IN
	OnGPU  bool   // it can use a GPU, and package cost knows it by its name
	// Run does the work. paths are IN and OUT as metrics name them. It returns the image, its metrics, and what the closing line says of it.
	Run func(in *ngff.Image, out store.Writer, paths [2]string, res oct.Resources) (*ngff.Image, *metrics.Step, string, error)
}

// Do opens IN, creates OUT and the file of metrics, and runs the stage.
func (m Measured) Do(ctx context.Context, r *cli.Run) error {
	in, err := Open(ctx, r, r.Arg("IN"))
	if err != nil {
		return err
	}
	out, err := zarrout.Create(ctx, r, r.Arg("OUT"))
	if err != nil {
		return err
	}
	file, err := Metrics(r, r.Arg("OUT"))
	if err != nil {
		return err
	}
	task := r.Progress(m.Name, m.Passes*datasets.Bytes(in.Levels[0].Array))
	res := Resources(r, task)
	if m.OnGPU {
		if res, err = ResourcesOnGPU(ctx, r, task, Of(m.Name, in)); err != nil {
			return err
		}
	}
	image, step, said, err := m.Run(in, out.Store, [2]string{Shown(r.Arg("IN")), Shown(r.Arg("OUT"))}, res)
	if err != nil {
		return Failed(err)
	}
	if err := WriteMetrics(r, file, step); err != nil {
		return err
	}
	task.Done()
	r.Conclude("%s", said)
	Describe(r, in, r.Arg("IN"), image, out.Path())
	return nil
}
