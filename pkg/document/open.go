package document

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// File reads a file, a pipe or a device. Its reads end with the context.
type File struct {
	f       *os.File
	regular bool
	ctx     context.Context
	stop    func() bool
}

// Open opens a file for reading. For a named pipe it waits for a writer until the context ends.
func Open(ctx context.Context, path string) (*File, error) {
	// O_NONBLOCK: opening a pipe would wait for its writer whatever the context says.
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, Cause(path, err)
	}
	info, err := f.Stat()
	switch {
	case err != nil:
	case info.IsDir():
		err = &fs.PathError{Op: "open", Path: path, Err: errors.New("is a folder (must be a file)")}
	case info.Mode()&fs.ModeNamedPipe != 0:
		err = awaitWriter(ctx, f)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	// What is no pipe or terminal has no deadline, and does not wait.
	stop := context.AfterFunc(ctx, func() { _ = f.SetReadDeadline(time.Unix(1, 0)) })
	return &File{f, info.Mode().IsRegular(), ctx, stop}, nil
}

// Read reads from the file, or returns the error of the context.
func (f *File) Read(p []byte) (int, error) {
	if err := f.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := f.f.Read(p)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = f.ctx.Err()
	}
	return n, err
}

// Regular returns the file for callers that seek in it, or nil for a pipe or a device.
func (f *File) Regular() *os.File {
	if f.regular {
		return f.f
	}
	return nil
}

// Close closes the file.
func (f *File) Close() error {
	f.stop()
	return f.f.Close()
}

// awaitWriter waits until a writer has opened the other end of a pipe; before that, reads would find it
// empty.
func awaitWriter(ctx context.Context, f *os.File) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		n := 0
		if e := raw.Control(func(fd uintptr) {
			n, err = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 100)
		}); e != nil {
			return e
		}
		switch {
		case err == unix.EINTR:
		case err != nil:
			return &fs.PathError{Op: "poll", Path: f.Name(), Err: err}
		case n > 0:
			return nil
		}
	}
}

// cause returns an error of the os package without operation and path.
func cause(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}
