// Package squashfs reads file systems of the format squashfs 4.0, such as the root of a container image,
// without the kernel's help:
//
//	r, err := squashfs.Open(file, size)
//	err = r.Walk("", func(e *squashfs.Entry) error { … io.Copy(w, r.File(e)) … })
//
// It reads what mksquashfs writes with gzip (zlib), LZ4 or Zstandard, except for extended attributes. Images
// are untrusted: every size and offset is checked before memory is allocated.
//
// It needs memory for a few metadata blocks of 8 KiB, one fragment and one block of at most 1 MiB. A Reader
// serves one goroutine.
package squashfs
