package manual

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"

	"strata/pkg/address"
	"strata/pkg/cli"
	"strata/pkg/cli/stage"
	"strata/pkg/oct/register"
	"strata/pkg/registration"
	"strata/pkg/runrecord"
	"strata/pkg/smallfile"
)

func applyCommand() *cli.Command {
	return &cli.Command{
		Name:  "apply",
		Usage: "make transforms of the places that view saved",
		Description: "Writes a folder per slice with transform.tfm, offsets.txt and " + register.MetricsName + ", for\n" +
			"stack --manual_transforms_dir, which prefers them to those of register.",
		Args: []cli.Arg{
			{Name: "OUT", Usage: "folder to write"},
			{Name: "PLACE", Usage: "file that view saved (NAME_place.json)", Many: true},
		},
		Shared: cli.Outputs | cli.Resources,
		Examples: []cli.Example{
			{Command: "manual apply by-hand/transforms slice_z04_place.json slice_z09_place.json", Usage: "for stack --manual_transforms_dir by-hand/transforms"},
		},
		Run: cli.Do(apply),
	}
}

func apply(ctx context.Context, r *cli.Run) error {
	places := map[int]string{}
	all := map[int]*registration.Placement{}
	for _, path := range r.Args("PLACE") {
		if _, err := r.LocalInput(path); err != nil {
			return err
		}
		text, err := smallfile.Read(ctx, path)
		if err != nil {
			return cli.BadInput(err)
		}
		p, err := registration.ReadPlacement(bytes.NewReader(text), path)
		if err != nil {
			return cli.BadInput(err)
		}
		id, _ := p.Slice()
		if other, ok := places[id]; ok {
			return cli.BadInput(fmt.Errorf("%s: slice %d has another place in %s: give one", path, id, other))
		}
		places[id], all[id] = path, p
		r.Read(runrecord.Dataset{Path: address.Address(path), Bytes: int64(len(text))})
	}
	for id, p := range all {
		if err := write(ctx, r, filepath.Join(r.Arg("OUT"), fmt.Sprintf("slice_z%02d", id)), p); err != nil {
			return err
		}
	}
	r.Wrote(runrecord.Dataset{Path: address.Address(r.Arg("OUT"))})
	r.Conclude("%d transforms", len(all))
	return nil
}

// write writes the files of a slice into its folder.
func write(ctx context.Context, r *cli.Run, dir string, p *registration.Placement) error {
	out, err := stage.StartPair(ctx, r, dir, p.Fixed, p.Moving, register.TransformName, register.OffsetsName)
	if err != nil {
		return err
	}
	files, err := register.Placed(p)
	if err != nil {
		return err
	}
	return out.Write(files)
}
