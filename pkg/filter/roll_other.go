//go:build !amd64 || noasm

package filter

func (w *RollWorkspace) interpolateVector(int, int) bool { return false }
