// Package slices implements the command slices, which decides which slices are used.
package slices

import (
	"context"
	"path/filepath"

	"strata/pkg/address"
	"strata/pkg/cli"
	"strata/pkg/cli/stage"
	"strata/pkg/metrics"
	"strata/pkg/registration"
	"strata/pkg/runrecord"
)

// Command returns the command slices.
func Command() *cli.Command {
	noGPU := cli.Flag{Name: "use_gpu", Kind: cli.Bool, Ignored: "computes on the CPU"}
	return &cli.Command{
		Name:     "slices",
		Usage:    "decide which slices are used, in the table slice_config.csv",
		Commands: []*cli.Command{configCommand(), assessCommand(), excludeCommand(), finaliseCommand()},
		Aliases: []cli.Alias{
			{Name: "linum-generate-slice-config", Command: "config"},
			{Name: "linum-assess-slice-quality", Command: "assess", Flags: map[string]string{"processes": "threads"}, Defaults: cli.Defaults{"faulty_slices": faultyIgnore}, Ignored: []cli.Flag{noGPU}},
			{Name: "linum-auto-exclude-slices", Command: "exclude", Defaults: cli.Defaults{"overwrite": "true"}},
		},
	}
}

// readConfig reads the slice configuration that an argument or a flag names.
func readConfig(ctx context.Context, r *cli.Run, name string) (*registration.SliceTable, error) {
	return stage.ReadFile(ctx, r, name, registration.ReadSliceTable)
}

// folderAndTable returns what exclude and finalise begin with: the path of the folder that an argument names, and the
// table IN.
func folderAndTable(ctx context.Context, r *cli.Run, folder string) (dir string, table *registration.SliceTable, err error) {
	if dir, err = r.LocalInput(r.Arg(folder)); err != nil {
		return "", nil, err
	}
	table, err = readConfig(ctx, r, r.Arg("IN"))
	return dir, table, err
}

// told notes a folder that was read as an input, and passes on what was wrong in it.
func told(r *cli.Run, dir string, warnings []string) {
	r.Read(runrecord.Dataset{Path: address.Address(dir)})
	for _, w := range warnings {
		r.Warn("%s", w)
	}
}

// writeBeside writes the metrics of a step into the folder of an output.
func writeBeside(r *cli.Run, out, name string, step *metrics.Step) error {
	return stage.WriteFile(r, filepath.Join(filepath.Dir(out), name), stage.MetricsJSON(step))
}
