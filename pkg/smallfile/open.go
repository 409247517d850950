package smallfile

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// File reads a file, a pipe or a device. Its reads end with the context.
type File struct {
	f       *os.File
	head    []byte // of a pipe: what was read of it when it was opened
	regular bool
	ctx     context.Context
	stop    func() bool
}

// Open opens a file for reading. For a named pipe it waits for a writer, but only some seconds: one that a program
// opens comes at once, and a pipe among the files of a folder has none.
func Open(ctx context.Context, path string) (*File, error) {
	// O_NONBLOCK: opening a pipe would wait for its writer whatever the context says.
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, Cause(path, err)
	}
	var head []byte
	info, err := f.Stat()
	switch {
	case err != nil:
	case info.IsDir():
		err = &fs.PathError{Op: "open", Path: path, Err: errors.New("is a folder (must be a file)")}
	case info.Mode()&fs.ModeNamedPipe != 0:
		head, err = awaitWriter(ctx, f)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	// What is no pipe or terminal has no deadline, and does not wait.
	stop := context.AfterFunc(ctx, func() { _ = f.SetReadDeadline(time.Unix(1, 0)) })
	return &File{f, head, info.Mode().IsRegular(), ctx, stop}, nil
}

// Read reads from the file, or returns the error of the context.
func (f *File) Read(p []byte) (int, error) {
	if err := f.ctx.Err(); err != nil {
		return 0, err
	}
	if len(f.head) > 0 {
		n := copy(p, f.head)
		f.head = f.head[n:]
		return n, nil
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

// awaited limits the wait for a writer of a pipe. Tests shorten it.
var awaited = 5 * time.Second

// awaitWriter waits until a writer has opened the other end of a pipe; before that, reads would find it
// empty. It returns what it has read to find out.
func awaitWriter(ctx context.Context, f *os.File) (head []byte, err error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return nil, err
	}
	for end := time.Now().Add(awaited); ; {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		n, b := 0, make([]byte, 1)
		var got int
		if e := raw.Control(func(fd uintptr) {
			if n, err = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(min(100, awaited.Milliseconds()))); n == 0 && err == nil {
				got, err = unix.Read(int(fd), b) // nothing, which is the end of a pipe without a writer, or EAGAIN
			}
		}); e != nil {
			return nil, e
		}
		switch {
		case err == unix.EINTR:
		case err == unix.EAGAIN, err == nil && n > 0:
			return nil, nil // a writer, which may take its time
		case err != nil:
			return nil, &fs.PathError{Op: "poll", Path: f.Name(), Err: err}
		case got > 0:
			return b, nil
		case time.Now().After(end):
			return nil, fmt.Errorf("%s: is a pipe that no program writes to", f.Name())
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
