// Package benchzarr implements the command bench-zarr, which measures how fast Zarr arrays are read into memory or
// a GPU and written, which way the data really takes, and how other programs compare. Other benchmarks of arrays
// use what it exports and describe themselves by a [Tool].
package benchzarr

import (
	"fmt"
	"slices"
	"strings"

	"strata/cmd/internal/benchkit"
	"strata/pkg/cli"
)

// Command returns the command bench-zarr.
func Command() *cli.Command {
	return &cli.Command{
		Name:     "bench-zarr",
		Usage:    "measure how fast Zarr arrays are read into memory or a GPU, and written, beside other programs",
		Commands: append([]*cli.Command{readCommand(), writeCommand(), sweepCommand()}, benchkit.Documents("bench-zarr")...),
	}
}

// measuring returns the flags of all commands that measure.
func measuring(reps string) []cli.Flag {
	return benchkit.Measuring(reps, "also measure zarr-python, zarrs-python and tensorstore (on a GPU zarr-python and kvikio), where they are installed, in alternation")
}

// reading returns the flags that say how arrays are read.
func reading(ops string) []cli.Flag {
	return []cli.Flag{
		{Name: "ops", Kind: cli.Strings, Default: ops, Check: Among(readOps...), Usage: "operations to measure: full reads the whole array, rand boxes at random places, slab a plane across each axis, stream the whole array chunk by chunk into the same memory"},
		{Name: "to", Default: ToHost, Choices: []string{ToHost, ToDevice}, Usage: "destination of the elements: memory (host) or a GPU (device); backends that need a GPU always end there"},
		{Name: "cache", Default: "warm", Choices: []string{"warm", "cold"}, Usage: "state of the page cache before each repetition: warm (array cached) or cold (array dropped)"},
		{Name: "in_flight", Kind: cli.Int, Note: "same as --threads; 2 regions for a GPU; the number that suits a server", Check: cli.Between(1, 4096), Usage: "number of chunks in work at a time, of regions on their way to a GPU, or of requests to a server, 1 to 4096"},
		{Name: "boxes", Kind: cli.Int, Default: "40", Check: cli.Between(1, 1e6), Usage: "number of boxes that --ops rand reads"},
		{Name: "edge", Kind: cli.Int, Default: "64", Check: cli.Between(1, 1e6), Usage: "edge length of the boxes that --ops rand reads, in elements"},
		{Name: "seed", Kind: cli.Int, Default: "1", Check: cli.Between(0, 1<<53), Usage: "seed of the random places of --ops rand and of generated data, from 0"},
	}
}

// generating returns the flags of generated arrays.
func generating(size string) []cli.Flag {
	return []cli.Flag{
		{Name: "size", Kind: cli.Size, Default: size, Check: cli.AtLeast(1), Usage: "size in memory of a generated array: as many whole chunks as fit"},
		{Name: "shape", Kind: cli.Ints, Value: "Z,Y,X", Note: "from --size", Check: cli.Between(1, cli.MostAxis), Usage: "shape of a generated array"},
		{Name: "dtype", Default: "float32", Usage: "element type of a generated array: an integer or float type"},
		{Name: "ratio", Kind: cli.Float, Default: "2", Check: cli.Between(1, 100), Usage: "compression ratio that generated data allow, 1 to 100"},
	}
}

// Among returns a check that a flag's values are in a list.
func Among(list ...string) func(any) error {
	return func(v any) error {
		if !slices.Contains(list, v.(string)) {
			return fmt.Errorf("%q is not one of %s", v, strings.Join(list, ", "))
		}
		return nil
	}
}
