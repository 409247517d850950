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
func (o *fileObject) ReadRows(ctx context.Context, dst []byte, rows Rows, off int64) (done int, err error) {
	if o.reading == ReadCached && off >= 0 && rows.bytes() <= o.size-off {
		if !o.fd.acquire() {
			return 0, &fs.PathError{Op: "read", Path: o.path, Err: fs.ErrClosed}
		}
		for rows.Count > 0 {
			some := rows
			some.Count = min(rows.Count, len(places{}), max(maxIO/max(rows.Length, 1), 1))
			got, err := preadv(ctx, o.fd.fd, dst, some, off)
			if err != nil || int64(got) < some.bytes() {
				break // reading row by row says why
			}
			done, off = done+got, off+int64(got)
			rows.Count -= some.Count
			dst = dst[min(some.Count*rows.Pitch, len(dst)):]
		}
		o.fd.release()
	}
	n, err := rowByRow(ctx, o, dst, rows, off)
	return done + n, err
}

// preadv fills rows of a buffer by one system call, which may read less.
func preadv(ctx context.Context, fd int, dst []byte, rows Rows, off int64) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	v := idlePlaces.Get().(*places)
	for k := range rows.Count {
		v[k].Base = unsafe.SliceData(dst[k*rows.Pitch : k*rows.Pitch+rows.Length])
		v[k].SetLen(rows.Length)
	}
	// an offset is given in two halves, of which the second counts where a word has 32 bits
	n, _, e := unix.Syscall6(unix.SYS_PREADV, uintptr(fd), uintptr(unsafe.Pointer(v)), uintptr(rows.Count), uintptr(off), uintptr(off>>32), 0)
	idlePlaces.Put(v) // what it points to is kept until the next garbage collection
	if e != 0 {
		return 0, e
	}
	return int(n), nil
}
