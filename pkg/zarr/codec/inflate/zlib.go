package inflate

import (
	"context"
	"encoding/binary"
	"fmt"
)

// Zlib decodes a zlib stream (RFC 1950) that fills src, but for zero padding behind it, verifies its Adler-32 and
// returns the number of bytes written to dst. It refuses streams that need a preset dictionary. With an error,
// including that of ctx, n is the number of bytes decoded before.
func Zlib(ctx context.Context, dst, src []byte) (n int, err error) {
	d := newDecoder(ctx, dst, src)
	defer d.release()
	if err := d.zlib(); err != nil {
		return d.out, err
	}
	return d.out, d.padded()
}

// ZlibPrefix decodes like Zlib, but ignores what follows the stream in src.
func ZlibPrefix(ctx context.Context, dst, src []byte) (n int, err error) {
	d := newDecoder(ctx, dst, src)
	defer d.release()
	err = d.zlib()
	return d.out, err
}

// zlib decodes a stream, of header, data and checksum.
func (d *decoder) zlib() error {
	if err := d.zlibHeader(); err != nil {
		return err
	}
	if err := d.stream(); err != nil {
		return err
	}
	if len(d.src)-d.in < 4 {
		return d.truncated()
	}
	stored := binary.BigEndian.Uint32(d.src[d.in:])
	if sum := adler(d.dst[:d.out]); sum != stored {
		return fmt.Errorf("%w: adler-32 of the data is %#08x, byte %d says %#08x", ErrChecksum, sum, d.in, stored)
	}
	d.in += 4
	return nil
}

// ZlibHeader returns the length of the header of the zlib stream src.
func ZlibHeader(src []byte) (int, error) {
	d := newDecoder(context.Background(), nil, src)
	defer d.release()
	err := d.zlibHeader()
	return d.in, err
}

func (d *decoder) zlibHeader() error {
	if len(d.src) < 2 {
		return d.truncated()
	}
	h := binary.BigEndian.Uint16(d.src)
	switch {
	case h>>8&15 != 8 || h>>12 > 7:
		return d.corrupt("no zlib header: method and window %#02x, of 08 … 78", h>>8)
	case h%31 != 0:
		return d.corrupt("no zlib header: %#04x is not a multiple of 31", h)
	case h&0x20 != 0:
		return d.corrupt("the zlib stream needs a preset dictionary")
	}
	d.in = 2
	return nil
}
