package main

import (
	"bytes"
	"compress/flate"
	"context"
	"fmt"
	"io"

	kflate "github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"

	"strata/pkg/zarr/codec/enlz4"
	"strata/pkg/zarr/codec/enzstd"
	"strata/pkg/zarr/codec/inflate"
	"strata/pkg/zarr/codec/unzstd"
)

// A job is one that a codec of strata and a library both do.
type job struct {
	name, library string
	// prepare returns what each does with data, and for encoders the sizes of what they made.
	prepare func(data []byte) (ours, theirs func() error, sizes func() (ours, theirs int), err error)
}

func jobs() []job {
	return []job{
		{"decode Zstandard (unzstd)", "klauspost/compress", decodeZstd},
		{"encode Zstandard, level 1 (enzstd)", "klauspost/compress", encodeZstd},
		{"decode DEFLATE (inflate)", "klauspost/compress", decodeDeflate},
		{"encode LZ4 (enlz4)", "pierrec/lz4", encodeLZ4},
	}
}

// same returns an error unless both decoders have returned data.
func same(data, ours, theirs []byte) error {
	if !bytes.Equal(data, ours) || !bytes.Equal(data, theirs) {
		return fmt.Errorf("what is decoded is not what was encoded")
	}
	return nil
}

func decodeZstd(data []byte) (ours, theirs func() error, _ func() (int, int), err error) {
	var e enzstd.Encoder
	var d unzstd.Decoder
	frame := e.Encode(nil, data, 1, false)
	their, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	if err != nil {
		return nil, nil, nil, err
	}
	out, room := make([]byte, len(data)), make([]byte, 0, len(data))
	ours = func() error { _, err := d.Decode(out, frame); return err }
	theirs = func() error { room, err = their.DecodeAll(frame, room[:0]); return err }
	if err := firstly(ours, theirs); err != nil {
		return nil, nil, nil, err
	}
	return ours, theirs, nil, same(data, out, room)
}

func encodeZstd(data []byte) (ours, theirs func() error, sizes func() (int, int), err error) {
	var e enzstd.Encoder
	var d unzstd.Decoder
	their, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderCRC(false))
	if err != nil {
		return nil, nil, nil, err
	}
	var a, b []byte
	ours = func() error { a = e.Encode(a[:0], data, 1, false); return nil }
	theirs = func() error { b = their.EncodeAll(data, b[:0]); return nil }
	if err := firstly(ours, theirs); err != nil {
		return nil, nil, nil, err
	}
	ourOut, theirOut := make([]byte, len(data)), make([]byte, len(data))
	if err := firstly(func() error { _, err := d.Decode(ourOut, a); return err }, func() error { _, err := d.Decode(theirOut, b); return err }); err != nil {
		return nil, nil, nil, err
	}
	return ours, theirs, func() (int, int) { return len(a), len(b) }, same(data, ourOut, theirOut)
}

func decodeDeflate(data []byte) (ours, theirs func() error, _ func() (int, int), err error) {
	var stored bytes.Buffer
	w, err := flate.NewWriter(&stored, 5) // what c-blosc and numcodecs call level 5: zlib's
	if err == nil {
		_, err = w.Write(data)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		return nil, nil, nil, err
	}
	out, room := make([]byte, len(data)), make([]byte, len(data))
	their := kflate.NewReader(bytes.NewReader(nil))
	ours = func() error { _, err := inflate.Raw(context.Background(), out, stored.Bytes()); return err }
	theirs = func() error {
		if err := their.(kflate.Resetter).Reset(bytes.NewReader(stored.Bytes()), nil); err != nil {
			return err
		}
		_, err := io.ReadFull(their, room)
		return err
	}
	if err := firstly(ours, theirs); err != nil {
		return nil, nil, nil, err
	}
	return ours, theirs, nil, same(data, out, room)
}

func encodeLZ4(data []byte) (ours, theirs func() error, sizes func() (int, int), err error) {
	var e enlz4.Encoder
	var c lz4.Compressor
	a, b := make([]byte, enlz4.Bound(len(data))), make([]byte, lz4.CompressBlockBound(len(data)))
	n, m := 0, 0
	ours = func() error { n = e.Encode(a, data, 1); return nil }
	theirs = func() error { var err error; m, err = c.CompressBlock(data, b); return err }
	if err := firstly(ours, theirs); err != nil {
		return nil, nil, nil, err
	}
	ourOut, theirOut := make([]byte, len(data)), make([]byte, len(data))
	if err := firstly(func() error { _, err := lz4.UncompressBlock(a[:n], ourOut); return err }, func() error { _, err := lz4.UncompressBlock(b[:m], theirOut); return err }); err != nil {
		return nil, nil, nil, err
	}
	return ours, theirs, func() (int, int) { return n, m }, same(data, ourOut, theirOut)
}

// firstly does both once.
func firstly(ours, theirs func() error) error {
	if err := ours(); err != nil {
		return fmt.Errorf("strata: %w", err)
	}
	if err := theirs(); err != nil {
		return fmt.Errorf("the library: %w", err)
	}
	return nil
}
