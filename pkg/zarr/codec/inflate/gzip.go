package inflate

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// Flags of a gzip member's header (RFC 1952, 2.3.1).
const (
	flagHCRC = 1 << 1 << iota
	flagExtra
	flagName
	flagComment
	flagReserved = 0xe0
)

// Gzip decodes one or several gzip members (RFC 1952) that fill src, but for zero padding behind them, and returns the
// number of bytes written to dst. It verifies CRC-32 and length of every member. Anything else after a member is an
// error. With an error, including that of ctx, n is the number of bytes decoded before.
func Gzip(ctx context.Context, dst, src []byte) (n int, err error) {
	d := newDecoder(ctx, dst, src)
	defer d.release()
	for {
		if err := d.gzipMember(); err != nil || d.in == len(src) {
			return d.out, err
		}
		if src[d.in] == 0 {
			return d.out, d.padded()
		}
		if src[d.in] != 0x1f || d.in+1 < len(src) && src[d.in+1] != 0x8b {
			return d.out, d.atEnd()
		}
	}
}

// GzipHeader returns the length of the header of the gzip member that src begins with.
func GzipHeader(src []byte) (int, error) {
	d := newDecoder(context.Background(), nil, src)
	defer d.release()
	err := d.gzipHeader()
	return d.in, err
}

func (d *decoder) gzipMember() error {
	if err := d.gzipHeader(); err != nil {
		return err
	}
	d.start = d.out
	if err := d.stream(); err != nil {
		return err
	}
	if len(d.src)-d.in < 8 {
		return d.truncated()
	}
	data := d.dst[d.start:d.out]
	stored, size := binary.LittleEndian.Uint32(d.src[d.in:]), binary.LittleEndian.Uint32(d.src[d.in+4:])
	if sum := crc32.ChecksumIEEE(data); sum != stored {
		return fmt.Errorf("%w: crc-32 of the data is %#08x, byte %d says %#08x", ErrChecksum, sum, d.in, stored)
	}
	if uint32(len(data)) != size {
		return fmt.Errorf("%w: %d bytes, byte %d says %d", ErrChecksum, len(data), d.in+4, size)
	}
	d.in += 8
	return nil
}

// gzipHeader skips the header with its optional fields.
func (d *decoder) gzipHeader() error {
	first := d.in
	h := d.src[first:]
	for i, want := range [3]byte{0x1f, 0x8b, 8} {
		if i < len(h) && h[i] != want {
			d.in += i
			return d.corrupt("no gzip header, which begins 1f 8b 08")
		}
	}
	if len(h) < 10 {
		return d.truncated()
	}
	flags := h[3]
	if flags&flagReserved != 0 {
		d.in += 3
		return d.corrupt("reserved flags in the gzip header, %#02x", flags)
	}
	d.in += 10
	if flags&flagExtra != 0 {
		if len(d.src)-d.in < 2 {
			return d.truncated()
		}
		n := 2 + int(binary.LittleEndian.Uint16(d.src[d.in:]))
		if len(d.src)-d.in < n {
			return d.truncated()
		}
		d.in += n
	}
	for _, f := range [2]byte{flagName, flagComment} {
		if flags&f == 0 {
			continue
		}
		for {
			if d.in == len(d.src) {
				return d.truncated()
			}
			d.in++
			if d.src[d.in-1] == 0 {
				break
			}
		}
	}
	if flags&flagHCRC != 0 {
		if len(d.src)-d.in < 2 {
			return d.truncated()
		}
		sum := uint16(crc32.ChecksumIEEE(d.src[first:d.in]))
		if stored := binary.LittleEndian.Uint16(d.src[d.in:]); sum != stored {
			return fmt.Errorf("%w: crc-16 of the gzip header is %#04x, byte %d says %#04x", ErrChecksum, sum, d.in, stored)
		}
		d.in += 2
	}
	return nil
}
