package start

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"strata/pkg/cli"
	"strata/pkg/survey"
)

// printJSON prints all that was found as one document.
func printJSON(r *cli.Run, l *survey.Listing, found []*survey.Finding) error {
	e := json.NewEncoder(r.Stdout)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(map[string]any{"folder": l.Root, "files": len(l.Files), "folders": l.Folders, "found": found})
}

// printText prints what was found for people.
func printText(r *cli.Run, l *survey.Listing, found []*survey.Finding, p *params) error {
	var b strings.Builder
	for k, f := range found {
		if k > 0 {
			fmt.Fprintf(&b, "\nalso: ")
		}
		fmt.Fprintf(&b, "%s: %s (%s, confidence %s)\n", l.Root, f.What, f.Kind, f.Confidence)
		facts(&b, f)
		for _, e := range f.Evidence {
			fmt.Fprintf(&b, "  because   %s\n", e)
		}
		for _, w := range f.Warnings {
			fmt.Fprintf(&b, "  warning   %s\n", w)
		}
		for _, a := range f.Alternatives {
			if a.Pattern == "" {
				fmt.Fprintf(&b, "  or        %s\n", a.Why)
			} else {
				fmt.Fprintf(&b, "  or        --pattern '%s': %s\n", a.Pattern, a.Why)
			}
		}
		if len(f.Needs) > 0 {
			fmt.Fprintf(&b, "\nNothing in the folder says %s: fill in the flag.\n", needs(f.Needs))
		}
		if k == 0 && len(f.Commands) > 0 {
			fmt.Fprintf(&b, "\nNext:\n\n")
		}
		for _, c := range f.Commands {
			fmt.Fprintf(&b, "    %s\n", c)
		}
	}
	switch {
	case p.out != nil:
		fmt.Fprintf(&b, "\n%s has the parameters of the workflow.\n", p.path)
	case p.note != "" && len(found[0].Params) > 0:
		fmt.Fprintf(&b, "\n%s\n", p.note)
	}
	_, err := io.WriteString(r.Stdout, b.String())
	return err
}

// needs names flags.
func needs(list []string) string {
	words := map[string]string{"voxel_size": "the voxel size (--voxel_size Z,Y,X in µm)", "grid": "the grid (--grid ROWS,COLS)", "pattern": "which names are tiles (--pattern)"}
	var out []string
	for _, n := range list {
		out = append(out, words[n])
	}
	return strings.Join(out, " or ")
}

// facts prints the numbers.
func facts(b *strings.Builder, f *survey.Finding) {
	line := func(name, format string, args ...any) {
		fmt.Fprintf(b, "  %-9s "+format+"\n", append([]any{name}, args...)...)
	}
	if f.Pattern != "" {
		line("pattern", "%s", f.Pattern)
	}
	if len(f.Slices) > 0 {
		line("slices", "%d, from %d to %d", len(f.Slices), f.Slices[0], f.Slices[len(f.Slices)-1])
	}
	if g := f.Grid; g != nil {
		missing := ""
		if f.MissingAll > 0 {
			missing = fmt.Sprintf(", %d missing, such as row, column %v", f.MissingAll, f.Missing)
		}
		line("grid", "%d rows × %d columns, %d tiles%s", g[0], g[1], f.Tiles, missing)
	}
	if o := f.Order; o != nil {
		order, snake := "rows", ""
		if o.Columns {
			order = "columns"
		}
		if o.Snake {
			snake = ", every other one backwards"
		}
		line("order", "%s%s, from the %s (%s)", order, snake, o.Start, o.From)
	}
	if o := f.Overlap; o != nil {
		line("overlap", "%.1f %% (%.1f to %.1f, %s)", 100*o.Median, 100*o.Low, 100*o.High, o.From)
	}
	if v := f.Voxel; v != nil {
		if v[0] == 0 { // not known, and not needed for a plane
			line("pixel", "%.4g × %.4g µm (y, x), from %s", v[1], v[2], f.VoxelFrom)
		} else {
			line("voxel", "%.4g × %.4g × %.4g µm (z, y, x), from %s", v[0], v[1], v[2], f.VoxelFrom)
		}
	}
	if len(f.Shape) > 0 {
		line("pixels", "%v of %s", f.Shape, f.DType)
	}
	if f.Channels > 1 {
		line("channels", "%d", f.Channels)
	}
}
