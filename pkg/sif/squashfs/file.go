package squashfs

import (
	"encoding/binary"
	"io"
)

// File returns a reader of a file's content. It uses the Reader's memory: read only one file at a time.
func (s *Reader) File(e *Entry) io.Reader {
	return &file{s: s, e: e, left: e.Size, at: e.blocks}
}

type file struct {
	s    *Reader
	e    *Entry
	left int64 // that no block was read of
	at   int64 // place of the next block
	i    int   // its number
	data []byte
	err  error
}

func (f *file) Read(p []byte) (int, error) {
	for len(f.data) == 0 {
		if f.err == nil && f.left == 0 {
			f.err = io.EOF
		}
		if f.err != nil {
			return 0, f.err
		}
		f.data, f.err = f.next()
		f.left -= int64(len(f.data))
	}
	n := copy(p, f.data)
	f.data = f.data[n:]
	return n, nil
}

// next returns the next block's content.
func (f *file) next() ([]byte, error) {
	want := int(min(f.left, int64(f.s.super.BlockSize)))
	if f.i == len(f.e.sizes) {
		return f.s.fragment(f.e, want)
	}
	size := f.e.sizes[f.i]
	f.i++
	if size == 0 { // a hole
		if cap(f.s.scratch) < want {
			f.s.scratch = make([]byte, f.s.super.BlockSize)
		}
		hole := f.s.scratch[:want]
		clear(hole)
		return hole, nil
	}
	data, err := f.s.data(f.at, size, f.s.scratch)
	if err != nil {
		return nil, err
	}
	f.s.scratch = data[:0]
	f.at += int64(size &^ stored)
	if len(data) != want {
		return nil, bad("%s: a block of %d bytes, want %d", f.e.Path, len(data), want)
	}
	return data, nil
}

// data reads a block of data into dst, if that is large enough.
func (s *Reader) data(at int64, size uint32, dst []byte) ([]byte, error) {
	packed := size&stored == 0
	size &^= stored
	if size == 0 || size > s.super.BlockSize {
		return nil, bad("byte %d: a block of %d bytes", at, size)
	}
	raw := make([]byte, size)
	if err := s.readAt(raw, at); err != nil {
		return nil, err
	}
	if !packed {
		return raw, nil
	}
	if cap(dst) < int(s.super.BlockSize) {
		dst = make([]byte, s.super.BlockSize)
	}
	dst = dst[:s.super.BlockSize]
	n, err := s.unpack(dst, raw)
	if err != nil {
		return nil, bad("byte %d: block: %v", at, err)
	}
	return dst[:n], nil
}

// fragment returns the end of a file, which shares a block with others.
func (s *Reader) fragment(e *Entry, want int) ([]byte, error) {
	if e.fragment >= s.super.Fragments {
		return nil, bad("%s: fragment %d of %d", e.Path, e.fragment, s.super.Fragments)
	}
	b, err := s.element(s.super.FragTable, int(e.fragment), 16)
	if err != nil {
		return nil, err
	}
	at, size := int64(binary.LittleEndian.Uint64(b)), binary.LittleEndian.Uint32(b[8:])
	if at != s.fragAt {
		s.fragAt = -1
		if s.frag, err = s.data(at, size, s.frag); err != nil {
			return nil, err
		}
		s.fragAt = at
	}
	if int64(e.fragOffset)+int64(want) > int64(len(s.frag)) {
		return nil, bad("%s: its end lies outside its fragment", e.Path)
	}
	return s.frag[e.fragOffset:][:want], nil
}
