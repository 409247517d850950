//go:build !linux

package doctor

// openDirect is 0: there is no such flag.
const openDirect = 0
