package register

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"strata/pkg/address"
	"strata/pkg/atomic"
	"strata/pkg/cli"
	"strata/pkg/cli/stage"
	"strata/pkg/oct/register"
	"strata/pkg/record"
	"strata/pkg/units"
)

// runAll registers the neighbours of a folder.
func runAll(ctx context.Context, r *cli.Run, o register.Options) error {
	if r.Arg("OUT_DIR") != "" {
		return cli.Usage("--all takes two arguments, the folder of slices and the folder to write")
	}
	picture := r.String("screenshot")
	if picture != "" && plainName(picture) != nil {
		return cli.Usage("--screenshot: with --all it is the name of a file, which is written into each folder")
	}
	opened, err := stage.OpenSlices(ctx, r, r.Arg("FIXED"), r.String("on_error") == "skip")
	if err != nil {
		return err
	}
	var all []register.Numbered
	for _, s := range opened {
		all = append(all, register.Numbered{ID: s.ID, Slice: register.Slice{Path: address.Address(s.Path).String(), Image: s.Image}, Err: s.Err})
	}
	pairs := register.Pairs(all)
	if len(pairs) == 0 {
		return cli.BadInputf("%s: holds one slice only: there is nothing to register it with", r.Arg("FIXED"))
	}
	outs := make([]*atomic.Output, len(pairs))
	for k, p := range pairs {
		if n := p.Missing(); n > 0 {
			r.Warn("between slices %d and %d, %s missing: they are registered with each other", p.Fixed.ID, p.Moving.ID, are(n))
		}
		if outs[k], err = r.OutputFolder(filepath.Join(r.Arg("MOVING"), folderName(p.Moving.Path)), r.String("out_transform"), register.MetricsName); err != nil {
			return err
		}
	}
	task := r.Progress("register", 0)
	results, err := register.All(ctx, pairs, o, r.String("on_error") == "stop", stage.Resources(r, task), func(k int, result *register.Result) error {
		if err := result.Write(outs[k].Work(), r.String("out_transform"), r.String("out_offsets")); err != nil {
			return err
		}
		if picture == "" {
			return nil
		}
		f, err := os.Create(filepath.Join(outs[k].Work(), picture))
		if err != nil {
			return err
		}
		err = result.Picture(f)
		if e := f.Close(); err == nil {
			err = e
		}
		return err
	})
	if err != nil {
		return stage.Failed(err)
	}
	task.Done()
	registered := 0
	for k, result := range results {
		if result.Refused == "" {
			registered++
		}
		for _, w := range result.Warnings {
			r.Warn("slices %d and %d: %s", pairs[k].Fixed.ID, pairs[k].Moving.ID, w)
		}
		if result.Unread {
			r.Warn("slices %d and %d: skipped, the identity is written: %s", pairs[k].Fixed.ID, pairs[k].Moving.ID, result.Refused)
		}
		r.Wrote(record.Dataset{Path: address.Address(outs[k].Path())})
	}
	r.Conclude("%d of %s registered", registered, units.Count(len(pairs), "pair"))
	return nil
}

// are says how many slices are missing.
func are(n int) string {
	if n == 1 {
		return "one slice is"
	}
	return units.Count(n, "slice") + " are"
}

// folderName returns the name of a slice's folder: that of the slice without its suffixes.
func folderName(path string) string {
	name := filepath.Base(strings.TrimRight(path, "/"))
	for _, suffix := range []string{".zip", ".zarr", ".ome"} {
		name = strings.TrimSuffix(name, suffix)
	}
	return name
}
