// Package benchtiff implements the command bench-tiff, which measures how fast TIFF files are read into memory or
// a GPU and converted to Zarr, compared with other programs. It also generates and converts files to measure with.
package benchtiff

import (
	"strata/cmd/internal/benchkit"
	"strata/pkg/cli"
)

// Command returns the command bench-tiff.
func Command() *cli.Command {
	return &cli.Command{
		Name:     "bench-tiff",
		Usage:    "measure how fast TIFF files are read into memory or a GPU and converted to Zarr, beside other programs",
		Commands: append([]*cli.Command{readCommand(), roundTripCommand(), convertCommand(), makeCommand()}, benchkit.Documents("bench-tiff")...),
	}
}

// measuring returns the flags of all commands that measure.
func measuring(reps string) []cli.Flag {
	return benchkit.Measuring(reps, "also measure tifffile, cuCIM, OpenSlide, tensorstore, zarr-python and KvikIO, where they are installed, in alternation")
}

// choosing returns the flags that select a page of a file.
func choosing() []cli.Flag {
	return []cli.Flag{
		{Name: "level", Kind: cli.Int, Value: "L", Check: cli.Between(0, 1<<10), Note: "0", Usage: "pyramid level to read, of the first image in the file (in a stack, of its first plane)"},
		{Name: "page", Kind: cli.Int, Value: "N", Check: cli.Between(0, 1<<30), Usage: "page (IFD) to read instead of a pyramid level, counted from 0"},
		{Name: "sub_ifd", Kind: cli.Int, Value: "K", Check: cli.Between(0, 1<<16), Usage: "sub-IFD of the page that --page names, counted from 0"},
		{Name: "cache", Default: "warm", Choices: []string{"warm", "cold"}, Usage: "state of the page cache before each repetition: warm (file cached) or cold (file dropped)"},
		{Name: "cold", Kind: cli.Bool, Usage: "drop the file from the page cache before each repetition; the same as --cache cold"},
	}
}
