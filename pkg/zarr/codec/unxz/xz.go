// Package unxz decodes LZMA, bare or in the .xz container, from one byte slice into another whose size the caller
// knows.
//
//	n, err := unxz.XZ(ctx, tile, stored)
//
// The LZMA decoder is that of github.com/ulikunitz/xz. The container is read here because that library takes as much
// memory as a header claims for its dictionary; here a dictionary is never larger than the output.
package unxz

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"hash/crc64"
	"math"

	"strata/pkg/zarr/codec/internal/fill"
)

// Magic is the beginning of every .xz stream.
const Magic = "\xfd7zXZ\x00"

const footerMagic = "YZ"

// Integrity checks of blocks.
const (
	CRC32  = 1
	CRC64  = 4
	SHA256 = 10
)

// Filters of blocks.
const (
	FilterDelta = 3
	FilterLZMA2 = 0x21
)

// ErrTooLong is wrapped by errors about data that decode to more bytes than dst has.
var ErrTooLong = fill.ErrTooLong

func truncated(off int) error { return fmt.Errorf("truncated at byte %d", off) }

var ecma = crc64.MakeTable(crc64.ECMA)

// reader goes through a container.
type reader struct {
	ctx context.Context
	src []byte
	at  int
}

// take returns the next n bytes.
func (x *reader) take(n int) ([]byte, error) {
	if n < 0 || n > len(x.src)-x.at {
		return nil, truncated(len(x.src))
	}
	x.at += n
	return x.src[x.at-n : x.at], nil
}

// XZ decodes the .xz streams of src (version 1.2.1 of the format), one after the other, to dst and returns the number
// of bytes.
func XZ(ctx context.Context, dst, src []byte) (n int, err error) {
	x := &reader{ctx: ctx, src: src}
	for {
		k, err := x.stream(dst[n:])
		if err != nil {
			if errors.Is(err, ErrTooLong) {
				err = fill.TooLong(len(dst))
			}
			return 0, err
		}
		n += k
		for len(src)-x.at >= 4 && bytes.Equal(src[x.at:x.at+4], make([]byte, 4)) {
			x.at += 4 // stream padding
		}
		if x.at == len(src) {
			return n, nil
		}
	}
}

func (x *reader) stream(dst []byte) (n int, err error) {
	start := x.at
	header, err := x.take(12)
	if err != nil {
		return 0, err
	}
	if string(header[:6]) != Magic || header[6] != 0 || header[7] > 15 || !sumMatches(header[6:8], header[8:]) {
		return 0, fmt.Errorf("no .xz stream header at byte %d", start)
	}
	check, blocks := header[7], 0
	for {
		if x.at == len(x.src) {
			return 0, truncated(x.at)
		}
		if x.src[x.at] == 0 {
			break
		}
		at := x.at
		k, err := x.block(dst[n:], check)
		if err != nil {
			return 0, fmt.Errorf("block at byte %d: %w", at, err)
		}
		n += k
		blocks++
	}
	at := x.at
	size, err := x.index(blocks)
	if err != nil {
		return 0, fmt.Errorf("index at byte %d: %w", at, err)
	}
	footer, err := x.take(12)
	if err != nil {
		return 0, err
	}
	if string(footer[10:]) != footerMagic || !sumMatches(footer[4:10], footer) ||
		!bytes.Equal(footer[8:10], header[6:8]) || int64(binary.LittleEndian.Uint32(footer[4:]))*4+4 != int64(size) {
		return 0, fmt.Errorf("no .xz stream footer that fits at byte %d", x.at-12)
	}
	return n, nil
}

// block decodes one block and verifies its check.
func (x *reader) block(dst []byte, check byte) (n int, err error) {
	header, err := x.take(4 * (int(x.src[x.at]) + 1))
	if err != nil {
		return 0, err
	}
	if !sumMatches(header[:len(header)-4], header[len(header)-4:]) {
		return 0, errors.New("checksum of the block header does not match")
	}
	fields := header[2 : len(header)-4]
	varint := func() (v uint64) {
		v, k := binary.Uvarint(fields)
		if k <= 0 {
			fields, err = nil, errors.New("malformed number in the block header")
			return 0
		}
		fields = fields[k:]
		return v
	}
	flags := header[1]
	packed, unpacked := uint64(math.MaxUint64), uint64(math.MaxUint64)
	if flags&0x3c != 0 {
		return 0, fmt.Errorf("reserved block flags %#02x are set", flags)
	}
	if flags&0x40 != 0 {
		packed = varint()
	}
	if flags&0x80 != 0 {
		unpacked = varint()
	}
	var deltas []int
	dict := int64(0)
	for i := int(flags & 3); i >= 0; i-- {
		id, size := varint(), varint()
		if err != nil {
			return 0, err
		}
		if size != 1 || len(fields) < 1 || (id != FilterDelta || i == 0) && (id != FilterLZMA2 || i > 0) {
			return 0, fmt.Errorf("filter %#x is not supported (must be delta, and at the end LZMA2)", id)
		}
		if id == FilterDelta {
			deltas = append(deltas, int(fields[0])+1)
		} else if dict, err = dictionarySize(fields[0]); err != nil {
			return 0, err
		}
		fields = fields[1:]
	}
	n, read, err := LZMA2(x.ctx, dst, x.src[x.at:], dict)
	if err != nil {
		return 0, err
	}
	if packed != math.MaxUint64 && packed != uint64(read) || unpacked != math.MaxUint64 && unpacked != uint64(n) {
		return 0, errors.New("sizes in the block header do not match the block")
	}
	for i := len(deltas) - 1; i >= 0; i-- {
		Undelta(dst[:n], deltas[i])
	}
	x.at += read
	padding, err := x.take(-read & 3)
	if err != nil {
		return 0, err
	}
	if len(bytes.Trim(padding, "\x00")) > 0 {
		return 0, errors.New("padding is not zero")
	}
	return n, x.verify(dst[:n], check)
}

// dictionarySize returns the dictionary size that LZMA2's property byte stands for.
func dictionarySize(b byte) (int64, error) {
	switch {
	case b > 40:
		return 0, fmt.Errorf("dictionary size %d (must be 0 to 40)", b)
	case b == 40:
		return math.MaxUint32, nil
	}
	return int64(2|b&1) << (b/2 + 11), nil
}

// verify compares the check behind a block with its decoded bytes. It skips undefined checks, as the format
// demands.
func (x *reader) verify(data []byte, check byte) error {
	sizes := [...]int{0, 4, 4, 4, 8, 8, 8, 16, 16, 16, 32, 32, 32, 64, 64, 64}
	sum, err := x.take(sizes[check])
	if err != nil {
		return err
	}
	ok := true
	switch check {
	case CRC32:
		ok = sumMatches(data, sum)
	case CRC64:
		ok = crc64.Checksum(data, ecma) == binary.LittleEndian.Uint64(sum)
	case SHA256:
		ok = sha256.Sum256(data) == [32]byte(sum)
	}
	if !ok {
		return fmt.Errorf("check before byte %d does not match the data", x.at)
	}
	return nil
}

// index reads the index and returns its length.
func (x *reader) index(blocks int) (int, error) {
	start := x.at
	x.at++
	varint := func() (uint64, bool) {
		v, k := binary.Uvarint(x.src[x.at:])
		x.at += max(0, k)
		return v, k > 0
	}
	if count, ok := varint(); !ok || count != uint64(blocks) {
		return 0, fmt.Errorf("lists %d blocks, there are %d", count, blocks)
	}
	for range 2 * blocks {
		if _, ok := varint(); !ok {
			return 0, truncated(x.at)
		}
	}
	x.at += -(x.at - start) & 3
	end := x.at
	sum, err := x.take(4)
	if err != nil {
		return 0, err
	}
	if !sumMatches(x.src[start:end], sum) {
		return 0, errors.New("checksum does not match")
	}
	return x.at - start, nil
}

func sumMatches(data, sum []byte) bool {
	return crc32.ChecksumIEEE(data) == binary.LittleEndian.Uint32(sum)
}
