package iobench

import (
	"os"

	"golang.org/x/sys/unix"
)

// openDirect is the flag that opens a file bypassing the page cache.
const openDirect = unix.O_DIRECT

// adviseRandom tells the system that a file is read in random order, so that it does not read ahead.
func adviseRandom(f *os.File) { _ = unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_RANDOM) }
