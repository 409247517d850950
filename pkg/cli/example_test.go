package cli_test

import (
	"context"
	"os"

	"strata/pkg/address"
	"strata/pkg/cli"
	"strata/pkg/runrecord"
)

// A whole binary: it copies a file's size into a text file.
func Example() {
	command := &cli.Command{
		Name: "measure", Usage: "write the size of a file",
		Args: []cli.Arg{
			{Name: "IN", Usage: "file to measure"},
			{Name: "OUT", Usage: "text file to write"},
		},
		Shared:   cli.Outputs, // --overwrite, --sync
		Flags:    []cli.Flag{{Name: "factor", Kind: cli.Float, Default: "1", Check: cli.Above(0), Usage: "multiply the size"}},
		Examples: []cli.Example{{Command: "measure in.txt out.txt --factor 2", Usage: "twice the size"}},
		Run: cli.Do(func(ctx context.Context, r *cli.Run) error {
			in, err := r.Input(r.Arg("IN"))
			if err != nil {
				return err
			}
			out, err := r.OutputFile(r.Arg("OUT"))
			if err != nil {
				return err
			}
			data, err := os.ReadFile(in)
			if err != nil {
				return cli.BadInput(err)
			}
			task := r.Progress("measure", int64(len(data)))
			r.Meter.AddRead(int64(len(data)))
			r.Read(runrecord.Dataset{Path: address.Address(in), Bytes: int64(len(data))})
			task.Add(int64(len(data)))
			r.Wrote(runrecord.Dataset{Path: address.Address(out.Path())})
			return os.WriteFile(out.Work(), []byte{byte(float64(len(data)) * r.Float("factor"))}, 0o666)
		}),
	}
	if err := command.Check(); err != nil {
		panic(err)
	}
	cli.Main(command)
}
