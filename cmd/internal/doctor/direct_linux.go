package doctor

import "golang.org/x/sys/unix"

// openDirect is the flag that opens a file past the page cache.
const openDirect = unix.O_DIRECT
