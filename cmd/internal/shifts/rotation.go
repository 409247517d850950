package shifts

import (
	"context"
	"io"
	"path/filepath"

	"strata/pkg/address"
	"strata/pkg/cli"
	"strata/pkg/cli/stage"
	"strata/pkg/oct/register/motions"
	"strata/pkg/oct/shifts"
	"strata/pkg/registration"
	"strata/pkg/runrecord"
)

// rotationCommand describes the search for a rotation of the acquisition against the motor.
func rotationCommand() *cli.Command {
	o := shifts.DefaultRotationOptions()
	return &cli.Command{
		Name:  "rotation",
		Usage: "tell whether images are turned against the axes of the motor",
		Description: "Looks at the directions of the shifts, how they change from slice to slice, and with --registration_dir at what\n" +
			"registrations add to them: if images are turned against the motor, registered shifts are turned against recorded ones\n" +
			"by the same angle. Writes four files into DIR: acquisition_rotation_data.csv (a row for each shift),\n" +
			"acquisition_rotation_analysis.json, .txt (numbers, and what to make of them) and .svg (plots).",
		Args:   []cli.Arg{tableArg(), {Name: "DIR", Usage: "folder to write into"}},
		Shared: cli.Resources | cli.Outputs,
		Flags: []cli.Flag{
			{Name: "registration_dir", Value: "DIR", Usage: "folder of the registrations of these slices, with a subfolder *z<NN>* for each"},
			cli.Bind(&o.Resolution, cli.Flag{Name: "resolution", Check: cli.VoxelSize, Value: "UM", Usage: "size of a pixel of the registered slices, in µm"}),
			{Name: "expected_angle", Kind: cli.Float, Note: "not known", Check: cli.Between(-360, 360), Value: "DEG", Usage: "direction in which slices are expected to be shifted, in degrees from x to y"},
			cli.Bind(&o.Window, cli.Flag{Name: "window_size", Check: cli.Between(1, 1000), Value: "SLICES", Usage: "average changes of direction over this many slices, in the table"}),
		},
		Examples: []cli.Example{
			{Command: "shifts rotation shifts_xy.csv rotation/", Usage: "directions of the shifts"},
			{Command: "shifts rotation shifts_xy.csv rotation/ --registration_dir registered/ --resolution 10", Usage: "the angle against the motor, by registrations at 10 µm"},
		},
		Run: cli.Do(func(ctx context.Context, r *cli.Run) error { return runRotation(ctx, r, o) }),
	}
}

func runRotation(ctx context.Context, r *cli.Run, o shifts.RotationOptions) error {
	if r.IsSet("expected_angle") {
		angle := r.Float("expected_angle")
		o.Expected = &angle
	}
	table, err := stage.ReadFile(ctx, r, r.Arg("IN"), registration.ReadShiftTable)
	if err != nil {
		return err
	}
	found, err := registered(ctx, r)
	if err != nil {
		return err
	}
	a, err := shifts.AnalyzeRotation(table, found, o)
	if err != nil {
		return cli.BadInputf("%s: %w", table.Name, err)
	}
	for _, f := range []struct {
		name string
		fill func(w io.Writer) error
	}{
		{"acquisition_rotation_data.csv", a.WriteTable},
		{"acquisition_rotation_analysis.json", stage.JSON(a)},
		{"acquisition_rotation_analysis.txt", func(w io.Writer) error { _, err := io.WriteString(w, a.Text()); return err }},
		{"acquisition_rotation_analysis.svg", a.WritePlot},
	} {
		if err := stage.WriteFile(r, filepath.Join(r.Arg("DIR"), f.name), f.fill); err != nil {
			return err
		}
	}
	r.Conclude("%s", a.Findings[min(1, len(a.Findings)-1)])
	return nil
}

// registered reads the folder of --registration_dir; nil without one.
func registered(ctx context.Context, r *cli.Run) ([]motions.Motion, error) {
	name := r.String("registration_dir")
	if name == "" {
		return nil, nil
	}
	if _, err := r.LocalInput(name); err != nil {
		return nil, err
	}
	folder, err := registration.OpenFolder(name)
	if err != nil {
		return nil, cli.BadInput(err)
	}
	found, warnings, err := motions.Read(ctx, folder, r.Options.Threads)
	if err != nil {
		return nil, cli.BadInput(err)
	}
	if len(found) == 0 {
		return nil, cli.BadInputf("%s: no registration of a slice: want folders *z<NN>* that register wrote", name)
	}
	for _, w := range warnings {
		r.Warn("%s", w)
	}
	r.Read(runrecord.Dataset{Path: address.Address(name)})
	return found, nil
}
