// Command smooth filters an image with medians, Gaussians and gradients.
package main

import (
	"strata/cmd/internal/smooth"
	"strata/pkg/cli"
)

func main() { cli.Main(smooth.Command()) }
