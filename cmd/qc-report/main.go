// Command qc-report makes the quality report of a run: one HTML page.
package main

import (
	"strata/cmd/internal/qcreport"
	"strata/pkg/cli"
)

func main() { cli.Main(qcreport.Command()) }
