package qc

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// found is a file and whether the user named it.
type found struct {
	path  string
	named bool
}

// files returns the named files, and of named folders the files in them with one of the endings, in the order of
// their names.
func files(paths []string, endings ...string) ([]found, error) {
	var out []found
	for _, p := range paths {
		info, err := os.Stat(p)
		if err != nil {
			return nil, badInput("%w", err)
		}
		if !info.IsDir() {
			out = append(out, found{p, true})
			continue
		}
		entries, err := os.ReadDir(p)
		if err != nil {
			return nil, badInput("%w", err)
		}
		for _, e := range entries {
			if path := filepath.Join(p, e.Name()); slices.ContainsFunc(endings, func(ending string) bool { return strings.HasSuffix(e.Name(), ending) }) && !strings.HasPrefix(e.Name(), ".") && isPlain(path) {
				out = append(out, found{path, false})
			}
		}
	}
	return out, nil
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// isPlain reports whether a path may be read to its end: it is no folder, pipe or device. A missing file
// counts, since reading it gives the error.
func isPlain(path string) bool {
	info, err := os.Stat(path)
	return err != nil || info.Mode().IsRegular()
}

// closed are folders of a run that are not looked into: what engines keep.
var closed = []string{"work", ".nextflow"}

// runDepth is the maximum depth below a run's folder at which files are searched.
const runDepth = 4

// driftPlots are the names of the plots that shifts clean and analyze write, without their endings: ours and linumpy's.
var driftPlots, plotEndings = []string{"rehoming_plot", "drift_analysis"}, []string{".svg", ".png"}

// find looks for sources in the folder of a run by the names that the workflow gives them: all files of each
// kind, in the order of their names.
func find(run string) (map[string][]found, error) {
	lists := map[string][]found{}
	if info, err := os.Stat(run); err == nil && !info.IsDir() {
		return nil, badInput("%s: not a folder: want that of a run's results", run)
	}
	err := fs.WalkDir(os.DirFS(run), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			if name == "." {
				return badInput("%s: %w", run, err)
			}
			return nil // a folder that cannot be read hides nothing else
		}
		base, parts := d.Name(), strings.Split(name, "/")
		folder := ""
		if len(parts) > 1 {
			folder = parts[len(parts)-2]
		}
		put := func(kind string) {
			lists[kind] = append(lists[kind], found{filepath.Join(run, filepath.FromSlash(name)), false})
		}
		if d.IsDir() {
			switch {
			case name == ".":
			case strings.HasSuffix(base, ".zarr"), strings.HasPrefix(base, "."), slices.Contains(closed, base), len(parts) > runDepth:
				return fs.SkipDir
			case folder == "focal":
				put("focal")
				return fs.SkipDir
			}
			return nil
		}
		if !d.Type().IsRegular() && !isPlain(filepath.Join(run, filepath.FromSlash(name))) {
			return nil
		}
		switch ending := filepath.Ext(base); {
		case strings.HasPrefix(base, "."):
		case ending == ".json" && folder == "reports":
			put("reports")
		case strings.HasSuffix(base, metricsEnding):
			put("metrics")
		case parts[0] == "diagnostics" && isDiagnostic(base):
			put("diagnostics")
		case strings.HasSuffix(base, "_crop.json"):
			put("crop")
		case ending == ".json" && folder == "stitch":
			put("stitch")
		case ending == ".png" && (folder == "previews" || slices.Contains(parts[:len(parts)-1], "aip")):
			put("previews")
		case slices.Contains(driftPlots, strings.TrimSuffix(base, ending)) && slices.Contains(plotEndings, ending):
			put("drift")
		case base == "missing_slices.tsv":
			put("missing")
		case base == "trace.tsv" || base == "trace.txt":
			put("trace")
		case ending == ".csv" && strings.HasPrefix(base, "slice_config"):
			put("slices")
		case ending == ".csv" && strings.Contains(base, "z_matches"):
			put("matches")
		case ending == ".csv" && strings.Contains(base, "decisions"):
			put("decisions")
		case ending == ".csv" && strings.Contains(base, "shifts_found"):
			put("found")
		case ending == ".csv" && strings.Contains(base, "shifts_xy_clean"):
			put("cleaned")
		case ending == ".csv" && strings.Contains(base, "shifts_filtered"):
			put("filtered")
		case ending == ".csv" && strings.Contains(base, "shifts"):
			put("shifts")
		}
		return nil
	})
	return lists, err
}
