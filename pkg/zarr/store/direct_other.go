//go:build unix && !linux

package store

// openDirect is the flag that opens a file for reads past the page cache; 0: there is none.
const openDirect = 0
