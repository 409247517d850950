//go:build !linux

package iobench

import "os"

// openDirect is 0: the system has no such flag.
const openDirect = 0

// adviseRandom does nothing.
func adviseRandom(*os.File) {}
