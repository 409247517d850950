// Package cli is the command line that every binary shares: flags that may
// stand anywhere, help, completion, exit codes, logs, progress, the run record
// and outputs that are whole or not there at all.
//
// It starts commands, and names what programs need of its parts: package flags describes commands and parses by
// github.com/urfave/cli, package run carries out what a command does, package help prints what a command says of
// itself.
//
// A binary describes itself and leaves the rest to [Main]:
//
//	func main() { cli.Main(command()) }
//
//	func command() *cli.Command {
//		return &cli.Command{
//			Name: "aip", Usage: "average intensity projection of a mosaic grid",
//			Args:   []cli.Arg{{Name: "IN", Usage: "OME-Zarr mosaic grid"}, {Name: "OUT", Usage: "OME-Zarr image to write"}},
//			Shared: cli.Stage, // the flags that every stage has
//			Flags:  []cli.Flag{{Name: "png", Value: "FILE", Usage: "also write a 16-bit greyscale PNG"}},
//			Run:    cli.Do(run),
//		}
//	}
//
//	func run(ctx context.Context, r *cli.Run) error {
//		in, err := r.Input(r.Arg("IN"))   // exists; exit 3 if not
//		out, err := r.Output(ctx, r.Arg("OUT")) // refused here if it cannot be written
//		task := r.Progress("project", total)
//		… read with r.Options.Threads workers, r.Options.Mem bytes of buffers, r.Meter …
//		… write into out.Work(), task.Add(bytes) …
//		r.Wrote(runrecord.Dataset{Path: out.Path(), …})
//		return nil                        // now out is put in place
//	}
//
// A run ends with one line on standard error: its outputs, from what it told [Run.Wrote], and what it told
// [Run.Conclude]. What it settles on the way goes to [Run.Decided], which --verbose shows.
//
// Options of a stage are bound to their flags by [Bind]: the default of the flag is what the option
// holds before, and Run finds the flag's value there.
//
// Flags that are lists of numbers take all numbers that follow them: put a
// positional that is a number behind "--", or write it "./10".
//
// What Run returns decides the exit code: see [Usage], [BadInput] and
// [GPUFailure]. On SIGINT and SIGTERM its context is cancelled; it should
// return soon, its outputs are removed, and the exit code is 130 or 143. A
// second signal kills at once.
package cli
