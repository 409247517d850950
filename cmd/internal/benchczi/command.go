// Package benchczi implements the command bench-czi, which measures how fast the tiles of a CZI file are read by
// each way of reading several at a time, where the time goes when reading one, and how other programs compare.
package benchczi

import (
	"slices"

	"strata/cmd/internal/benchkit"
	"strata/pkg/cli"
)

// tool is the program's name.
const tool = "bench-czi"

// Command returns the command bench-czi.
func Command() *cli.Command {
	return &cli.Command{
		Name:     tool,
		Usage:    "measure how fast the tiles of CZI files are read in which way, and where the time goes",
		Commands: append([]*cli.Command{runCommand(), profileCommand(), quickCommand()}, benchkit.Documents(tool)...),
		Aliases: []cli.Alias{
			{Name: "benchmark-czi-loading", Command: "run"},
			{Name: "profile-czi-loading", Command: "profile"},
			{Name: "quick-test-czi", Command: "quick"},
		},
	}
}

var fileArgument = []cli.Arg{{Name: "FILE", Usage: "CZI file: path, or http(s):// or s3:// URL"}}

// choosing returns the flags that choose tiles.
func choosing(most, note string) []cli.Flag {
	return []cli.Flag{
		{Name: "max_tiles", Kind: cli.Int, Value: "N", Default: most, Note: note, Check: cli.AtLeast(1), Usage: "read only the first N tiles of level 0"},
		{Name: "channel", Kind: cli.Int, Value: "C", Note: "all", Check: cli.Between(0, 1<<30), Usage: "read only the tiles of this channel, counted from 0"},
		{Name: "scene", Kind: cli.Int, Value: "S", Note: "all", Check: cli.Between(0, 1<<30), Usage: "read only the tiles of this scene, counted from 0"},
		{Name: "cold", Kind: cli.Bool, Usage: "drop the file from the page cache before each repetition"},
	}
}

func flags(lists ...[]cli.Flag) []cli.Flag { return slices.Concat(lists...) }
