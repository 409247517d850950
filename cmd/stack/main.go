// Command stack assembles slices into one volume.
package main

import (
	"strata/cmd/internal/stack"
	"strata/pkg/cli"
)

func main() { cli.Main(stack.Command()) }
