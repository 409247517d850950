// Package qcreport implements the command qc-report, which writes the quality report of a run as one HTML page.
package qcreport

import (
	"archive/zip"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"strata/pkg/address"
	"strata/pkg/cli"
	"strata/pkg/oct"
	"strata/pkg/qc"
	"strata/pkg/runrecord"
)

// Command returns the command qc-report.
func Command() *cli.Command {
	return &cli.Command{
		Name:  "qc-report",
		Usage: "write the quality report of a run, one HTML page",
		Description: "Collects what the stages of a run wrote: warnings, times, throughput and memory, pictures, shifts and drift,\n" +
			"overlaps and correlations, decisions, flat-fields. The page needs no network and no other file.\n\n" +
			"--run finds its inputs in a folder of results; the other flags name them one by one and replace what --run\n" +
			"finds. All inputs are optional. An unusable file is an error if it was named, and a warning if it was found.",
		Args: []cli.Arg{{Name: "OUT", Usage: "HTML file to write, or by --format another"}},
		Flags: []cli.Flag{
			{Name: "run", Value: "DIR", Usage: "folder of results of a run, in which to find everything that a report can show"},
			{Name: "reports", Kind: cli.Strings, Value: "PATH,...", Usage: "run records, which the stages write with --report, or folders of them"},
			{Name: "previews", Kind: cli.Strings, Value: "PATH,...", Usage: "pictures to show (PNG), or folders of them"},
			{Name: "shifts", Value: "CSV", Usage: "CSV of the recorded shifts between slices"},
			{Name: "shifts_clean", Value: "CSV", Usage: "CSV of the same shifts after repair, from shifts clean or shifts analyze"},
			{Name: "shifts_plots", Kind: cli.Strings, Value: "PATH,...", Usage: "plots from shifts clean --diagnostics and shifts analyze (SVG or PNG), or folders of them"},
			{Name: "shifts_found", Value: "CSV", Usage: "CSV of the shifts that the slices show, from stack --output_shifts"},
			{Name: "z_matches", Value: "CSV", Usage: "CSV of the overlaps of slices, from stack --output_z_matches"},
			{Name: "decisions", Value: "CSV", Usage: "CSV of what was done with each slice, from stack --output_stacking_decisions"},
			{Name: "focal", Kind: cli.Strings, Value: "DIR,...", Usage: "folders of maps from focal --save_map, or a folder with one of them per slice"},
			{Name: "stitch", Kind: cli.Strings, Value: "PATH,...", Usage: "tile positions from stitch --save_positions (JSON), or folders of them"},
			{Name: "crop", Kind: cli.Strings, Value: "PATH,...", Usage: "interface depths that crop writes next to its output (NAME_crop.json), or folders of them"},
			{Name: "metrics", Kind: cli.Strings, Value: "PATH,...", Usage: "metrics of steps of the workflow, by strata or linumpy (*_metrics.json), or folders of them"},
			{Name: "slice_config", Value: "CSV", Usage: "slice table of slices assess, whose faults the page names"},
			{Name: "diagnostics", Kind: cli.Strings, Value: "PATH,...", Usage: "what stitch compare, register analyze, shifts rotation and stack --preview wrote, or folders of it at any depth"},
			{Name: "missing", Value: "TSV", Usage: "TSV of missing slices, which the workflow writes"},
			{Name: "trace", Value: "TSV", Usage: "TSV in which Nextflow traces its tasks"},
			{Name: "title", Value: "TEXT", Note: "the run folder's name", Usage: "title of the page"},
			{Name: "multiqc", Value: "DIR", Usage: "also write summaries of the run, its joins and its slices for MultiQC into this folder (strata_*_mqc.json)"},
			{Name: "format", Default: "auto", Choices: []string{"auto", "html", "zip", "text"}, Usage: "form of OUT: the page, a zip file with the page in it, or its messages and metrics as text; auto takes zip and text for the endings .zip and .txt"},
			{Name: "no_images", Kind: cli.Bool, Usage: "leave the pictures out"},
			{Name: "overview_png", Value: "PNG", Usage: "picture to show first, such as an overview of the volume"},
			{Name: "annotated_png", Value: "PNG", Usage: "another picture to show first"},
			{Name: "max_pictures", Kind: cli.Size, Default: "12MiB", Check: cli.AtLeast(64 << 10), Usage: "limit on the bytes of all pictures in the page together, at least 64KiB"},
		},
		Shared: cli.Resources | cli.Outputs,
		Aliases: []cli.Alias{{
			Name: "linum-generate-pipeline-report", Defaults: cli.Defaults{"overwrite": "true"},
			Args: []cli.Arg{{Name: "RUN", Usage: "folder of results of a run"}, {Name: "OUT", Usage: "file to write: HTML, or by its ending .zip or .txt"}},
			Ignored: []cli.Flag{
				{Name: "max_overview_width", Kind: cli.Int, Value: "PX", Ignored: "pictures are scaled to fit --max_pictures"},
				{Name: "max_thumb_width", Kind: cli.Int, Value: "PX", Ignored: "pictures are scaled to fit --max_pictures"},
			},
		}},
		Examples: []cli.Example{
			{Command: "qc-report report.html --run results", Usage: "everything that a run wrote"},
			{Command: "qc-report report.html --reports results/reports --previews results/previews", Usage: "only times and pictures"},
			{Command: "qc-report report.html --run results --multiqc results/multiqc && multiqc results", Usage: "report, and the run as a row of a lab's MultiQC page"},
			{Command: "qc-report stack.html --shifts shifts_xy.csv --z_matches z_matches.csv --decisions decisions.csv --title 'Subject 12'", Usage: "only the stack"},
		},
		Run: cli.Do(run),
	}
}

func run(ctx context.Context, r *cli.Run) error {
	folder := r.String("run")
	if r.HasArg("RUN") {
		folder = r.Arg("RUN")
	}
	s := qc.Sources{
		Run: folder, Reports: r.Strings("reports"), Previews: r.Strings("previews"), Shifts: r.String("shifts"), Cleaned: r.String("shifts_clean"), Drift: r.Strings("shifts_plots"),
		Found: r.String("shifts_found"), Matches: r.String("z_matches"), Decisions: r.String("decisions"), Focal: r.Strings("focal"), Stitch: r.Strings("stitch"),
		Crop: r.Strings("crop"), Slices: r.String("slice_config"), Missing: r.String("missing"), Trace: r.String("trace"), Metrics: r.Strings("metrics"), Diagnosed: r.Strings("diagnostics"),
	}
	for _, flag := range []string{"overview_png", "annotated_png"} {
		if path := r.String(flag); path != "" {
			s.Overviews = append(s.Overviews, path)
		}
	}
	named := slices.Concat(s.Overviews, s.Reports, s.Previews, s.Focal, s.Stitch, s.Crop, s.Metrics, s.Drift, s.Diagnosed)
	for _, path := range []string{s.Run, s.Shifts, s.Cleaned, s.Found, s.Matches, s.Decisions, s.Slices, s.Missing, s.Trace} {
		if path != "" {
			named = append(named, path)
		}
	}
	if len(named) == 0 {
		return cli.Usage("nothing to report on: give --run DIR, or some of --reports, --previews, --shifts, --z_matches, --decisions, --slice_config, --focal, --stitch, --crop, --metrics, --diagnostics")
	}
	if err := inputs(r, s, named); err != nil {
		return err
	}
	out, err := r.OutputFile(r.Arg("OUT"))
	if err != nil {
		return err
	}
	res := oct.Resources{Workers: r.Options.Threads, Mem: r.Options.Mem, Meter: r.Meter}
	report, err := qc.Load(ctx, s, res)
	if err != nil {
		if errors.Is(err, qc.ErrInput) {
			return cli.BadInput(err)
		}
		return err
	}
	report.Title, report.Version = title(r, folder), cli.Version()
	if r.Bool("no_images") {
		report.Previews, report.Drift, report.Diagnosed = nil, nil, nil
	}
	if err := report.Fit(ctx, int(r.Size("max_pictures")), res); err != nil {
		return err
	}
	for _, p := range report.Problems {
		r.Warn("%s", p)
	}
	if err := out.Write(form(r.String("format"), out.Path(), report)); err != nil {
		return err
	}
	r.Wrote(runrecord.Dataset{Path: address.Address(out.Path())})
	return summaries(r, report)
}

// summaries writes the files for MultiQC.
func summaries(r *cli.Run, report *qc.Report) error {
	dir := r.String("multiqc")
	if dir == "" {
		return nil
	}
	for _, m := range report.MultiQC(strings.TrimPrefix(report.Title, titlePrefix)) {
		out, err := r.OutputFile(filepath.Join(dir, m.Name))
		if err != nil {
			return err
		}
		if err := out.Write(m.WriteJSON); err != nil {
			return err
		}
		r.Wrote(runrecord.Dataset{Path: address.Address(out.Path())})
	}
	return nil
}

// form returns what writes the report in a format.
func form(format, path string, report *qc.Report) func(w io.Writer) error {
	switch ending := strings.ToLower(filepath.Ext(path)); {
	case format == "zip" || format == "auto" && ending == ".zip":
		return func(w io.Writer) error {
			archive := zip.NewWriter(w)
			page, err := archive.Create("report.html")
			if err != nil {
				return err
			}
			if err := report.WriteHTML(page); err != nil {
				return err
			}
			return archive.Close()
		}
	case format == "text" || format == "auto" && ending == ".txt":
		return report.WriteText
	}
	return report.WriteHTML
}

// titlePrefix precedes the name of the run in the title.
const titlePrefix = "Quality report: "

// inputs records the files that are read. The page may be written into a folder that is searched, which is where
// it belongs, but may not replace a file that it is made from.
func inputs(r *cli.Run, s qc.Sources, named []string) error {
	for _, path := range named {
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			continue
		}
		if _, err := r.LocalInput(path); err != nil {
			return err
		}
	}
	files, err := s.Files()
	if err != nil {
		return cli.BadInput(err)
	}
	old, _ := os.Stat(r.Arg("OUT")) // nil where there is none
	sizes := make([]int64, len(files))
	for i, path := range files {
		info, err := os.Stat(path)
		if err == nil && old != nil && os.SameFile(old, info) {
			return cli.Usage("output %s is the input %s: write to another place", r.Arg("OUT"), path)
		}
		if err == nil && !info.IsDir() {
			sizes[i] = info.Size()
		}
	}
	for _, path := range named {
		d := runrecord.Dataset{Path: address.Address(path)}
		for i, file := range files {
			if in, err := filepath.Rel(path, file); err == nil && filepath.IsLocal(in) {
				d.Bytes += sizes[i]
			}
		}
		r.Read(d)
	}
	return nil
}

// title returns the heading of the page.
func title(r *cli.Run, folder string) string {
	if t := r.String("title"); t != "" {
		return t
	}
	if folder == "" {
		return "Quality report"
	}
	path, err := filepath.Abs(folder)
	if err != nil {
		path = folder
	}
	name := filepath.Base(path)
	if name == "results" { // the folder of the acquisition says more
		name = filepath.Base(filepath.Dir(path))
	}
	return titlePrefix + strings.TrimSpace(name)
}
