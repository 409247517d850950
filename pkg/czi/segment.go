package czi

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
)

// segment locates a part of the file.
type segment struct {
	f    *File
	what string // for messages
	at   int64
	used int64 // bytes behind the header
}

// errorf returns an error that names the file, the segment and where it begins.
func (s *segment) errorf(format string, args ...any) error {
	return fmt.Errorf("%s: %s at byte %d: %w", s.f.Name, s.what, s.at, fmt.Errorf(format, args...))
}

// readSegment reads the first bytes of the segment at a position, which must have an id.
func (f *File) readSegment(ctx context.Context, b []byte, at int64, what, id string) (*segment, error) {
	s := &segment{f: f, what: what, at: at}
	size := f.src.Size()
	if at < segmentHeader || at > size-int64(segmentHeader) {
		return nil, s.errorf("%w of %d bytes", errOutside, size)
	}
	n := min(int64(len(b)), size-at)
	if err := f.read(ctx, b[:n], at); err != nil {
		return nil, s.errorf("%w", err)
	}
	name := bytes.TrimRight(b[:16], "\x00")
	switch {
	case string(name) == idDeleted:
		return nil, s.errorf("has been deleted")
	case string(name) != id:
		return nil, s.errorf("begins with %q (must be %q)", name, id)
	case n < int64(len(b)):
		return nil, s.errorf("ends after %d of %d bytes, with the file", n, len(b))
	}
	allocated, used := int64(binary.LittleEndian.Uint64(b[16:])), int64(binary.LittleEndian.Uint64(b[24:]))
	if s.used = used; used == 0 { // of old files
		s.used = allocated
	}
	if s.used < 0 {
		return nil, s.errorf("claims %d bytes", s.used)
	}
	return s, nil
}

// ErrPart is wrapped by errors about a sub-block that lies in another file.
var ErrPart = errors.New("lies in another part of the file")
