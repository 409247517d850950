// Command bias-field removes the smooth multiplicative field of a stacked volume.
package main

import (
	"strata/cmd/internal/biasfield"
	"strata/pkg/cli"
)

func main() { cli.Main(biasfield.Command()) }
