// Package squashfs reads file systems of the format squashfs 4.0, the root of a
// container image, without the kernel's help:
//
//	r, err := squashfs.Open(file, size)
//	err = r.Walk("", func(e *squashfs.Entry) error { … io.Copy(w, r.File(e)) … })
//
// It reads what mksquashfs writes with gzip (zlib), LZ4 or Zstandard. Extended
// attributes are not read. Nothing in an image is trusted: every size
// and place is compared with what is possible before memory is taken for it.
//
// Memory is a few metadata blocks of 8 KiB, one fragment and one block of at
// most 1 MiB. A Reader is for one goroutine.
package squashfs
