package store

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"math"
	"sync/atomic"
)

// ZipStore reads the members of a zip file (PKWARE APPNOTE 6.3.10, with zip64). A key is a member's name,
// including any top folder of the zip.
//
// Stored (uncompressed) members, as Zarr programs write them, are read in place, parts of them as cheaply as
// those of a file. A deflated member is inflated as a whole for Get and for the ReadAt of an Object; the
// memory that such objects hold is limited for the process. Get verifies the checksum; ReadAt of a stored
// member cannot.
type ZipStore struct {
	file  Object
	where string
	tree  *tree[*member]

	requests int   // of the store that the file is in; 0: it is near
	inflates int64 // bytes of the largest deflated member
}

var _ Distant = (*ZipStore)(nil)

// Requests returns how many requests to have in flight in the store that holds the file; 0 for a local file.
func (s *ZipStore) Requests() int { return s.requests }

// ZipFrom opens the zip file under key in another store. It reads the directory at once and members on
// demand. Close closes the zip file, not st.
func ZipFrom(ctx context.Context, st Store, key string) (*ZipStore, error) {
	file, err := st.Open(ctx, key)
	if err != nil {
		return nil, err
	}
	z, err := openZip(ctx, file, st.Location(key))
	if far, ok := st.(Distant); ok && err == nil {
		z.requests = far.Requests()
	}
	return z, err
}

// openZip opens a zip file and takes ownership of file.
func openZip(ctx context.Context, file Object, where string) (*ZipStore, error) {
	s := &ZipStore{file: file, where: where, tree: newTree[*member]()}
	if err := s.readDirectory(ctx); err != nil {
		file.Close()
		return nil, fmt.Errorf("%s: %w", where, err)
	}
	return s, nil
}

// Location returns the zip file's location, a slash and key.
func (s *ZipStore) Location(key string) string { return Join(s.where, key) }

// Close closes the zip file.
func (s *ZipStore) Close() error { return s.file.Close() }

func (s *ZipStore) member(ctx context.Context, key string) (*member, error) {
	if err := checkKey(key); err != nil {
		return nil, fmt.Errorf("%s: %w", s.where, err)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m, err := s.tree.object(key)
	if err == nil {
		err = m.readable()
	}
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: s.Location(key), Err: err}
	}
	return m, nil
}

// List lists the folder prefix of the zip file; see [Store].
func (s *ZipStore) List(ctx context.Context, prefix string) ([]Entry, error) {
	if err := checkPrefix(prefix); err != nil {
		return nil, fmt.Errorf("%s: %w", s.where, err)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	entries, err := s.tree.list(prefix, func(m *member) int64 { return m.size })
	if err != nil {
		return nil, &fs.PathError{Op: "list", Path: s.Location(prefix), Err: err}
	}
	return entries, nil
}

// Get reads a whole member; see [Store].
func (s *ZipStore) Get(ctx context.Context, key string, dst []byte, limit int64) ([]byte, error) {
	m, err := s.member(ctx, key)
	if err != nil {
		return nil, err
	}
	return s.get(ctx, m, key, dst, limit)
}

func (s *ZipStore) get(ctx context.Context, m *member, key string, dst []byte, limit int64) ([]byte, error) {
	if limit >= 0 && m.size > limit {
		return nil, tooLarge(s.Location(key), m.size, limit)
	}
	off, err := s.start(ctx, m, key)
	if err != nil {
		return nil, err
	}
	if dst, err = sized(dst, m.size); err != nil {
		return nil, fmt.Errorf("%s: %w", s.Location(key), err)
	}
	if m.method == zipStored {
		err = readFull(ctx, s.file, dst, off)
	} else {
		err = s.inflate(ctx, m, dst, off)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.Location(key), err)
	}
	if sum := crc32.ChecksumIEEE(dst); sum != m.crc {
		return nil, fmt.Errorf("%s: damaged member: checksum %08x, the zip directory says %08x", s.Location(key), sum, m.crc)
	}
	return dst, nil
}

// start returns the offset of a member's first byte in the zip file. The directory does not hold it, since
// the header in front of the member has a length of its own.
func (s *ZipStore) start(ctx context.Context, m *member, key string) (int64, error) {
	if off := m.start.Load(); off > 0 {
		return off, nil
	}
	var h [localHeaderSize]byte
	if err := readFull(ctx, s.file, h[:], m.header); err != nil {
		return 0, fmt.Errorf("%s: %w", s.Location(key), err)
	}
	if le32(h[0:]) != localHeaderMagic {
		return 0, fmt.Errorf("%s: damaged zip file: no member starts at byte %d, where the directory says one does", s.Location(key), m.header)
	}
	off := m.header + localHeaderSize + int64(le16(h[26:])) + int64(le16(h[28:]))
	if m.packed > s.file.Size()-off {
		return 0, fmt.Errorf("%s: damaged zip file: %d bytes at byte %d go beyond its end at %d", s.Location(key), m.packed, off, s.file.Size())
	}
	m.start.Store(off)
	return off, nil
}

// Open opens a member; see [Store]. A stored member is a [FileObject] if the zip
// file is one.
func (s *ZipStore) Open(ctx context.Context, key string) (Object, error) {
	m, err := s.member(ctx, key)
	if err != nil {
		return nil, err
	}
	if m.method == zipDeflated {
		if err := s.tooLargeToInflate(m, key); err != nil {
			return nil, err
		}
		return &inflated{zip: s, member: m, key: key, turn: make(chan struct{}, 1)}, nil
	}
	off, err := s.start(ctx, m, key)
	if err != nil {
		return nil, err
	}
	o := &section{file: s.file, off: off, size: m.size, where: s.Location(key)}
	if f, ok := s.file.(FileObject); ok {
		return &fileSection{section: o, file: f}, nil
	}
	return o, nil
}

// section is a stored member.
type section struct {
	file      Object
	off, size int64
	where     string
	closed    atomic.Bool
}

func (o *section) Size() int64 { return o.size }

func (o *section) Close() error {
	o.closed.Store(true)
	return nil
}

func (o *section) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	if o.closed.Load() {
		return 0, &fs.PathError{Op: "read", Path: o.where, Err: fs.ErrClosed}
	}
	want, eof, err := clampRange(len(p), off, o.size)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", o.where, err)
	}
	n, err := o.file.ReadAt(ctx, p[:want], o.off+off)
	if err != nil {
		return n, fmt.Errorf("%s: %w", o.where, noEOF(err))
	}
	return n, eof
}

// fileSection is a stored member of a zip file in a local folder.
type fileSection struct {
	*section
	file FileObject
}

func (o *fileSection) File() (uintptr, int64) {
	fd, off := o.file.File()
	return fd, off + o.off
}

// ReadRows reads rows through the zip file's own ReadRows.
func (o *fileSection) ReadRows(ctx context.Context, dst []byte, rows Rows, off int64) (int, error) {
	if o.closed.Load() {
		return 0, &fs.PathError{Op: "read", Path: o.where, Err: fs.ErrClosed}
	}
	return ReadRows(ctx, o.file, o, Range{o.off, o.size}, dst, rows, off)
}

// readFull reads all of p; an earlier end is an error other than io.EOF.
func readFull(ctx context.Context, o Object, p []byte, off int64) error {
	if len(p) == 0 {
		return ctx.Err()
	}
	_, err := o.ReadAt(ctx, p, off)
	return noEOF(err)
}

func noEOF(err error) error {
	if err == io.EOF {
		return fmt.Errorf("damaged zip file: %w", io.ErrUnexpectedEOF)
	}
	return err
}

// member is one file in a zip file.
type member struct {
	header       int64 // offset of the header in front of it
	packed, size int64 // bytes in the zip file, and of the content
	crc          uint32
	method       uint16
	encrypted    bool
	link         bool
	start        atomic.Int64 // offset of the first byte, once known
}

// Compression methods (APPNOTE 4.4.5).
const (
	zipStored   = 0
	zipDeflated = 8
)

// readable returns why a member cannot be read, before anything is allocated for it.
func (m *member) readable() error {
	switch {
	case m.encrypted:
		return errors.New("zip member is encrypted")
	case m.link:
		return errors.New("zip member is a symbolic link")
	case m.method != zipStored && m.method != zipDeflated:
		return fmt.Errorf("zip member is compressed with method %d: only stored (0) and deflated (8) are supported", m.method)
	case m.method == zipStored && m.packed != m.size:
		return fmt.Errorf("damaged zip file: a stored member of %d bytes takes %d", m.size, m.packed)
	case m.method == zipDeflated && m.size/1032 > m.packed: // deflate's best ratio
		return fmt.Errorf("damaged zip file: %d deflated bytes cannot hold %d", m.packed, m.size)
	case m.method == zipDeflated && m.packed > m.size+m.size/8+4096: // deflate's worst, and more
		return fmt.Errorf("damaged zip file: %d deflated bytes for %d", m.packed, m.size)
	case m.packed > math.MaxInt:
		return fmt.Errorf("%w: %d bytes", ErrTooLarge, m.packed)
	}
	return nil
}
