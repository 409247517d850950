package stage

import (
	"cmp"
	"context"

	"strata/pkg/cli"
	"strata/pkg/cli/datasets"
	"strata/pkg/cli/zarrout"
	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/zarr/store"
)

// Made is a stage that reads the image of the argument IN and writes the image of the argument OUT.
type Made struct {
	Name   string // as package cost knows it
	Task   string // of its progress; "": Name
	Passes int64  // how often it reads IN
	OnGPU  bool   // it can use a GPU
	Joined bool   // a GPU may join the CPU while it works
	Tiles  bool   // what it computes depends on the tiles of a mosaic grid

	Inputs  func() error                      // opens further inputs, after IN; nil: there are none
	Outputs func() error                      // begins further outputs, after OUT; nil: there are none
	Work    func(work *Work, in *ngff.Image)  // refines the work that package cost is asked about; nil: it suits
	Run     func(Making) (*ngff.Image, error) // does the work and writes what Outputs began
	Said    func() string                     // returns the closing line of a run that succeeded, "" for none; nil: there is none
}

// Making holds the input of a stage, the store of its output, and the layout and resources that the flags grant.
type Making struct {
	In     *ngff.Image
	Out    store.Writer
	Layout oct.Layout
	Res    oct.Resources
}

// Do opens IN, creates OUT, runs the stage and describes both in the run record.
func (m Made) Do(ctx context.Context, r *cli.Run) error {
	in, err := Open(ctx, r, r.Arg("IN"))
	if err != nil {
		return err
	}
	if m.Tiles {
		NoteTiles(r, r.Arg("IN"), in)
	}
	if err := call(m.Inputs); err != nil {
		return err
	}
	out, err := zarrout.Create(ctx, r, r.Arg("OUT"))
	if err != nil {
		return err
	}
	if err := call(m.Outputs); err != nil {
		return err
	}
	task := r.Progress(cmp.Or(m.Task, m.Name), m.Passes*datasets.Bytes(in.Levels[0].Array))
	res := Resources(r, task)
	if m.OnGPU {
		work := Of(m.Name, in)
		if m.Work != nil {
			m.Work(&work, in)
		}
		resources := ResourcesOnGPU
		if m.Joined {
			resources = ResourcesJoined
		}
		if res, err = resources(ctx, r, task, work); err != nil {
			return err
		}
	}
	image, err := m.Run(Making{in, out.Store, Layout(r), res})
	if err != nil {
		return Failed(err)
	}
	task.Done()
	if m.Said != nil {
		if said := m.Said(); said != "" {
			r.Conclude("%s", said)
		}
	}
	Describe(r, in, r.Arg("IN"), image, out.Path())
	return nil
}

func call(f func() error) error {
	if f == nil {
		return nil
	}
	return f()
}
