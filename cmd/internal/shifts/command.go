// Package shifts implements the command shifts, which makes, repairs and describes the table of shifts between slices.
package shifts

import "strata/pkg/cli"

// Command returns the command shifts.
func Command() *cli.Command {
	return &cli.Command{
		Name:     "shifts",
		Usage:    "make, repair and describe the table of shifts between slices",
		Commands: []*cli.Command{estimateCommand(), cleanCommand(), analyzeCommand(), rotationCommand(), suggestCommand()},
		Aliases: []cli.Alias{
			{Name: "linum-estimate-xy-shift-from-metadata", Command: "estimate", Defaults: cli.Defaults{"overwrite": "true"}, Flags: map[string]string{"n_processes": "threads"}},
			{Name: "linum-detect-rehoming", Command: "clean"},
			{Name: "linum-analyze-shifts", Command: "analyze", Ignored: []cli.Flag{{Name: "slice_config", Ignored: "the shifts of all slices are described"}}},
			{Name: "linum-suggest-params", Command: "suggest"},
			{Name: "linum-analyze-acquisition-rotation", Command: "rotation", Defaults: cli.Defaults{"overwrite": "true"}},
		},
	}
}

// tableArg describes the argument IN, a shifts CSV.
func tableArg() cli.Arg {
	return cli.Arg{Name: "IN", Usage: "CSV of the shifts between slices, with the columns fixed_id, moving_id, x_shift_mm, y_shift_mm"}
}
