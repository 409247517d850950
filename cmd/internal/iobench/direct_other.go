//go:build !linux

package iobench

import "os"

// openDirect is 0: there is no such flag.
const openDirect = 0

// adviseRandom has nobody to tell.
func adviseRandom(*os.File) {}
