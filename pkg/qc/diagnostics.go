package qc

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"strata/pkg/smallfile"
	"strata/pkg/webpage"
)

// Comparison holds the result of stitch compare for two stitchings of a slice; unknown values are nil.
type Comparison struct {
	Name   string
	First  compared `json:"first"`
	Second compared `json:"second"`
	Pixels int64    `json:"compared_px"`
	Whole  struct {
		All   *float64 `json:"all"`
		Seams *float64 `json:"at_seams"`
	} `json:"correlation"`
	Difference struct {
		Relative *float64 `json:"relative_rms"`
	} `json:"difference"`
	Moved *struct {
		Mean   *float64 `json:"mean_um"`
		Most   *float64 `json:"max_um"`
		MeanPX float64  `json:"mean_px"`
		MostPX float64  `json:"max_px"`
		Fit    *struct {
			Y float64 `json:"scale_y"`
			X float64 `json:"scale_x"`
			R float64 `json:"rotation_deg"`
		} `json:"fit"`
	} `json:"tile_displacement"`
}

// compared is one of two stitchings.
type compared struct {
	Label string   `json:"label"`
	Sharp *float64 `json:"relative_seam_sharpness"`
}

// Diagnosis holds the verdict and the findings of register analyze or shifts rotation.
type Diagnosis struct {
	Title    string   `json:"-"`
	Verdict  string   `json:"verdict"`
	Findings []string `json:"findings"`
}

// Status returns the class of the verdict.
func (d *Diagnosis) Status() string {
	if d.Verdict == "ok" {
		return "ok"
	}
	return "warning"
}

// comparisonName is the file of stitch compare. analyses maps the files with sentences to their subjects.
const comparisonName = "metrics.json"

var analyses = map[string]string{"rotation_analysis.json": "Registrations", "acquisition_rotation_analysis.json": "Rotation against the motor"}

// isDiagnostic reports whether a file of diagnostics is shown, by its name.
func isDiagnostic(base string) bool {
	return base == comparisonName || analyses[base] != "" || slices.Contains(plotEndings, filepath.Ext(base)) && !strings.HasPrefix(base, ".")
}

// isBelow reports whether a path is another one or lies in it.
func isBelow(path, folder string) bool {
	rest, ok := strings.CutPrefix(filepath.Clean(path), filepath.Clean(folder))
	return ok && (rest == "" || rest[0] == filepath.Separator)
}

// diagnosed returns the named files, and what named folders hold at any depth that is shown.
func diagnosed(paths []string) (out []found, err error) {
	for _, p := range paths {
		if !isFolder(p) {
			if _, err := os.Stat(p); err != nil {
				return nil, badInput("%w", err)
			}
			out = append(out, found{p, true})
			continue
		}
		root, err := filepath.EvalSymlinks(p) // a walk does not follow the folder itself
		if err != nil {
			return nil, badInput("%w", err)
		}
		if err := below(root, "", p, runDepth, &out); err != nil {
			return nil, badInput("%w", err)
		}
	}
	return out, nil
}

// below adds the files of a folder and of its subfolders down to a depth. It follows links to folders, since workflow
// engines make such links.
func below(root, name, shown string, depth int, out *[]found) error {
	entries, err := os.ReadDir(filepath.Join(root, name))
	if err != nil {
		return err
	}
	for _, e := range entries {
		path := filepath.Join(name, e.Name())
		info, err := os.Stat(filepath.Join(root, path))
		switch {
		case err != nil || strings.HasPrefix(e.Name(), ".") || strings.HasSuffix(e.Name(), ".zarr"):
		case info.IsDir() && depth > 0:
			if err := below(root, path, shown, depth-1, out); err != nil {
				return err
			}
		case info.Mode().IsRegular() && isDiagnostic(e.Name()):
			*out = append(*out, found{filepath.Join(shown, path), false})
		}
	}
	return nil
}

// loadDiagnostics reads comparisons, sentences and pictures.
func (r *Report) loadDiagnostics(ctx context.Context, list []found, mem int64) error {
	for _, f := range list {
		err := r.loadDiagnostic(ctx, f, mem)
		if err != nil {
			if err := r.unusable(f, err); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *Report) loadDiagnostic(ctx context.Context, f found, mem int64) error {
	base, folder := filepath.Base(f.path), filepath.Base(filepath.Dir(f.path))
	if slices.Contains(plotEndings, strings.ToLower(filepath.Ext(base))) {
		p, err := readPlot(ctx, f.path, mem)
		if err != nil {
			return err
		}
		p.Name = strings.TrimSuffix(base, filepath.Ext(base))
		if p.Name == "comparison" {
			p.Name = "comparison " + folder
		}
		p.Alt = "Diagnostics: " + p.Name
		r.Diagnosed = append(r.Diagnosed, p)
		return nil
	}
	b, err := smallfile.Read(ctx, f.path)
	if err != nil {
		return err
	}
	if title := analyses[base]; title != "" {
		d := Diagnosis{Title: title}
		if err := json.Unmarshal(smallfile.Nullify(b), &d); err != nil {
			return fmt.Errorf("%s: %w", f.path, plainJSON(err, f.path))
		}
		if len(d.Findings) == 0 {
			return fmt.Errorf("%s: has no findings: want a file of register analyze or shifts rotation", f.path)
		}
		r.Analyses = append(r.Analyses, d)
		return nil
	}
	c := Comparison{Name: folder}
	if err := json.Unmarshal(smallfile.Nullify(b), &c); err != nil {
		return fmt.Errorf("%s: %w", f.path, plainJSON(err, f.path))
	}
	if c.Pixels == 0 {
		return fmt.Errorf("%s: compares no pixels: want a file of stitch compare", f.path)
	}
	r.Compared = append(r.Compared, c)
	return nil
}

// hasDiagnostics reports whether there is anything to show of them.
func (r *Report) hasDiagnostics() bool {
	return len(r.Diagnosed) > 0 || len(r.Compared) > 0 || len(r.Analyses) > 0
}

// comparisonTable returns the stitchings that were compared; nil if none were.
func (r *Report) comparisonTable() *table {
	if len(r.Compared) == 0 {
		return nil
	}
	t := &table{File: "stitchings.csv", Caption: "Two stitchings of each slice: how alike they are, how sharp tiles are where they overlap relative to the rest, and how far tiles were moved.",
		Columns: columnsOf("Slice", "Stitchings", "Correlation|n", "At seams|n", "Difference, % of deviation|n", "Sharpness, first|n", "Sharpness, second|n", "Moved, mean, µm|n", "Moved, most, µm|n", "Scale y|n", "Scale x|n", "Turned, °|n")}
	optional := func(v *float64, factor float64, digits int) cell {
		if v == nil {
			return text("–")
		}
		return fixed(*v*factor, digits)
	}
	for _, c := range r.Compared {
		row := []cell{text(c.Name), text(c.First.Label + ", " + c.Second.Label), optional(c.Whole.All, 1, 3), optional(c.Whole.Seams, 1, 3), optional(c.Difference.Relative, 100, 1),
			optional(c.First.Sharp, 1, 3), optional(c.Second.Sharp, 1, 3)}
		if m := c.Moved; m == nil {
			row = append(row, text("–"), text("–"), text("–"), text("–"), text("–"))
		} else {
			row = append(row, optional(m.Mean, 1, 1), optional(m.Most, 1, 1))
			if f := m.Fit; f != nil {
				row = append(row, fixed(f.Y, 4), fixed(f.X, 4), fixed(f.R, 2))
			} else {
				row = append(row, text("–"), text("–"), text("–"))
			}
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// line returns the comparison as one line of text.
func (c *Comparison) line() string {
	out := c.First.Label + " and " + c.Second.Label
	if v := c.Whole.All; v != nil {
		out += fmt.Sprintf(": correlation %.3f", *v)
	}
	if m := c.Moved; m != nil {
		out += fmt.Sprintf(", tiles moved by %s px on average and %s px at most", webpage.Short(m.MeanPX), webpage.Short(m.MostPX))
	}
	return out
}
