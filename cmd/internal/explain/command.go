// Package explain implements the command explain of strata, which says how an image was made.
package explain

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"

	"strata/pkg/address"
	"strata/pkg/cli"
	"strata/pkg/provenance"
	"strata/pkg/runrecord"
	"strata/pkg/zarr/store"
)

// Command returns the command explain.
func Command() *cli.Command {
	return &cli.Command{
		Name:  "explain",
		Usage: "say how an image was made: commands, inputs, versions, warnings, what changed since, and a paragraph for a paper",
		Description: "Follows an image back to the raw data by the run records of --report, which it finds beside the image, in\n" +
			"the folder above, and in folders called reports up to three levels above, where the workflow keeps them; the\n" +
			"same for each input. Where there is no record, the image names its program and command itself.\n\n" +
			"Says which inputs have changed since (stale), and what is missing; neither is an error.",
		Args: []cli.Arg{{Name: "IMAGE", Usage: "image, table or other file that a program wrote: folder, file, or http(s):// or s3:// URL"}},
		Flags: []cli.Flag{
			{Name: "records", Kind: cli.Strings, Value: "PATH,...", Usage: "further run records, or folders of them"},
			{Name: "methods", Kind: cli.Bool, Usage: "print only the paragraph for a paper, with its references"},
			{Name: "json", Kind: cli.Bool, Usage: "print JSON instead of text"},
			{Name: "all", Kind: cli.Bool, Usage: "print every input where many were made in the same way"},
			{Name: "remote", Kind: cli.Bool, Usage: "also look at inputs on servers that IMAGE is not on"},
		},
		Shared: cli.Resources,
		Examples: []cli.Example{
			{Command: "strata explain results/volume/volume.ome.zarr", Usage: "from the volume back to the mosaics"},
			{Command: "strata explain results/volume/volume.ome.zarr --methods", Usage: "only the paragraph"},
			{Command: "strata explain s3://bucket/slice.ome.zarr --records reports", Usage: "records do not lie beside images in buckets"},
			{Command: "strata explain volume.ome.zarr --json", Usage: "for scripts"},
		},
		Run: cli.Do(run),
	}
}

func run(ctx context.Context, r *cli.Run) error {
	if r.Bool("methods") && r.Bool("json") {
		return cli.Usage("--methods contradicts --json, which has the paragraph too: give one of them")
	}
	image, err := r.Input(r.Arg("IMAGE"))
	if err != nil {
		return err
	}
	for _, path := range r.Strings("records") {
		if _, err := r.LocalInput(path); err != nil {
			return err
		}
	}
	h, err := provenance.Trace(ctx, image, provenance.Options{Records: r.Strings("records"), Remote: r.Bool("remote"), Requests: []store.HTTPOption{store.Settings(r.Options.HTTP)}})
	if err != nil {
		return failed(ctx, err)
	}
	switch first := h.Images[0]; {
	case first.Kind == provenance.Missing:
		return cli.BadInputf("%s: there is nothing", address.Address(image))
	case first.Kind == provenance.Unseen && first.Run == nil:
		return cli.BadInputf("%s: %s", address.Address(image), first.Problems[0].Text)
	}
	r.Read(runrecord.Dataset{Path: address.Address(image), Shape: h.Images[0].Shape, DType: h.Images[0].DType, Bytes: -1})
	for _, note := range h.Notes {
		r.Warn("%s", note)
	}
	return printed(r, h)
}

// printed prints what the flags ask for.
func printed(r *cli.Run, h *provenance.History) error {
	switch {
	case r.Bool("json"):
		e := json.NewEncoder(r.Stdout)
		e.SetIndent("", "  ")
		e.SetEscapeHTML(false)
		return e.Encode(h)
	case !r.Bool("methods"):
		return printText(r.Stdout, h, r.Bool("all"))
	case h.Methods.Paragraph == "":
		return cli.BadInputf("%s: no run is known that made it or its inputs, so there are no methods: name the run records with --records", h.Image)
	}
	_, err := io.WriteString(r.Stdout, h.Methods.String())
	return err
}

// failed gives an error its exit code: records that the user named have to be records.
func failed(ctx context.Context, err error) error {
	if ctx.Err() != nil || errors.Is(err, fs.ErrPermission) {
		return err
	}
	return cli.BadInput(err)
}
