package tiff

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
)

// File holds the structure of a TIFF file. It is safe for concurrent use.
type File struct {
	Name   string // for messages
	Big    bool   // BigTIFF: offsets of 64 bits
	Pages  []*Page
	Images []*Image
	// Warnings lists faults that do not prevent reading the rest.
	Warnings []string

	order   binary.ByteOrder
	blocks  blocks
	layouts map[Layout]*Layout
	taken   int64 // bytes of directories
	seen    map[int64]bool
}

// BigEndian reports whether the file is big-endian.
func (f *File) BigEndian() bool { return f.order == binary.BigEndian }

// ErrNoTIFF is wrapped by errors about files that do not begin like TIFF files.
var ErrNoTIFF = errors.New("not a TIFF file")

// IsTIFF reports whether a file that begins with these bytes, four or more, is a TIFF file.
func IsTIFF(head []byte) bool {
	if len(head) < 4 {
		return false
	}
	switch string(head[:4]) {
	case "II\x2a\x00", "MM\x00\x2a", "II\x2b\x00", "MM\x00\x2b":
		return true
	}
	return false
}

// mostPages bounds the directories of a file: more are in no file that anyone wrote.
const mostPages = 1 << 22

// Option configures [Open].
type Option func(*opener)

// Siblings lets [Open] read the other files of an OME-TIFF image, which its metadata name without folder.
// Without it their pages are missing.
func Siblings(open func(ctx context.Context, name string) (Source, error)) Option {
	return func(o *opener) { o.sibling = open }
}

type opener struct {
	sibling func(ctx context.Context, name string) (Source, error)
}

// Open reads the directories of a TIFF file and works out its images. name is used in messages. An unreadable
// first directory is an error; faults of later ones are listed in the file's Warnings, and faults of a page
// in its Err.
func Open(ctx context.Context, src Source, name string, opts ...Option) (*File, error) {
	var o opener
	for _, opt := range opts {
		opt(&o)
	}
	f, err := openPages(ctx, src, name)
	if err != nil {
		return nil, err
	}
	if err := f.findImages(ctx, &o); err != nil {
		return nil, err
	}
	return f, nil
}

// openPages opens a file without grouping its pages into images.
func openPages(ctx context.Context, src Source, name string) (*File, error) {
	f := &File{Name: name, blocks: blocks{src: src}, layouts: map[Layout]*Layout{}, seen: map[int64]bool{}}
	first, err := f.readHeader(ctx)
	if err != nil {
		return nil, err
	}
	if err := f.readChain(ctx, first); err != nil {
		return nil, err
	}
	f.layouts, f.seen = nil, nil
	return f, nil
}

// readHeader returns the offset of the first directory.
func (f *File) readHeader(ctx context.Context) (int64, error) {
	b := make([]byte, min(16, f.blocks.src.Size()))
	if err := f.blocks.read(ctx, b, 0); err != nil {
		return 0, fmt.Errorf("%s: %w", f.Name, err)
	}
	if len(b) < 8 || !IsTIFF(b) {
		return 0, fmt.Errorf("%s: %w: begins with %q (must be \"II\" or \"MM\", and 42 or 43)", f.Name, ErrNoTIFF, b[:min(4, len(b))])
	}
	f.order = binary.LittleEndian
	if b[0] == 'M' {
		f.order = binary.BigEndian
	}
	if f.Big = f.order.Uint16(b[2:]) == 43; !f.Big {
		return int64(f.order.Uint32(b[4:])), nil
	}
	if len(b) < 16 {
		return 0, fmt.Errorf("%s: ends in its header: %d bytes of 16", f.Name, len(b))
	}
	if n, zero := f.order.Uint16(b[4:]), f.order.Uint16(b[6:]); n != 8 || zero != 0 {
		return 0, fmt.Errorf("%s: BigTIFF header with offsets of %d bytes and %d behind it (must be 8 and 0)", f.Name, n, zero)
	}
	return int64(f.order.Uint64(b[8:])), nil
}

// readChain reads the directories that lie one behind the other, and those below them.
func (f *File) readChain(ctx context.Context, offset int64) error {
	if offset == 0 {
		return fmt.Errorf("%s: has no pages: the offset of the first directory is 0", f.Name)
	}
	for i := 0; offset != 0; i++ {
		name := fmt.Sprintf("IFD %d", i)
		if err := ctx.Err(); err != nil {
			return err
		}
		p, next, err := f.readPage(ctx, offset, name)
		switch {
		case err != nil && i == 0:
			return err
		case err != nil && ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			f.Warnings = append(f.Warnings, err.Error()+fmt.Sprintf("; there may be more than %d pages", i))
			return nil
		case i >= mostPages:
			return fmt.Errorf("%s: more than %d pages", f.Name, mostPages)
		}
		f.Pages = append(f.Pages, p)
		f.readSubs(ctx, p)
		offset = next
	}
	return nil
}

// readPage reads a directory that was not read before.
func (f *File) readPage(ctx context.Context, offset int64, name string) (p *Page, next int64, err error) {
	if f.seen[offset] {
		return nil, 0, fmt.Errorf("%s: %s: the directory at byte %d is linked to twice: the chain of pages is a loop", f.Name, name, offset)
	}
	f.seen[offset] = true
	d, err := f.readDirectory(ctx, offset, name)
	if err != nil {
		return nil, 0, err
	}
	if f.taken += d.bytes; f.taken > f.blocks.src.Size() {
		return nil, 0, d.errorf(0, "directories overlap: together they have more bytes than the file")
	}
	return d.page(ctx), d.next, nil
}

// readSubs reads the directories that a page's SubIFDs tag lists.
func (f *File) readSubs(ctx context.Context, p *Page) {
	for i, off := range p.subOffsets {
		s, _, err := f.readPage(ctx, int64(off), fmt.Sprintf("%s sub-IFD %d", p.Name(), i))
		if err != nil {
			f.Warnings = append(f.Warnings, err.Error()+"; the pages below it are left out")
			return
		}
		s.sub = i + 1
		s.index = p.index
		p.Sub = append(p.Sub, s)
	}
	p.subOffsets = nil
}

// Source returns the source that the file is read from.
func (f *File) Source() Source { return f.blocks.src }
