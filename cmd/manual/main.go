// Command manual prepares the correction of registrations by hand, and applies it.
package main

import (
	"strata/cmd/internal/manual"
	"strata/pkg/cli"
)

func main() { cli.Main(manual.Command()) }
