package mem

import "runtime/debug"

// CopyMapped copies from a file mapped into memory. If the file has become shorter or its device fails, the
// system's signal becomes ok = false; dst may then hold part of the data.
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
