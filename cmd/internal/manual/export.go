package manual

import (
	"cmp"
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"strata/pkg/address"
	"strata/pkg/atomic"
	"strata/pkg/cli"
	"strata/pkg/cli/stage"
	"strata/pkg/oct/slicefiles"
	"strata/pkg/registration"
	"strata/pkg/replace"
	"strata/pkg/runrecord"
)

func exportCommand() *cli.Command {
	return &cli.Command{
		Name:  "export",
		Usage: "write what one needs to check and correct pairs of slices",
		Description: "Writes into the folder OUT a table of all pairs of neighbours, pairs.csv, the least certain first, and the script\n" +
			"align.sh, which opens them in view one after another: the moving slice lies on the fixed one where the registration\n" +
			"puts it. Keys move and turn it; \"Save place\" saves a file for manual apply.",
		Args: []cli.Arg{
			{Name: "SLICES", Usage: "folder of slices slice_z<NN>*.ome.zarr on one canvas, which were registered"},
			{Name: "TRANSFORMS", Usage: "folder of their transforms, as register writes them"},
			{Name: "OUT", Usage: "folder to write"},
		},
		Shared: cli.Outputs | cli.Resources,
		Examples: []cli.Example{
			{Command: "manual export slices registered by-hand && by-hand/align.sh", Usage: "look at all pairs, the least certain first"},
		},
		Run: cli.Do(export),
	}
}

// pair is a line of the table.
type pair struct {
	fixed, moving slicefiles.File
	placed        registration.Placed
	metrics       *registration.Metrics
	folder        string // of the transform; "" if there is none
}

// confidence returns how sure the registration is, below 0 if there is none.
func (p *pair) confidence() float64 {
	switch {
	case p.folder == "":
		return -1
	case p.metrics == nil:
		return 1
	case p.metrics.Status == "error":
		return p.metrics.Confidence - 1
	}
	return p.metrics.Confidence
}

func export(ctx context.Context, r *cli.Run) error {
	for _, name := range []string{"SLICES", "TRANSFORMS"} {
		if _, err := r.LocalInput(r.Arg(name)); err != nil {
			return err
		}
	}
	files, err := slicefiles.Find(ctx, r.Arg("SLICES"))
	if err != nil {
		return stage.Failed(err)
	}
	folder, err := registration.OpenFolder(r.Arg("TRANSFORMS"))
	if err != nil {
		return cli.BadInput(err)
	}
	var pairs []*pair
	for i := 1; i < len(files); i++ {
		p := &pair{fixed: files[i-1], moving: files[i]}
		found, warnings, err := folder.Pair(ctx, p.moving.ID)
		if err != nil {
			return cli.BadInput(err)
		}
		for _, w := range warnings {
			r.Warn("%s", w)
		}
		if found != nil && found.Transform != nil {
			p.placed, p.metrics, p.folder = registration.PlacedBy(*found.Transform, found.Offsets), found.Metrics, found.Folder
		}
		pairs = append(pairs, p)
	}
	slices.SortStableFunc(pairs, func(a, b *pair) int { return cmp.Compare(a.confidence(), b.confidence()) })
	table, err := r.OutputFile(filepath.Join(r.Arg("OUT"), "pairs.csv"), replace.Begins("table of pairs", strings.Join(columns[:3], ",")))
	if err != nil {
		return err
	}
	script, err := r.OutputFile(filepath.Join(r.Arg("OUT"), "align.sh"), replace.Begins("script that opens pairs in view", scriptHead))
	if err != nil {
		return err
	}
	if err := table.Write(func(w io.Writer) error { return writePairs(w, pairs) }); err != nil {
		return err
	}
	if err := writeScript(script, r.Arg("OUT"), pairs); err != nil {
		return err
	}
	r.Wrote(runrecord.Dataset{Path: address.Address(r.Arg("OUT"))})
	unsure := slices.IndexFunc(pairs, func(p *pair) bool { return p.confidence() >= 0.6 })
	if unsure < 0 {
		unsure = len(pairs)
	}
	r.Conclude("%d pairs, %d of them with a confidence below 0.6", len(pairs), unsure)
	return nil
}

// columns are those of the table of pairs.
var columns = []string{"fixed_id", "moving_id", "status", "confidence", "translation_x_px", "translation_y_px", "rotation_deg", "fixed_z", "moving_z", "transform"}

func writePairs(out io.Writer, pairs []*pair) error {
	w := csv.NewWriter(out)
	number := func(v float64) string { return strconv.FormatFloat(v, 'g', 8, 64) }
	_ = w.Write(columns)
	for _, p := range pairs {
		status, confidence, folder := "no transform", "", ""
		if p.folder != "" {
			status, folder = "registered", filepath.Base(p.folder)
		}
		if m := p.metrics; m != nil {
			status, confidence = cmp.Or(m.Status, status), number(m.Confidence)
		}
		t := p.placed
		_ = w.Write([]string{strconv.Itoa(p.fixed.ID), strconv.Itoa(p.moving.ID), status, confidence, number(t.TX), number(t.TY), number(t.Angle * 180 / math.Pi),
			strconv.Itoa(t.FixedZ), strconv.Itoa(t.MovingZ), folder})
	}
	w.Flush()
	return w.Error()
}

// scriptHead begins the script.
const scriptHead = "#!/usr/bin/env bash\n# Opens each pair of slices in view,"

// writeScript writes the script that opens pairs in view. It finds slices and transforms from folder, where it will
// lie: it still does when they are moved or copied together, as a workflow does that publishes its results.
func writeScript(out *atomic.Output, folder string, pairs []*pair) error {
	var b strings.Builder
	b.WriteString(scriptHead + " the least certain first; Ctrl-C goes on to the next. In view: w a s d moves the\n" +
		"# overlay, q e turns it, t g moves it along z, p saves its place. Then: manual apply OUT PLACES...\n" +
		"# usage: align.sh [ARGUMENTS OF VIEW]\nset -u\ntrap : INT\nhere=$(cd \"$(dirname \"${BASH_SOURCE[0]}\")\" && pwd -P) || exit 1\n")
	for _, p := range pairs {
		fmt.Fprintf(&b, "echo 'slices %d and %d'\nstrata view %s --overlay %s", p.fixed.ID, p.moving.ID, from(folder, p.fixed.Path), from(folder, p.moving.Path))
		if p.folder != "" {
			b.WriteString(" --place " + from(folder, p.folder))
		}
		b.WriteString(" \"$@\"\n")
	}
	if err := os.Remove(out.Work()); err != nil { // the file to write is executable
		return err
	}
	return os.WriteFile(out.Work(), []byte(b.String()), 0o777)
}

// quoted returns a word as a shell reads it.
func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// from returns path as the script in folder names it.
func from(folder, path string) string {
	base, err := rooted(folder)
	if err != nil {
		return quoted(path)
	}
	path, err = rooted(path)
	if err != nil {
		return quoted(path)
	}
	if rel, err := filepath.Rel(base, path); err == nil {
		return `"$here"/` + quoted(filepath.ToSlash(rel))
	}
	return quoted(path)
}

// rooted returns the absolute path of a file in a folder whose symbolic links are followed, but not the file's own: a
// slice may be a link to where it was made.
func rooted(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return path, err
	}
	folder, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		return path, err
	}
	return filepath.Join(folder, filepath.Base(path)), nil
}
