// Package inflate decodes DEFLATE (RFC 1951), bare or in its zlib (RFC 1950) and gzip (RFC 1952) wrappers, from one
// byte slice into another whose size the caller knows.
//
// A chunk of an array is at hand as a whole and decodes to a known number of bytes. That saves what a streaming reader
// has to do: no window beside the output, no suspension between any two bits, no copies. The decoder keeps its bits in
// one 64-bit word that is topped up without a branch, finds most matches, length and distance, in a single table entry,
// and copies them 8 and 16 bytes at a time.
//
//	n, err := inflate.Gzip(ctx, chunk, stored)
//
// The functions never write beyond len(dst), and allocate nothing unless they fail, apart from the tables (16 KB per
// goroutine at work), which are kept in a pool. They are safe for concurrent use. They are as strict as zlib: code
// lengths that make no complete prefix code, distances that reach back before the first byte, and symbols without a
// meaning are errors, and so is anything after the end of the data.
package inflate

import (
	"context"
	"errors"
	"fmt"
)

// Kinds of failure. Returned errors wrap one of these and name the place and the fault.
var (
	// ErrTruncated means that the input ends before the data does.
	ErrTruncated = errors.New("deflate stream ends early")
	// ErrTooLong means that the data has more than len(dst) bytes.
	ErrTooLong = errors.New("deflate stream has more data than expected")
	// ErrChecksum means that the data differs from its CRC-32 or Adler-32, or its length from the length in
	// the gzip trailer.
	ErrChecksum = errors.New("deflate stream fails its check")
	// ErrCorrupt means that the input breaks the rules of the format, or goes on after the end.
	ErrCorrupt = errors.New("deflate stream is corrupt")
)

// Raw decodes a bare DEFLATE stream (RFC 1951) that fills src and returns the number of bytes written to dst,
// with an error those written before it. It stops with the error of ctx when ctx ends.
func Raw(ctx context.Context, dst, src []byte) (n int, err error) {
	d := newDecoder(ctx, dst, src)
	defer d.release()
	if err := d.stream(); err != nil {
		return d.out, err
	}
	return d.out, d.atEnd()
}

// atEnd returns an error if anything is left of src.
func (d *decoder) atEnd() error {
	if rest := len(d.src) - d.in; rest > 0 {
		return d.corrupt("%d bytes follow the end of the data", rest)
	}
	return nil
}

// padded returns an error if anything but zeros is left of src, which some writers and file systems add.
func (d *decoder) padded() error {
	for _, b := range d.src[d.in:] {
		if b != 0 {
			return d.atEnd()
		}
	}
	return nil
}

// corrupt returns the error of a fault just before the current position.
func (d *decoder) corrupt(format string, args ...any) error {
	bit := d.in*8 - int(d.count)
	return fmt.Errorf("%w at byte %d, bit %d: %s", ErrCorrupt, bit/8, bit%8, fmt.Sprintf(format, args...))
}

func (d *decoder) truncated() error {
	return fmt.Errorf("%w: %d bytes, from which %d could be decoded", ErrTruncated, len(d.src), d.out)
}

func (d *decoder) tooLong() error {
	return fmt.Errorf("%w: more than %d bytes", ErrTooLong, len(d.dst))
}
