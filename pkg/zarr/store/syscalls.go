//go:build unix

package store

import (
	"context"

	"golang.org/x/sys/unix"
)

// maxIO is the most bytes that one system call moves: Linux moves at most 2 GiB
// less a page, and between pieces a cancelled context is noticed.
const maxIO = 64 << 20

func openFD(path string, flags int, perm uint32) (fd int, err error) {
	for {
		fd, err = unix.Open(path, flags|unix.O_CLOEXEC, perm)
		if err != unix.EINTR {
			return fd, err
		}
	}
}

// closeFD closes fd. It does not retry after EINTR: Linux has closed the descriptor by then, and another
// goroutine may already have its number.
func closeFD(fd int) error {
	if err := unix.Close(fd); err != nil && err != unix.EINTR {
		return err
	}
	return nil
}

func ignoringEINTR(f func() error) error {
	for {
		if err := f(); err != unix.EINTR {
			return err
		}
	}
}

// pread fills p from offset off and returns the number of bytes read. It returns fewer without an error only
// at the end of the file.
func pread(ctx context.Context, fd int, p []byte, off int64) (int, error) {
	return inPieces(ctx, fd, p, off, false)
}

// pwrite writes all of p at offset off.
func pwrite(ctx context.Context, fd int, p []byte, off int64) (int, error) {
	return inPieces(ctx, fd, p, off, true)
}

// inPieces repeats a system call until all of p is moved, or the file ends.
func inPieces(ctx context.Context, fd int, p []byte, off int64, write bool) (done int, err error) {
	for done < len(p) {
		if err := ctx.Err(); err != nil {
			return done, err
		}
		piece, n := p[done:min(len(p), done+maxIO)], 0
		if write {
			n, err = unix.Pwrite(fd, piece, off+int64(done))
		} else {
			n, err = unix.Pread(fd, piece, off+int64(done))
		}
		switch {
		case err == unix.EINTR:
		case err != nil:
			return done, err
		case n == 0 && write: // no system does this; never loop over it
			return done, unix.EIO
		case n == 0:
			return done, nil
		default:
			done += n
		}
	}
	return done, nil
}
