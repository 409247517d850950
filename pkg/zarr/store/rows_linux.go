package store

import (
	"context"
	"io/fs"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// places lists the buffers that one system call fills, up to the kernel's maximum.
type places [1024]unix.Iovec

var idlePlaces = sync.Pool{New: func() any { return new(places) }}

// ReadRows reads by preadv if files are read through the page cache.
func (o *fileObject) ReadRows(ctx context.Context, dst []byte, rows, length, pitch int, off int64) (done int, err error) {
	if o.reading == ReadCached && off >= 0 && int64(rows)*int64(length) <= o.size-off {
		if !o.fd.acquire() {
			return 0, &fs.PathError{Op: "read", Path: o.path, Err: fs.ErrClosed}
		}
		for rows > 0 {
			n := min(rows, len(places{}), max(maxIO/max(length, 1), 1))
			got, err := preadv(ctx, o.fd.fd, dst, n, length, pitch, off)
			if err != nil || got < n*length {
				break // reading row by row says why
			}
			done, rows, off = done+got, rows-n, off+int64(got)
			dst = dst[min(n*pitch, len(dst)):]
		}
		o.fd.release()
	}
	n, err := rowByRow(ctx, o, dst, rows, length, pitch, off)
	return done + n, err
}

// preadv fills rows of a buffer by one system call, which may read less.
func preadv(ctx context.Context, fd int, dst []byte, rows, length, pitch int, off int64) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	v := idlePlaces.Get().(*places)
	for k := range rows {
		v[k].Base = unsafe.SliceData(dst[k*pitch : k*pitch+length])
		v[k].SetLen(length)
	}
	// an offset is given in two halves, of which the second counts where a word has 32 bits
	n, _, e := unix.Syscall6(unix.SYS_PREADV, uintptr(fd), uintptr(unsafe.Pointer(v)), uintptr(rows), uintptr(off), uintptr(off>>32), 0)
	idlePlaces.Put(v) // what it points to is kept until the next garbage collection
	if e != 0 {
		return 0, e
	}
	return int(n), nil
}
