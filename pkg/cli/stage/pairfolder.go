package stage

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"

	"strata/pkg/atomic"
	"strata/pkg/cli"
	"strata/pkg/oct/register"
	"strata/pkg/registration"
	"strata/pkg/smallfile"
)

// PairFolder holds the outputs of the registration of a pair: files in a folder, in which others stay as they are.
type PairFolder struct {
	Path string
	outs []*atomic.Output
}

// StartPair starts the files for a pair of slices in the folder dir. fixed and moving are the slices' names in the
// metrics. names lists the files that the run may write; the metrics are put in place last. Files that the run does not
// write, and files that an earlier run for the same pair left under other names, are removed.
func StartPair(ctx context.Context, r *cli.Run, dir, fixed, moving string, names ...string) (*PairFolder, error) {
	p := &PairFolder{Path: dir}
	names = append([]string{registration.ElasticName}, append(slices.Clone(names), register.MetricsName)...)
	if r.Options.Overwrite {
		names = append(left(ctx, dir, fixed, moving, names), names...)
	}
	for _, name := range names {
		out, err := r.OutputFile(filepath.Join(dir, name), notOffsets)
		if err != nil {
			return nil, err
		}
		p.outs = append(p.outs, out)
	}
	return p, nil
}

// notOffsets describes a text file that does not hold the planes of a pair.
func notOffsets(path string) (string, error) {
	if filepath.Ext(path) != ".txt" {
		return "", nil
	}
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || info.Size() == 0 {
		return "", err
	}
	if _, err := registration.ReadOffsets(f, path); err != nil {
		return "no file of offsets", nil
	}
	return "", nil
}

// left returns the names of unchanged files that an earlier registration of the same pair wrote, other than names.
func left(ctx context.Context, dir, fixed, moving string, names []string) (others []string) {
	old, err := registration.OpenMetrics(ctx, filepath.Join(dir, register.MetricsName))
	if err != nil || old.Fixed != fixed || old.Moving != moving {
		return nil
	}
	for name, digest := range old.Files {
		path := filepath.Join(dir, name)
		if slices.Contains(names, name) || name != filepath.Base(name) {
			continue
		}
		if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() {
			continue
		}
		if content, err := smallfile.Read(ctx, path); err == nil && smallfile.Digest(content) == digest {
			others = append(others, name)
		}
	}
	slices.Sort(others)
	return others
}

// Write writes the files of the pair.
func (p *PairFolder) Write(files []register.File) error {
	for _, out := range p.outs {
		i := slices.IndexFunc(files, func(f register.File) bool { return filepath.Join(p.Path, f.Name) == out.Path() })
		if i < 0 {
			out.Absent()
			continue
		}
		if err := out.Write(func(w io.Writer) error { _, err := w.Write(files[i].Content); return err }); err != nil {
			return err
		}
	}
	return nil
}
