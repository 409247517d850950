package stage

import (
	"context"

	"strata/pkg/atomic"
	"strata/pkg/cli"
	"strata/pkg/metrics"
	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/zarr/store"
)

// Measured is a stage that reads the argument IN, writes the argument OUT, and writes metrics beside OUT.
type Measured struct {
	Name   string // of its progress
	Passes int64  // how often it reads IN
	OnGPU  bool   // it can use a GPU, and package cost knows it by its name
	// Run does the work. paths are IN and OUT as the metrics name them. It returns the image, its metrics, and the text
	// that the run's closing line adds.
	Run func(in *ngff.Image, out store.Writer, paths [2]string, res oct.Resources) (*ngff.Image, *metrics.Step, string, error)
}

// Do opens IN, creates OUT and the file of metrics, and runs the stage.
func (m Measured) Do(ctx context.Context, r *cli.Run) error {
	var file *atomic.Output
	var said string
	return Made{Name: m.Name, Passes: m.Passes, OnGPU: m.OnGPU,
		Outputs: func() (err error) {
			file, err = Metrics(r, r.Arg("OUT"))
			return err
		},
		Run: func(x Making) (image *ngff.Image, err error) {
			var step *metrics.Step
			if image, step, said, err = m.Run(x.In, x.Out, [2]string{Shown(r.Arg("IN")), Shown(r.Arg("OUT"))}, x.Res); err != nil {
				return nil, err
			}
			return image, WriteMetrics(r, file, step)
		},
		Said: func() string { return said },
	}.Do(ctx, r)
}
