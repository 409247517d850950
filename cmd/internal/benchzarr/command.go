// Package benchzarr is the command bench-zarr, which measures how fast Zarr arrays are read into memory or a GPU and
// written, which way that really takes, and how other programs do beside it. Other benchmarks of arrays use what it exports: they
// describe themselves by a [Tool].
package benchzarr

import (
	"fmt"
	"slices"
	"strings"

	"strata/cmd/internal/benchkit"
	"strata/pkg/cli"
)

// Command is bench-zarr.
func Command() *cli.Command {
	return &cli.Command{
		Name:     "bench-zarr",
		Usage:    "how fast Zarr arrays are read into memory or a GPU, and written, beside other programs",
		Commands: append([]*cli.Command{readCommand(), writeCommand(), sweepCommand()}, benchkit.Documents("bench-zarr")...),
	}
}

// measuring are the flags of all that measure.
func measuring(reps string) []cli.Flag {
	return []cli.Flag{
		{Name: "reps", Kind: cli.Int, Default: reps, Check: cli.Between(1, 1000), Usage: "repetitions"},
		{Name: "peers", Kind: cli.Bool, Usage: "other programs in turn: zarr-python, zarrs-python, tensorstore; on a GPU zarr-python and kvikio"},
		{Name: "python", Value: "FILE", Note: "that of VIRTUAL_ENV, build/venv or PATH", Usage: "Python of --peers"},
		{Name: "json", Value: "FILE", Usage: "write the results as JSON, for compare and html"},
		{Name: "html", Value: "FILE", Usage: "write a page with plots"},
	}
}

// reading are the flags of how arrays are read.
func reading(ops string) []cli.Flag {
	return []cli.Flag{
		{Name: "ops", Kind: cli.Strings, Default: ops, Check: Among(readOps...), Usage: "full: all; rand: boxes at seeded places; slab: a plane across each axis; stream: all, chunk by chunk into the same memory"},
		{Name: "to", Default: ToHost, Choices: []string{ToHost, ToDevice}, Usage: "where the elements end; backends of a GPU end there anyway"},
		{Name: "cache", Default: "warm", Choices: []string{"warm", "cold"}, Usage: "cold: the page cache forgets the array before each repetition"},
		{Name: "in_flight", Kind: cli.Int, Note: "as --threads; 2 regions for a GPU; the store's number for servers", Check: cli.Between(1, 4096), Usage: "chunks that are worked on at a time; regions on their way to a GPU; requests to a server"},
		{Name: "boxes", Kind: cli.Int, Default: "40", Check: cli.Between(1, 1e6), Usage: "of rand"},
		{Name: "edge", Kind: cli.Int, Default: "64", Check: cli.Between(1, 1e6), Usage: "of the boxes of rand, in elements"},
		{Name: "seed", Kind: cli.Int, Default: "1", Check: cli.Between(0, 1<<53), Usage: "of the places of rand, and of what is generated"},
	}
}

// generating are the flags of arrays that are made.
func generating(size string) []cli.Flag {
	return []cli.Flag{
		{Name: "size", Kind: cli.Size, Default: size, Check: cli.AtLeast(1), Usage: "of the array in memory; it is a block of whole chunks of at most that"},
		{Name: "shape", Kind: cli.Ints, Value: "Z,Y,X", Note: "by --size", Check: cli.Between(1, cli.MostAxis), Usage: "of the array"},
		{Name: "dtype", Default: "float32", Usage: "of its elements: integers or floats"},
		{Name: "ratio", Kind: cli.Float, Default: "2", Check: cli.Between(1, 100), Usage: "how many times codecs shall compress it"},
	}
}

// Among checks that a flag's values are in a list.
func Among(list ...string) func(any) error {
	return func(v any) error {
		if !slices.Contains(list, v.(string)) {
			return fmt.Errorf("%q is none of %s", v, strings.Join(list, ", "))
		}
		return nil
	}
}
