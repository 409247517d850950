// Command bench-io measures how fast files are read and written.
package main

import (
	"strata/cmd/internal/benchio"
	"strata/pkg/cli"
)

func main() { cli.Main(benchio.Command()) }
