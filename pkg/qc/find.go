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
		if kind := kindOf(parts); kind != "" {
			put(kind)
		}
		return nil
	})
	return lists, err
}

// kinds tells the kind of a file by its name; the first that fits counts. The empty kind is left out.
var kinds = []struct {
	name string
	is   func(f runFile) bool
}{
	{"", func(f runFile) bool { return strings.HasPrefix(f.base, ".") }},
	{"reports", func(f runFile) bool { return f.ending == ".json" && f.folder == "reports" }},
	{"metrics", func(f runFile) bool { return strings.HasSuffix(f.base, metricsEnding) }},
	{"diagnostics", func(f runFile) bool { return f.above[0] == "diagnostics" && isDiagnostic(f.base) }},
	{"crop", func(f runFile) bool { return strings.HasSuffix(f.base, "_crop.json") }},
	{"stitch", func(f runFile) bool { return f.ending == ".json" && f.folder == "stitch" }},
	{"previews", func(f runFile) bool {
		return f.ending == ".png" && (f.folder == "previews" || slices.Contains(f.above, "aip"))
	}},
	{"drift", func(f runFile) bool {
		return slices.Contains(driftPlots, strings.TrimSuffix(f.base, f.ending)) && slices.Contains(plotEndings, f.ending)
	}},
	{"missing", func(f runFile) bool { return f.base == "missing_slices.tsv" }},
	{"trace", func(f runFile) bool { return f.base == "trace.tsv" || f.base == "trace.txt" }},
	{"slices", func(f runFile) bool { return f.ending == ".csv" && strings.HasPrefix(f.base, "slice_config") }},
	{"matches", tableOf("z_matches")},
	{"decisions", tableOf("decisions")},
	{"found", tableOf("shifts_found")},
	{"cleaned", tableOf("shifts_xy_clean")},
	{"filtered", tableOf("shifts_filtered")},
	{"shifts", tableOf("shifts")},
}

// tableOf returns the kind of CSV files that have a word in their name.
func tableOf(word string) func(f runFile) bool {
	return func(f runFile) bool { return f.ending == ".csv" && strings.Contains(f.base, word) }
}

// runFile is the name of a file below a run's folder.
type runFile struct {
	base, ending string
	above        []string // folders from the run's down; "" if there is none
	folder       string   // the last of them
}

// kindOf returns the kind of a file by the parts of its path below the run's folder, or "" if it has none.
func kindOf(parts []string) string {
	f := runFile{base: parts[len(parts)-1], above: parts[:len(parts)-1]}
	if f.ending = filepath.Ext(f.base); len(f.above) == 0 {
		f.above = []string{""}
	}
	f.folder = f.above[len(f.above)-1]
	for _, k := range kinds {
		if k.is(f) {
			return k.name
		}
	}
	return ""
}
