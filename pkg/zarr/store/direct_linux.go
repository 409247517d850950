package store

import "golang.org/x/sys/unix"

// openDirect is the flag for opening files for direct reads; 0: not supported.
const openDirect = unix.O_DIRECT
