package flags

import (
	"maps"
	"path"
	"slices"
	"strings"
)

// BatchFlag is the flag of the group [Pairs].
const BatchFlag = "batch"

// The words that stand for a pair's OUT in flags that name files.
const (
	NameToken = "{name}" // its last part, without .ome.zarr or .zarr
	OutToken  = "{out}"  // all of it, without that
)

// Batch returns the list of pairs that the command line asks for; "" if it names IN and OUT itself.
func (l *Line) Batch() string {
	if l.values[BatchFlag] == nil {
		return ""
	}
	return l.String(BatchFlag)
}

// countBatch checks a command line with --batch: it has no positional arguments, and what it names to be written
// differs from pair to pair.
func (l *Line) countBatch() error {
	if len(l.args) > 0 {
		return wrong("unexpected argument %q: with --batch, IN and OUT stand in %s", l.args[0], l.Batch())
	}
	for _, g := range l.Given() {
		if g.Flag.Alone {
			return wrong("flag %s contradicts --batch: give one of them", dashed(g.Flag.Name))
		}
		if g.Flag.Written && !hasToken(g.Values) {
			return wrong("flag %s: with --batch each pair needs a name of its own: write %s for the name of its OUT, or %s for the path, without .ome.zarr",
				dashed(g.Flag.Name), NameToken, OutToken)
		}
	}
	return nil
}

func hasToken(values []any) bool {
	return slices.ContainsFunc(values, func(v any) bool {
		text, _ := v.(string)
		return strings.Contains(text, NameToken) || strings.Contains(text, OutToken)
	})
}

// Pair returns the command line for one pair of a command line with --batch. Its arguments are IN and OUT. In flags
// that name files, it replaces [NameToken] and [OutToken] by names derived from out.
func (l *Line) Pair(in, out string) *Line {
	p := *l
	p.args, p.behind = []string{in, out}, nil
	p.values = maps.Clone(l.values)
	p.values[BatchFlag] = l.values[BatchFlag].flag.newValue()
	stem := Stem(out)
	words := strings.NewReplacer(NameToken, path.Base(stem), OutToken, stem)
	for name, v := range l.values {
		if v.set && v.flag.namesFile() && name != BatchFlag {
			own := *v
			own.items = slices.Clone(v.items)
			for i, item := range own.items {
				own.items[i] = words.Replace(item.(string))
			}
			p.values[name] = &own
		}
	}
	return &p
}

// Written returns the files and folders that the given flags name as outputs.
func (l *Line) Written() (paths []string) {
	for _, g := range l.Given() {
		for _, v := range g.Values {
			if text, ok := v.(string); ok && g.Flag.Written {
				paths = append(paths, text)
			}
		}
	}
	return paths
}

// namesFile reports whether the values of a flag are files or folders.
func (f *Flag) namesFile() bool {
	return (f.Kind == String || f.Kind == Strings) && (strings.HasPrefix(f.Value, "FILE") || strings.HasPrefix(f.Value, "DIR"))
}

// Stem returns the path of an output without .ome.zarr or .zarr at its end: the beginning of the names of files
// beside it.
func Stem(out string) string {
	out = strings.TrimRight(out, "/")
	for _, suffix := range []string{".ome.zarr", ".zarr"} {
		if rest, ok := strings.CutSuffix(out, suffix); ok {
			return rest
		}
	}
	return out
}
