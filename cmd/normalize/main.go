// Command normalize brings the intensities of a slice to a common scale.
package main

import (
	"strata/cmd/internal/normalize"
	"strata/pkg/cli"
)

func main() { cli.Main(normalize.Command()) }
