package mem

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// Populate makes the system provide the pages of b, which may be any writable memory, before they are written. It
// changes no content. It reports whether the system can do that; Linux can from 5.14.
func Populate(b []byte) bool {
	from := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	skip := int(-from & (page - 1))
	if n := (len(b) - skip) &^ (page - 1); n > 0 {
		return unix.Madvise(b[skip:skip+n], unix.MADV_POPULATE_WRITE) == nil
	}
	return true
}
