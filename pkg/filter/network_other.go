//go:build !amd64 || noasm

package filter

func networkVector[U uint8 | uint16 | uint32 | uint64](*network, []U, int, int) bool { return false }
