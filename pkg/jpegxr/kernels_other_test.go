//go:build !amd64 || noasm

package jpegxr

// scalar runs f: there is no assembly.
func scalar(f func()) { f() }
