// Command qc-report writes the quality report of a run as one HTML page.
package main

import (
	"strata/cmd/internal/qcreport"
	"strata/pkg/cli"
)

func main() { cli.Main(qcreport.Command()) }
