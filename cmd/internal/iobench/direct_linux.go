package iobench

import (
	"os"

	"golang.org/x/sys/unix"
)

// openDirect is the flag that opens a file past the page cache.
const openDirect = unix.O_DIRECT

// adviseRandom says that a file is read in no order, so that the system reads nothing ahead.
func adviseRandom(f *os.File) { _ = unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_RANDOM) }
