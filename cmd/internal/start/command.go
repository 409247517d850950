// Package start implements the command start of strata, which looks at a folder and says what to do with it.
package start

import (
	"context"
	"errors"

	"strata/pkg/address"
	"strata/pkg/cli"
	"strata/pkg/cli/stage"
	"strata/pkg/runrecord"
	"strata/pkg/survey"
	"strata/pkg/tilefiles"
)

// Command returns the command start.
func Command() *cli.Command {
	return &cli.Command{
		Name:  "start",
		Usage: "look at a folder, say what it has, and print the commands that come next",
		Description: "Recognises tiles in TIFF, PNG and .npy files, raw OCT tiles, mosaic grids, CZI and slide scans, stacks and\n" +
			"OME-Zarr images. Names tell which number is what; a limited number of tiles is read where they do not tell how\n" +
			"tiles lie, and to measure the overlap. Prints the evidence and the commands, writes params.yml for the workflow\n" +
			"where it applies, and shows a preview in the browser until Ctrl-C.\n\n" +
			"Never writes into FOLDER. Flags overrule what is guessed.",
		Args: []cli.Arg{{Name: "FOLDER", Usage: "folder with what a microscope wrote"}},
		Flags: append(stage.TileFlags(),
			cli.Flag{Name: "overlap", Kind: cli.Float, Note: "measured", Check: stage.CheckOverlap, Usage: "fraction of a tile that its neighbour covers too, from 0 to below 1"},
			cli.Flag{Name: "out", Value: "DIR", Note: "the current one", Usage: "existing folder for params.yml"},
			cli.Flag{Name: "preview", Value: "FILE", Usage: "write the preview to a .png file instead of showing it"},
			cli.Flag{Name: "browser", Kind: cli.Bool, Default: "true", Usage: "open the preview in a browser; --no-browser prints its address"},
			cli.Flag{Name: "json", Kind: cli.Bool, Usage: "print what was found as one JSON document; write params.yml only with --out, and show nothing"},
		),
		Shared:   cli.Resources | cli.Outputs,
		Defaults: cli.Defaults{"mem": "256MiB"},
		Examples: []cli.Example{
			{Command: "strata start scan", Usage: "what is in the folder scan, and what to do"},
			{Command: "strata start scan --no-browser", Usage: "print the address of the preview"},
			{Command: "strata start scan --pattern 'tile_{index}.tif' --grid 6,8 --snake", Usage: "names and grid are known; the rest is measured"},
			{Command: "strata start scan --json", Usage: "for scripts"},
		},
		Run: cli.Do(run),
	}
}

func run(ctx context.Context, r *cli.Run) error {
	opt, err := options(r)
	if err != nil {
		return err
	}
	folder, err := r.LocalInput(r.Arg("FOLDER"))
	if err != nil {
		return err
	}
	picture, err := pictureFile(r)
	if err != nil {
		return err
	}
	params, err := paramsFile(r, folder)
	if err != nil {
		return err
	}
	defer params.Abort()
	l, err := survey.List(ctx, folder)
	if err != nil {
		return cli.BadInput(err)
	}
	for _, name := range l.Unreadable[:min(3, len(l.Unreadable))] {
		r.Warn("%s: %s: no permission to look into it", folder, tilefiles.Name(name))
	}
	found, err := survey.Look(ctx, l, opt)
	var option *tilefiles.OptionError
	switch {
	case errors.As(err, &option):
		return cli.Usage("%w", err)
	case err != nil:
		return cli.BadInput(err)
	}
	if err := params.write(r, found); err != nil {
		return err
	}
	if r.Bool("json") {
		err = printJSON(r, l, found)
	} else {
		err = printText(r, l, found, params)
	}
	if err != nil {
		return err
	}
	r.Read(runrecord.Dataset{Path: address.Address(folder)})
	return show(ctx, r, found[0], picture)
}

// options returns what flags overrule.
func options(r *cli.Run) (survey.Options, error) {
	opt := survey.Options{Pattern: r.String("pattern"), Ordered: r.IsSet("order"), Snaked: r.IsSet("snake"), Started: r.IsSet("start")}
	var err error
	if opt.Tiles, err = stage.TileOptions(r); err != nil {
		return opt, err
	}
	if r.IsSet("overlap") {
		overlap := r.Float("overlap")
		opt.Overlap = &overlap
	}
	if r.Bool("json") && r.IsSet("browser") {
		return opt, cli.Usage("--json shows nothing: leave out --browser and --no-browser")
	}
	return opt, nil
}
