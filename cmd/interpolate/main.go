// Command interpolate fills the gap of a missing slice.
package main

import (
	"strata/cmd/internal/interpolate"
	"strata/pkg/cli"
)

func main() { cli.Main(interpolate.Command()) }
