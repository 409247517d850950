package codec

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash"
	"hash/adler32"
	"hash/crc32"
	"sync"

	"strata/pkg/dtype"
	"strata/pkg/mem"
)

// checksumCodec puts a 32-bit checksum of the bytes before or behind them.
type checksumCodec struct {
	name    string
	sum     func([]byte) uint32
	start   func() hash.Hash32 // sum in pieces; nil: there is no such form
	atStart bool
}

// castagnoli returns the table of CRC-32C, which takes a tenth of a millisecond to make.
var castagnoli = sync.OnceValue(func() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) })

func crc32cSum(b []byte) uint32 { return crc32.Checksum(b, castagnoli()) }

func newCRC32C() hash.Hash32 { return crc32.New(castagnoli()) }

// CRC32C returns a codec that appends the CRC-32C of the bytes (Zarr v3's crc32c codec).
func CRC32C() Codec { return &checksumCodec{"crc32c", crc32cSum, newCRC32C, false} }

// CRC32 returns numcodecs' filter that prepends zlib's CRC-32 to the bytes.
func CRC32() Codec { return &checksumCodec{"crc32", crc32.ChecksumIEEE, crc32.NewIEEE, true} }

// Adler32 returns numcodecs' filter that prepends zlib's Adler-32 to the bytes.
func Adler32() Codec { return &checksumCodec{"adler32", adler32.Checksum, adler32.New, true} }

func parseCRC32C(*config, dtype.Type) Codec { return CRC32C() }

func parseCRC32CNumcodecs(c *config, _ dtype.Type) Codec {
	return &checksumCodec{"crc32c", crc32cSum, newCRC32C, c.atStart("end")}
}

func parseCRC32(c *config, _ dtype.Type) Codec {
	return &checksumCodec{"crc32", crc32.ChecksumIEEE, crc32.NewIEEE, c.atStart("start")}
}

func parseAdler32(c *config, _ dtype.Type) Codec {
	return &checksumCodec{"adler32", adler32.Checksum, adler32.New, c.atStart("start")}
}

func parseFletcher32(*config, dtype.Type) Codec { return Fletcher32() }

func (c *config) atStart(standard string) bool {
	return c.choice("location", standard, "start", "end") == "start"
}

// Checksum computes a codec's checksum piece by piece, for data that do not lie in memory as a whole.
type Checksum struct {
	New     func() hash.Hash32 // of the bytes
	Size    int64              // bytes that it takes, little-endian
	AtStart bool               // before the bytes, not behind them
}

// ChecksumOf returns the checksum that codec c adds; ok is false if c is not a checksum codec, or one whose
// sum cannot be computed in pieces.
func ChecksumOf(c Codec) (sum Checksum, ok bool) {
	k, ok := c.(*checksumCodec)
	if !ok || k.start == nil {
		return sum, false
	}
	return Checksum{New: k.start, Size: 4, AtStart: k.atStart}, true
}

func (k *checksumCodec) Name() string { return k.name }

func (k *checksumCodec) MetadataV2() (json.RawMessage, error) {
	return metadataV2(k.name, k.location())
}

func (k *checksumCodec) MetadataV3() (json.RawMessage, error) {
	if k.name == "crc32c" && !k.atStart {
		return metadataV3("crc32c", nil)
	}
	return metadataV3(prefixV3+k.name, k.location())
}

func (k *checksumCodec) location() map[string]any {
	if k.name == "fletcher32" {
		return map[string]any{} // it has one place
	}
	if k.atStart {
		return map[string]any{"location": "start"}
	}
	return map[string]any{"location": "end"}
}

func (k *checksumCodec) EncodedSize(n int) (lo, hi int) {
	n = mem.Sum(n, 4)
	return n, n
}

func (k *checksumCodec) Decode(_ *Scratch, dst, src []byte) (int, error) {
	if n := len(src) - 4; n > len(dst) {
		return 0, errTooLong(len(dst))
	}
	data, err := k.verify(src)
	if err != nil {
		return 0, err
	}
	return copy(dst, data), nil
}

// verify returns the data that the checksum is of, if it is right.
func (k *checksumCodec) verify(src []byte) ([]byte, error) {
	n := len(src) - 4
	if n < 0 {
		return nil, fmt.Errorf("%d bytes are too few for a checksum of 4", len(src))
	}
	data, sum, at := src[:n], src[n:], n
	if k.atStart {
		data, sum, at = src[4:], src[:4], 0
	}
	if got, want := k.sum(data), binary.LittleEndian.Uint32(sum); got != want {
		return nil, fmt.Errorf("checksum of the data is %08x, at byte %d is %08x", got, at, want)
	}
	return data, nil
}

func (k *checksumCodec) Encode(_ *Scratch, dst, src []byte) ([]byte, error) {
	dst = dst[:0]
	if cap(dst) < len(src)+4 {
		dst = make([]byte, 0, len(src)+4)
	}
	if k.atStart {
		return append(binary.LittleEndian.AppendUint32(dst, k.sum(src)), src...), nil
	}
	return binary.LittleEndian.AppendUint32(append(dst, src...), k.sum(src)), nil
}
