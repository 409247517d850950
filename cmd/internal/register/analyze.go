package register

import (
	"context"
	"io"
	"os"
	"path/filepath"

	"strata/pkg/address"
	"strata/pkg/cli"
	"strata/pkg/cli/stage"
	"strata/pkg/oct/register/motions"
	"strata/pkg/registration"
	"strata/pkg/runrecord"
)

// analyzeCommand describes the analysis of a folder of registrations.
func analyzeCommand() *cli.Command {
	o := motions.Defaults()
	return &cli.Command{
		Name:  "analyze",
		Usage: "describe how registrations move slices, and which of them stand out",
		Description: "Reads the transforms and metrics of a folder of registrations and writes four files into DIR:\n" +
			"registration_transforms.csv (a row for each slice), rotation_analysis.json and rotation_analysis.txt (rotations,\n" +
			"translations, what they add up to, outliers, and what to make of them) and rotation_analysis.svg (plots).",
		Args: []cli.Arg{
			{Name: "TRANSFORMS_DIR", Usage: "folder of registrations, with a subfolder *z<NN>* for each slice, or one that holds it as transforms/ or register_pairwise/"},
			{Name: "DIR", Usage: "folder to write into"},
		},
		Shared: cli.Resources | cli.Outputs,
		Flags: []cli.Flag{
			cli.Bind(&o.Resolution, cli.Flag{Name: "resolution", Check: cli.VoxelSize, Value: "UM", Usage: "size of a pixel of the registered slices, in µm"}),
			cli.Bind(&o.RotationThreshold, cli.Flag{Name: "rotation_threshold", Check: cli.Between(0, 360), Value: "DEG", Usage: "report slices that are turned by more than this against the one before them, in degrees"}),
			cli.Bind(&o.CumulativeThreshold, cli.Flag{Name: "cumulative_threshold", Check: cli.AtLeast(0), Value: "DEG", Usage: "report rotations that add up to more than this, in degrees"}),
		},
		Examples: []cli.Example{
			{Command: "register analyze registered/ analysis/ --resolution 10", Usage: "what register --all found, at 10 µm"},
			{Command: "register analyze run/ analysis/ --rotation_threshold 1 -f", Usage: "of the workflow's folder; report smaller rotations"},
		},
		Run: cli.Do(func(ctx context.Context, r *cli.Run) error { return runAnalyze(ctx, r, o) }),
	}
}

func runAnalyze(ctx context.Context, r *cli.Run, o motions.Options) error {
	name := r.Arg("TRANSFORMS_DIR")
	if _, err := r.LocalInput(name); err != nil {
		return err
	}
	folder, err := openTransforms(name)
	if err != nil {
		return cli.BadInput(err)
	}
	all, warnings, err := motions.Read(ctx, folder, r.Options.Threads)
	if err != nil {
		return cli.BadInput(err)
	}
	for _, w := range warnings {
		r.Warn("%s", w)
	}
	a, err := motions.Analyze(all, o)
	if err != nil {
		return cli.BadInputf("%s: %w: want folders *z<NN>* that register wrote", name, err)
	}
	r.Read(runrecord.Dataset{Path: address.Address(name)})
	for _, f := range []struct {
		name string
		fill func(w io.Writer) error
	}{
		{"registration_transforms.csv", a.WriteTable},
		{"rotation_analysis.json", stage.JSON(a)},
		{"rotation_analysis.txt", func(w io.Writer) error { _, err := io.WriteString(w, a.Text()); return err }},
		{"rotation_analysis.svg", a.WritePlot},
	} {
		if err := stage.WriteFile(r, filepath.Join(r.Arg("DIR"), f.name), f.fill); err != nil {
			return err
		}
	}
	r.Conclude("%d slices: %s", a.Slices, a.Findings[0])
	return nil
}

// openTransforms opens a folder of registrations, or the one that the folder of a run holds.
func openTransforms(name string) (*registration.Folder, error) {
	f, err := registration.OpenFolder(name)
	if err != nil || f.Slices() > 0 {
		return f, err
	}
	for _, below := range []string{"transforms", "register_pairwise"} {
		if info, err := os.Stat(filepath.Join(name, below)); err == nil && info.IsDir() {
			return registration.OpenFolder(filepath.Join(name, below))
		}
	}
	return f, nil
}
