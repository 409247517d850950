// Command attenuation undoes the decay of the signal with depth in a slice.
package main

import (
	"strata/cmd/internal/attenuation"
	"strata/pkg/cli"
)

func main() { cli.Main(attenuation.Command()) }
