package store

import "golang.org/x/sys/unix"

// openDirect is the flag that opens a file for reads past the page cache; 0: there is none.
const openDirect = unix.O_DIRECT
