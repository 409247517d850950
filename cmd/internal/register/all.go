package register

import (
	"context"
	"path/filepath"
	"strings"

	"strata/pkg/address"
	"strata/pkg/cli"
	"strata/pkg/cli/stage"
	"strata/pkg/oct/register"
	"strata/pkg/runrecord"
	"strata/pkg/units"
)

// runAll registers the neighbours of a folder.
func runAll(ctx context.Context, r *cli.Run, o register.Options) error {
	if r.Arg("OUT_DIR") != "" {
		return cli.Usage("--all takes two arguments, the folder of slices and the folder to write")
	}
	picture := r.String("screenshot")
	names := []string{r.String("out_transform"), r.String("out_offsets")}
	if picture != "" {
		if err := fileName(".png")(picture); err != nil {
			return cli.Usage("--screenshot %s: %w, since --all writes one into each folder", picture, err)
		}
		names = append(names, picture)
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
	outs := make([]*stage.PairFolder, len(pairs))
	for k, p := range pairs {
		if n := p.Missing(); n > 0 {
			r.Warn("between slices %d and %d, %s missing: they are registered with each other", p.Fixed.ID, p.Moving.ID, are(n))
		}
		dir := filepath.Join(r.Arg("MOVING"), folderName(p.Moving.Path))
		if outs[k], err = stage.StartPair(ctx, r, dir, p.Fixed.Path, p.Moving.Path, names...); err != nil {
			return err
		}
	}
	task := r.Progress("register", 0)
	results, err := register.All(ctx, pairs, o, r.String("on_error") == "stop", stage.Resources(r, task), func(k int, result *register.Result) error {
		var others []register.File
		if picture != "" {
			others = append(others, register.File{Name: picture, Fill: result.Picture})
		}
		files, err := result.Files(names[0], names[1], others...)
		if err != nil {
			return err
		}
		return outs[k].Write(files)
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
		r.Wrote(runrecord.Dataset{Path: address.Address(outs[k].Path)})
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
