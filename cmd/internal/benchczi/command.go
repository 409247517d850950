// Package benchczi is the command bench-czi, which measures how fast the tiles of a CZI file are read by each way of reading several
// at a time, where the time goes in reading one, and how other programs do.
package benchczi

import (
	"slices"

	"strata/cmd/internal/benchkit"
	"strata/pkg/cli"
)

// tool is the program's name.
const tool = "bench-czi"

// Command is bench-czi.
func Command() *cli.Command {
	return &cli.Command{
		Name:     tool,
		Usage:    "how fast the tiles of CZI files are read, by which way, and where the time goes",
		Commands: append([]*cli.Command{runCommand(), profileCommand(), quickCommand()}, benchkit.Documents(tool)...),
		Aliases: []cli.Alias{
			{Name: "benchmark-czi-loading", Command: "run"},
			{Name: "profile-czi-loading", Command: "profile"},
			{Name: "quick-test-czi", Command: "quick"},
		},
	}
}

var fileArgument = []cli.Arg{{Name: "FILE", Usage: "CZI file: a path, or an address http(s):// or s3://"}}

// choosing are the flags that choose tiles.
func choosing(most, note string) []cli.Flag {
	return []cli.Flag{
		{Name: "max_tiles", Kind: cli.Int, Value: "N", Default: most, Note: note, Check: cli.AtLeast(1), Usage: "read the first N tiles of level 0"},
		{Name: "channel", Kind: cli.Int, Value: "C", Note: "all", Check: cli.Between(0, 1<<30), Usage: "read the tiles of one channel"},
		{Name: "scene", Kind: cli.Int, Value: "S", Note: "all", Check: cli.Between(0, 1<<30), Usage: "read the tiles of one scene"},
		{Name: "cold", Kind: cli.Bool, Usage: "let the page cache forget the file before each repetition"},
	}
}

// reporting are the flags that say where results go.
func reporting() []cli.Flag {
	return []cli.Flag{
		{Name: "json", Value: "FILE", Usage: "write the results as JSON, for compare and html"},
		{Name: "html", Value: "FILE", Usage: "write a page with plots"},
	}
}

func flags(lists ...[]cli.Flag) []cli.Flag { return slices.Concat(lists...) }
