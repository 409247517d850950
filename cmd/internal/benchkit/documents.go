// Package benchkit holds what the benchmark commands share: measuring several ways in turn, the processes of peer
// programs, the flags and commands that write results and show them again, and dropping files from the page cache.
package benchkit

import (
	"context"
	"fmt"
	"io"
	"strings"

	"strata/pkg/atomic"
	"strata/pkg/bench"
	"strata/pkg/cli"
	"strata/pkg/smallfile"
)

// Documents returns the commands compare and html of a benchmark program.
func Documents(tool string) []*cli.Command {
	return []*cli.Command{compareCommand(tool), htmlCommand(tool)}
}

func compareCommand(tool string) *cli.Command {
	return &cli.Command{
		Name:  "compare",
		Usage: "compare the results of two runs",
		Description: "Compares results of the same operation, settings and program: how many times as fast B is as A, and whether the\n" +
			"repetitions of both overlap, so that the difference may be chance. Takes the JSON of all bench programs.",
		Args: []cli.Arg{{Name: "A.json", Usage: "results of a run, written by --results"}, {Name: "B.json", Usage: "results of another run"}},
		Examples: []cli.Example{
			{Command: tool + " compare before.json after.json", Usage: "the effect of a change"},
		},
		Run: cli.Do(func(ctx context.Context, r *cli.Run) error {
			a, err := readDocument(ctx, r, r.Arg("A.json"))
			if err != nil {
				return err
			}
			b, err := readDocument(ctx, r, r.Arg("B.json"))
			if err != nil {
				return err
			}
			return bench.Compare(a, b, r.Arg("A.json"), r.Arg("B.json")).Table(r.Stdout)
		}),
	}
}

func htmlCommand(tool string) *cli.Command {
	return &cli.Command{
		Name:   "html",
		Usage:  "draw the results of a run as a web page with plots",
		Args:   []cli.Arg{{Name: "RESULTS.json", Usage: "results of a run, written by --results"}, {Name: "OUT", Usage: "web page to write, or a plot if the name ends in .svg"}},
		Shared: cli.Outputs,
		Examples: []cli.Example{
			{Command: tool + " html sweep.json sweep.html", Usage: "one self-contained page"},
			{Command: tool + " html sweep.json sweep.svg", Usage: "a plot for a document"},
		},
		Run: cli.Do(func(ctx context.Context, r *cli.Run) error {
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
		}),
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
	f, err := smallfile.Open(ctx, path)
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

// Outputs opens the files that --results and --html name; nil for a flag that is not given.
func Outputs(r *cli.Run) (json, html *atomic.Output, err error) {
	if json, err = r.OptionalFile("results"); err != nil {
		return nil, nil, err
	}
	html, err = r.OptionalFile("html")
	return json, html, err
}

// Reporting returns the flags that say where results go, which [Outputs] opens.
func Reporting() []cli.Flag {
	return []cli.Flag{
		{Name: "results", Aliases: []string{"json"}, Value: "FILE", Usage: "also write the results to FILE as JSON, which compare and html read"},
		{Name: "html", Value: "FILE", Usage: "also write the results to FILE as a web page with plots"},
	}
}

// Measuring returns the flags of commands that measure beside other programs: the default number of repetitions, and
// what --peers does.
func Measuring(reps, peers string) []cli.Flag {
	return append([]cli.Flag{
		{Name: "reps", Kind: cli.Int, Default: reps, Check: cli.Between(1, 1000), Usage: "number of repetitions of each measurement, 1 to 1000"},
		{Name: "peers", Kind: cli.Bool, Usage: peers},
		{Name: "python", Value: "FILE", Note: "that of VIRTUAL_ENV, build/venv or PATH", Usage: "Python interpreter that runs the programs of --peers"},
	}, Reporting()...)
}

// FixedMem makes --mem of a benchmark the same on all machines by default, so that their results compare.
var FixedMem = cli.Defaults{"mem": "512MiB"}
