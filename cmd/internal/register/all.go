package register

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"strata/pkg/address"
	"strata/pkg/atomic"
	"strata/pkg/cli"
	"strata/pkg/cli/datasets"
	"strata/pkg/cli/stage"
	"strata/pkg/oct/register"
	"strata/pkg/oct/slicefiles"
	"strata/pkg/record"
	"strata/pkg/units"
	"strata/pkg/zarr/store"
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
	all, err := openAll(ctx, r)
	if err != nil {
		return err
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

// openAll opens the slices of the folder. With --on_error skip, one that cannot be opened is listed with the reason.
func openAll(ctx context.Context, r *cli.Run) (all []register.Numbered, err error) {
	dir, err := r.Input(r.Arg("FIXED"))
	if err != nil {
		return nil, err
	}
	files, err := slicefiles.Find(ctx, dir, store.Settings(r.Options.HTTP))
	if err != nil {
		return nil, stage.Failed(err)
	}
	for _, f := range files {
		s := register.Numbered{ID: f.ID, Slice: register.Slice{Path: address.Address(f.Path).String()}}
		if s.Image, s.Err = stage.Open(ctx, r, f.Path); s.Err == nil {
			r.Read(datasets.DescribeImage(s.Image, f.Path))
		} else if r.String("on_error") == "stop" || ctx.Err() != nil {
			return nil, s.Err
		}
		all = append(all, s)
	}
	return all, nil
}

// folderName returns the name of a slice's folder: that of the slice without its suffixes.
func folderName(path string) string {
	name := filepath.Base(strings.TrimRight(path, "/"))
	for _, suffix := range []string{".zip", ".zarr", ".ome"} {
		name = strings.TrimSuffix(name, suffix)
	}
	return name
}
