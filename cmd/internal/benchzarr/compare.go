package benchzarr

import (
	"context"
	"fmt"
	"io"
	"strings"

	"strata/pkg/bench"
	"strata/pkg/cli"
	"strata/pkg/document"
)

// CompareCommand is the command that compares two runs of a program of that name.
func CompareCommand(tool string) *cli.Command {
	return &cli.Command{
		Name:  "compare",
		Usage: "sets the results of two runs side by side",
		Description: "Results of the same operation, axes and program are compared: how many times as fast B is as A, and whether\n" +
			"the repetitions of the two overlap, so that the difference may be the machine's. Documents of bench-io are taken too.",
		Args: []cli.Arg{{Name: "A.json", Usage: "results, as --json writes them"}, {Name: "B.json", Usage: "results of another run"}},
		Examples: []cli.Example{
			{Command: tool + " compare before.json after.json", Usage: "what a change did"},
		},
		Run: func(ctx context.Context, r *cli.Run) error {
			a, err := readDocument(ctx, r, r.Arg("A.json"))
			if err != nil {
				return err
			}
			b, err := readDocument(ctx, r, r.Arg("B.json"))
			if err != nil {
				return err
			}
			return bench.Compare(a, b, r.Arg("A.json"), r.Arg("B.json")).Table(r.Stdout)
		},
	}
}

// HTMLCommand is the command that makes a page of a run of a program of that name.
func HTMLCommand(tool string) *cli.Command {
	return &cli.Command{
		Name:   "html",
		Usage:  "makes a page with plots of the results of a run",
		Args:   []cli.Arg{{Name: "RESULTS.json", Usage: "as --json writes them"}, {Name: "OUT", Usage: "page to write; a plot alone where it ends in .svg"}},
		Shared: cli.Outputs,
		Examples: []cli.Example{
			{Command: tool + " html sweep.json sweep.html", Usage: "one page, which needs no other file"},
			{Command: tool + " html sweep.json sweep.svg", Usage: "a plot for a document"},
		},
		Run: func(ctx context.Context, r *cli.Run) error {
			d, err := readDocument(ctx, r, r.Arg("RESULTS.json"))
			if err != nil {
				return err
			}
			out, err := r.OutputFile(r.Arg("OUT"))
			if err != nil {
				return err
			}
			if strings.HasSuffix(out.Path(), ".svg") {
				return out.Write(func(w io.Writer) error { return d.SVG(w, d.Tool, nil) })
			}
			return out.Write(d.HTML)
		},
	}
}

// readDocument reads results that a run has written.
func readDocument(ctx context.Context, r *cli.Run, path string) (*bench.Document, error) {
	path, err := r.Input(path)
	if err != nil {
		return nil, err
	}
	if strings.Contains(path, "://") {
		return nil, cli.Usage("input %s: want a local file", path)
	}
	f, err := document.Open(ctx, path)
	if err != nil {
		return nil, cli.BadInput(err)
	}
	defer f.Close()
	d, err := bench.ReadJSON(f)
	if err != nil {
		return nil, cli.BadInput(fmt.Errorf("%s: %w", path, err))
	}
	return d, nil
}
