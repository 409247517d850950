package tiff

import (
	"context"
	"fmt"
	"math"
)

// field is one entry of a directory.
type field struct {
	kind  uint16
	count int64
	at    int64 // of the first value in the file
}

// directory is one IFD as it lies in the file.
type directory struct {
	f      *File
	offset int64
	name   string // for messages
	fields map[uint16]field
	next   int64
	bytes  int64 // that it takes
}

// errorf returns an error in the directory, of a tag (0: of none).
func (d *directory) errorf(tag uint16, format string, args ...any) error {
	where := d.name
	if tag != 0 {
		where += ": " + tagName(tag)
	}
	return fmt.Errorf("%s: %s: %w", d.f.Name, where, fmt.Errorf(format, args...))
}

func tagName(tag uint16) string {
	if name := tagNames[tag]; name != "" {
		return name
	}
	return fmt.Sprintf("tag %d", tag)
}

// readDirectory reads the IFD at an offset.
func (f *File) readDirectory(ctx context.Context, offset int64, name string) (*directory, error) {
	d := &directory{f: f, offset: offset, name: name, fields: map[uint16]field{}}
	head, entry, word := int64(2), int64(12), int64(4)
	if f.Big {
		head, entry, word = 8, 20, 8
	}
	size := f.blocks.src.Size()
	if offset < f.headerBytes() || offset > size-head {
		return nil, d.errorf(0, "starts at byte %d of a file of %d", offset, size)
	}
	b := make([]byte, head)
	if err := f.blocks.read(ctx, b, offset); err != nil {
		return nil, d.errorf(0, "%w", err)
	}
	n := f.integer(b)
	rest := size - offset - head
	if n > uint64(rest/entry) || n > math.MaxUint16 {
		return nil, d.errorf(0, "claims %d entries at byte %d of a file of %d", n, offset, size)
	}
	d.bytes = head + int64(n)*entry
	b = make([]byte, int64(n)*entry)
	if err := f.blocks.read(ctx, b, offset+head); err != nil {
		return nil, d.errorf(0, "%w", err)
	}
	for i := range int64(n) {
		e := b[i*entry:]
		tag := f.order.Uint16(e)
		count := f.integer(e[4:][:word])
		v := field{kind: f.order.Uint16(e[2:]), count: int64(min(count, math.MaxInt64)), at: offset + head + i*entry + 4 + word}
		if _, twice := d.fields[tag]; twice {
			continue
		}
		if each := v.size(); each > 0 && v.count > word/each {
			v.at = int64(min(f.integer(e[4+word:][:word]), math.MaxInt64))
		}
		d.fields[tag] = v
	}
	if b := b[:0]; rest >= int64(n)*entry+word { // some writers leave out the last link
		b = append(b, make([]byte, word)...)
		if err := f.blocks.read(ctx, b, offset+d.bytes); err != nil {
			return nil, d.errorf(0, "%w", err)
		}
		d.next = int64(min(f.integer(b), math.MaxInt64))
	}
	return d, nil
}

// size returns the bytes of one value, 0 for a type that is not known.
func (v field) size() int64 {
	if int(v.kind) < len(fieldSizes) {
		return fieldSizes[v.kind]
	}
	return 0
}

// integer reads an unsigned number as long as b.
func (f *File) integer(b []byte) uint64 {
	switch len(b) {
	case 1:
		return uint64(b[0])
	case 2:
		return uint64(f.order.Uint16(b))
	case 4:
		return uint64(f.order.Uint32(b))
	}
	return f.order.Uint64(b)
}

// check returns an error if the values of a field cannot be numbers or lie beyond the end of the file.
func (d *directory) check(tag uint16, v field) error {
	size := v.size()
	if size == 0 {
		return d.errorf(tag, "field type %d is not known", v.kind)
	}
	end := d.f.blocks.src.Size()
	if v.at < 0 || v.at > end || v.count > (end-v.at)/size {
		return d.errorf(tag, "%d values at byte %d do not fit into a file of %d bytes", v.count, v.at, end)
	}
	return nil
}

// integers reads the values of a tag, at most so many; it returns nil if the directory has no such tag.
func (d *directory) integers(ctx context.Context, tag uint16, most int64) ([]uint64, error) {
	v, ok := d.fields[tag]
	if !ok {
		return nil, nil
	}
	if err := d.check(tag, v); err != nil {
		return nil, err
	}
	switch v.kind {
	case 1, 3, 4, 7, 13, 16, 18:
	default:
		return nil, d.errorf(tag, "values of type %d are not unsigned integers", v.kind)
	}
	if v.count > most {
		return nil, d.errorf(tag, "has %d values, at most %d make sense", v.count, most)
	}
	size := v.size()
	b := make([]byte, v.count*size)
	if err := d.f.blocks.read(ctx, b, v.at); err != nil {
		return nil, d.errorf(tag, "%w", err)
	}
	out := make([]uint64, v.count)
	for i := range out {
		out[i] = d.f.integer(b[int64(i)*size:][:size])
	}
	return out, nil
}

// number reads the only value of a tag.
func (d *directory) number(ctx context.Context, tag uint16, standard uint64) (uint64, error) {
	v, err := d.integers(ctx, tag, math.MaxUint16)
	if err != nil || len(v) == 0 {
		return standard, err
	}
	return v[0], nil
}

// rational reads a RATIONAL. It returns 0 if the value is missing or invalid, since only physical sizes depend on it.
func (d *directory) rational(ctx context.Context, tag uint16) float64 {
	v := d.fields[tag]
	b := make([]byte, 8)
	if v.count < 1 || v.kind != 5 && v.kind != 11 && v.kind != 12 || d.check(tag, v) != nil || d.f.blocks.read(ctx, b[:v.size()], v.at) != nil {
		return 0
	}
	var x float64
	switch v.kind {
	case 5:
		x = float64(d.f.order.Uint32(b)) / float64(d.f.order.Uint32(b[4:]))
	case 11:
		x = float64(math.Float32frombits(d.f.order.Uint32(b)))
	case 12:
		x = math.Float64frombits(d.f.order.Uint64(b))
	}
	if math.IsNaN(x) || math.IsInf(x, 0) || x < 0 {
		return 0
	}
	return x
}

// text reads the values of a tag of bytes or text, at most that many; nil if the tag is not there.
func (d *directory) text(ctx context.Context, tag uint16, most int64) ([]byte, error) {
	v, ok := d.fields[tag]
	if !ok {
		return nil, nil
	}
	if err := d.check(tag, v); err != nil {
		return nil, err
	}
	if v.size() != 1 {
		return nil, d.errorf(tag, "values of type %d are not bytes", v.kind)
	}
	if v.count > most {
		return nil, d.errorf(tag, "has %d bytes, at most %d are read", v.count, most)
	}
	b := make([]byte, v.count)
	if err := d.f.blocks.read(ctx, b, v.at); err != nil {
		return nil, d.errorf(tag, "%w", err)
	}
	return b, nil
}

// headerBytes returns the length of the file header, in which no directory lies.
func (f *File) headerBytes() int64 {
	if f.Big {
		return 16
	}
	return 8
}
