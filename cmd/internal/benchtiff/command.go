// Package benchtiff is the command bench-tiff, which measures how fast TIFF files are read into memory or a GPU and turned into
// Zarr, beside other programs. It also makes and converts files to measure with.
package benchtiff

import (
	"strata/cmd/internal/benchkit"
	"strata/pkg/cli"
)

// Command is bench-tiff.
func Command() *cli.Command {
	return &cli.Command{
		Name:     "bench-tiff",
		Usage:    "how fast TIFF files are read into memory or a GPU, and turned into Zarr, beside other programs",
		Commands: append([]*cli.Command{readCommand(), roundTripCommand(), convertCommand(), makeCommand()}, benchkit.Documents("bench-tiff")...),
	}
}

// measuring are the flags of all that measure.
func measuring(reps string) []cli.Flag {
	return []cli.Flag{
		{Name: "reps", Kind: cli.Int, Default: reps, Check: cli.Between(1, 1000), Usage: "repetitions"},
		{Name: "peers", Kind: cli.Bool, Usage: "run the peer programs alternately: tifffile, cuCIM, OpenSlide, tensorstore, zarr-python, KvikIO"},
		{Name: "python", Value: "FILE", Note: "that of VIRTUAL_ENV, build/venv or PATH", Usage: "Python of --peers"},
		{Name: "json", Value: "FILE", Usage: "write the results as JSON, for compare and html"},
		{Name: "html", Value: "FILE", Usage: "write a page with plots"},
	}
}

// choosing are the flags that name a page of a file.
func choosing() []cli.Flag {
	return []cli.Flag{
		{Name: "level", Kind: cli.Int, Value: "L", Check: cli.Between(0, 1<<10), Note: "0", Usage: "pyramid level of the file's first image; of a stack, its first plane"},
		{Name: "page", Kind: cli.Int, Value: "N", Check: cli.Between(0, 1<<30), Usage: "page (IFD) of the file instead, counted from 0"},
		{Name: "sub_ifd", Kind: cli.Int, Value: "K", Check: cli.Between(0, 1<<16), Usage: "of that page the sub-IFD, counted from 0"},
		{Name: "cache", Default: "warm", Choices: []string{"warm", "cold"}, Usage: "cold: the page cache forgets the file before each repetition"},
		{Name: "cold", Kind: cli.Bool, Usage: "the same as --cache cold"},
	}
}
