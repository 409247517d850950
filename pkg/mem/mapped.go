package mem

import "runtime/debug"

// CopyMapped is copy from a file that is mapped into memory. Where the system has nothing
// to read from, since the file became shorter or its device fails, it sends a signal, which
// becomes ok = false; dst then holds any part of it.
func CopyMapped(dst, src []byte) (n int, ok bool) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		switch r := recover().(type) {
		case nil:
		case interface{ Addr() uintptr }:
			n, ok = 0, false
		default:
			panic(r)
		}
	}()
	return copy(dst, src), true
}
