package slices

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"text/tabwriter"

	"strata/pkg/atomic"
	"strata/pkg/cli"
	"strata/pkg/cli/stage"
	"strata/pkg/filter"
	"strata/pkg/oct/sliceconfig"
	"strata/pkg/registration"
)

func assessCommand() *cli.Command {
	o := sliceconfig.DefaultAssessOptions()
	return &cli.Command{
		Name:  "assess",
		Usage: "exclude slices that do not resemble their neighbours",
		Description: "Looks for slices that no stack should have: without tissue, as at the specimen's end (no_tissue, empty), with noise\n" +
			"alone (noise), saturated, or scanned twice (duplicate); with --mosaics also those scanned in another grid of tiles\n" +
			"(grid). The columns fault and fault_reason of OUT say what was found, with figures; --faulty_slices says what is done.\n\n" +
			"Compares each of the others with the nearest before and after it. The quality is 0.5 times the structural\n" +
			"similarity, plus 0.3 times the correlation of edges, plus 0.2 if the values vary as much. Slices below\n" +
			"--min_quality, the first ones and calibration slices get use=false, with a reason; so does a slice without data.\n\n" +
			"Reads a few planes of each slice, one at a time. Writes the counts next to OUT, as\n" +
			"slice_quality_assessment_metrics.json: -f lets a second table in the same folder replace them.",
		Args: []cli.Arg{
			{Name: "SLICES_DIR", Usage: "folder of slices named slice_z<NN>*.ome.zarr, or s3://bucket/path"},
			{Name: "OUT", Usage: "CSV to write; not needed with --report_only", Optional: true},
		},
		Shared: cli.Resources | cli.Outputs | cli.Inputs,
		Flags: []cli.Flag{
			{Name: "min_quality", Kind: cli.Float, Default: "0", Check: cli.Between(0, 1), Usage: "exclude slices of a lower quality, 0 to 1; 0: none"},
			cli.Bind(&o.Depth, cli.Flag{Name: "sample_depth", Value: "PLANES", Check: cli.Between(1, 10000), Usage: "number of planes of each slice to compare, from 1"}),
			cli.Bind(&o.Level, cli.Flag{Name: "pyramid_level", Check: cli.Between(0, 100), Usage: "level of the pyramid to compare, from 0"}),
			cli.Bind(&o.ROI, cli.Flag{Name: "roi_size", Value: "PX", Check: roi, Usage: "compare a square of this width in the middle of the planes, in pixels, from 8; 0: whole planes"}),
			{Name: "exclude_first", Kind: cli.Int, Default: "1", Value: "N", Check: cli.AtLeast(0), Usage: "number of slices at the beginning that are not used"},
			{Name: "detect_calibration", Kind: cli.Bool, Usage: "exclude those of the first three slices that are much deeper than the others"},
			{Name: "calibration_thickness_ratio", Kind: cli.Float, Default: "1.5", Check: cli.Above(0), Usage: "number of times the median depth from which on a slice is one of --detect_calibration"},
			{Name: "existing_config", Value: "CSV", Usage: "slice configuration to complete: slices that it excludes stay excluded, and its columns are kept"},
			{Name: "update_existing", Kind: cli.Bool, Usage: "require --existing_config"},
			{Name: "faulty_slices", Default: faultyExclude, Choices: []string{faultyExclude, faultyKeep, faultyStop, faultyIgnore},
				Usage: "what to do with faulty slices: exclude sets use=false, keep only names them, stop writes nothing and exits with code 3, ignore does not look for them"},
			{Name: "mosaics", Value: "DIR", Usage: "folder of the mosaic grids *z<NN>*.ome.zarr that the slices were stitched from, to compare their grids of tiles"},
			{Name: "report_only", Kind: cli.Bool, Usage: "print the qualities, write nothing"},
		},
		Examples: []cli.Example{
			{Command: "slices assess slices/ assessed.csv --min_quality 0.3 --roi_size 1024 -f", Usage: "exclude slices below 0.3, by the middle of their planes"},
			{Command: "slices assess slices/ assessed.csv --existing_config slice_config.csv --min_quality 0.3 -f", Usage: "keep the decisions of an earlier table"},
			{Command: "slices assess slices/ assessed.csv --mosaics mosaics/ --faulty_slices keep -f", Usage: "name the slices that are faulty, and those scanned in another grid of tiles, but use all"},
			{Command: "slices assess slices/ --report_only --pyramid_level 1", Usage: "a quick look"},
		},
		Run: cli.Do(func(ctx context.Context, r *cli.Run) error { return runAssess(ctx, r, o) }),
	}
}

// roi returns an error for a width that is too small to compare.
func roi(v any) error {
	if n := v.(int); n < 0 || n > 0 && n <= filter.SSIMWindow {
		return fmt.Errorf("must be 0 or at least %d", filter.SSIMWindow+1)
	}
	return nil
}

func runAssess(ctx context.Context, r *cli.Run, o sliceconfig.AssessOptions) error {
	name, only := r.Arg("OUT"), r.Bool("report_only")
	if name == "" && !only {
		return cli.Usage("OUT is missing: name the CSV to write, or give --report_only")
	}
	if r.Bool("update_existing") && r.String("existing_config") == "" {
		return cli.Usage("--update_existing: name the slice configuration to complete: --existing_config CSV")
	}
	config := new(registration.SliceTable)
	if existing := r.String("existing_config"); existing != "" {
		var err error
		if config, err = readConfig(ctx, r, existing); err != nil {
			return err
		}
	}
	opened, err := stage.OpenSlices(ctx, r, r.Arg("SLICES_DIR"), false)
	if err != nil {
		return err
	}
	var slices []sliceconfig.Slice
	for _, s := range opened {
		slices = append(slices, sliceconfig.Slice{ID: s.ID, Image: s.Image})
	}
	if only {
		name = ""
	}
	out, beside, err := assessOutputs(r, name)
	if err != nil {
		return err
	}
	task := r.Progress("assess", 0)
	faults, err := findFaults(ctx, r, slices, o, task)
	if err != nil {
		return err
	}
	for _, f := range faults {
		if f.Name != sliceconfig.FaultGrid {
			o.Apart = append(o.Apart, f.Slice)
		}
	}
	scores, err := sliceconfig.Assess(ctx, slices, o, stage.Resources(r, task))
	if err != nil {
		return stage.Failed(err)
	}
	task.Done()
	decide := sliceconfig.DecideOptions{MinQuality: r.Float("min_quality"), ExcludeFirst: r.Int("exclude_first"), Faults: faults, KeepFaulty: r.String("faulty_slices") == faultyKeep}
	if r.Bool("detect_calibration") {
		decide.CalibrationRatio = r.Float("calibration_thickness_ratio")
	}
	verdicts := sliceconfig.Decide(config, scores, decide)
	for _, s := range scores {
		if !s.HasData && faults == nil {
			r.Warn("slice %d has no data: it is empty or constant", s.ID)
		}
	}
	if only {
		return printScores(r.Stdout, verdicts)
	}
	if err := stage.FillFile(r, out, config.Write); err != nil {
		return err
	}
	excluded := 0
	for _, v := range verdicts {
		if v.Reason != "" {
			excluded++
		}
	}
	r.Conclude("%d of %d slices excluded", excluded, len(verdicts))
	return stage.FillFile(r, beside, stage.MetricsJSON(sliceconfig.AssessMetrics(name, verdicts, decide)))
}

// assessOutputs begins the table and its metrics; without a name there is neither.
func assessOutputs(r *cli.Run, name string) (table, beside *atomic.Output, err error) {
	if name == "" {
		return nil, nil, nil
	}
	if table, err = r.OutputFile(name); err != nil {
		return nil, nil, err
	}
	beside, err = r.OutputFile(filepath.Join(filepath.Dir(name), "slice_quality_assessment_metrics.json"))
	return table, beside, err
}

// printScores prints what was found, a line per slice.
func printScores(dst io.Writer, verdicts []sliceconfig.Verdict) error {
	w := tabwriter.NewWriter(dst, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "slice\tplanes\tquality\tsimilarity\tedges\tvariance\tdecision")
	for _, v := range verdicts {
		decision := v.Reason
		switch {
		case decision == "" && v.Fault != "":
			decision = v.Fault + ", kept"
		case decision == "" && !v.Judged:
			decision = "not judged"
		case decision == "":
			decision = "ok"
		}
		fmt.Fprintf(w, "%s\t%d\t%.3f\t%.3f\t%.3f\t%.3f\t%s\n", registration.SliceName(v.ID), v.Depth, v.Quality, v.SSIM, v.Edge, v.Variance, decision)
	}
	return w.Flush()
}
