package mem

import "golang.org/x/sys/unix"

// adviseHuge asks for huge pages; a kernel that has none is not an error.
func adviseHuge(b []byte) { _ = unix.Madvise(b, unix.MADV_HUGEPAGE) }
