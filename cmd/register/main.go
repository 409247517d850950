// Command register finds how a slice lies on the slice before it.
package main

import (
	"strata/cmd/internal/register"
	"strata/pkg/cli"
)

func main() { cli.Main(register.Command()) }
