// Package manual implements the command manual, which prepares the correction of registrations by hand, and applies it.
package manual

import "strata/pkg/cli"

// Command returns the command manual.
func Command() *cli.Command {
	return &cli.Command{
		Name:     "manual",
		Usage:    "correct the registration of slices by hand, with view",
		Commands: []*cli.Command{exportCommand(), applyCommand(), transformCommand()},
	}
}
