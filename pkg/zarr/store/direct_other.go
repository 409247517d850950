//go:build unix && !linux

package store

// openDirect is the flag for opening files for direct reads; 0: not supported.
const openDirect = 0
