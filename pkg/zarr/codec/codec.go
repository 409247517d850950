// Package codec converts the elements of a Zarr chunk to the bytes of a stored object and back: compressors,
// checksums, and the filters of numcodecs.
//
// A chunk passes a [Chain]: first the filters, which work on elements, then the compressors and checksums,
// which work on bytes. Encoding runs the chain forwards, decoding backwards. Most callers need [ParseV2] or
// [ParseV3] to read a chain from metadata (or [FromFlag] to make one from a command line), then
// [Chain.Decode] and [Chain.Encode] with one [Scratch] per worker:
//
//	chain, err := codec.FromFlag("blosc-zstd:1", dtype.Float32, 3)
//	object, err = chain.Encode(scratch, object, chunk)  // appended to object[:0]
//	err = chain.Decode(scratch, chunk, object)          // fills chunk exactly
//
// Decoders trust no number of the input: the caller gives the decoded length, nothing is written beyond it,
// and a header alone never causes an allocation. They do not panic on bad input; their errors name the fault
// and the byte or block, and the caller adds the object's name.
//
// All codecs can decode. Bz2, Blosc with BloscLZ, and LZMA with custom filters cannot encode; their Encode
// returns an error, and [Chain.ReadOnly] an earlier one.
//
// Package zarr implements array order, byte order ("transpose", "bytes") and sharding.
package codec

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"strata/pkg/dtype"
)

// Errors for errors.Is.
var (
	// ErrUnknown is wrapped by errors about a codec that this package does not have.
	ErrUnknown = errors.New("unknown codec")
	// ErrTooLong is wrapped by errors about encoded data that hold more than the expected bytes.
	ErrTooLong = errors.New("decodes to more bytes than expected")
	// ErrReadOnly is wrapped by errors of Encode for a codec or setting that can only be decoded.
	ErrReadOnly = errors.New("can be read, not written")
	// ErrFormat is wrapped by errors about a codec that the requested Zarr format cannot express.
	ErrFormat = errors.New("codec does not exist in this Zarr format")
)

// Codec encodes and decodes the bytes of one chunk. It holds only settings and is safe for concurrent use;
// each call gets its working memory from a Scratch, which is not.
type Codec interface {
	// Name returns the codec's identifier in metadata, such as "zstd".
	Name() string

	// Decode writes the decoded form of src to the front of dst and returns its length. More than len(dst)
	// bytes (ErrTooLong), and truncated, malformed or corrupted input, are errors. dst and src must not
	// overlap. Bytes of dst behind the returned length may be overwritten.
	Decode(s *Scratch, dst, src []byte) (int, error)

	// Encode appends the encoded form of src to dst[:0], growing it if necessary, and returns it.
	Encode(s *Scratch, dst, src []byte) ([]byte, error)

	// EncodedSize returns bounds for the length of n encoded bytes; lo == hi if the length does not depend on
	// the content.
	EncodedSize(n int) (lo, hi int)

	// MetadataV2 returns the codec's object in the "compressor" or "filters" of a .zarray, MetadataV3 that in
	// the "codecs" of a zarr.json, or ErrFormat if there is none.
	MetadataV2() (json.RawMessage, error)
	MetadataV3() (json.RawMessage, error)
}

// Filter is a codec of numcodecs that works on elements ("array → array" in v3's terms) and may change their
// type. Its elements are little-endian in memory unless its configuration names another byte order.
type Filter interface {
	Codec
	// Types returns the element types of the decoded and of the encoded side. A filter that works with any
	// type returns the array's for both.
	Types() (decoded, encoded dtype.Type)
}

// PartialDecoder is implemented by codecs that can decode a part of a chunk without the rest.
type PartialDecoder interface {
	Codec
	// DecodeRange decodes bytes [off, off+len(dst)) of a chunk of size bytes.
	DecodeRange(s *Scratch, dst, src []byte, off, size int) error
	// FetchRange fills the parts of src, which has room for the encoded chunk, that DecodeRange looks at for n bytes
	// from off: it calls fetch for bytes [from, to) of src, and returns its error. Of an unusual chunk it fetches
	// everything.
	FetchRange(src []byte, off, n, size int, fetch func(from, to int) error) error
	// DecodeBlocks decodes a chunk of size bytes piece by piece: it calls emit with each piece, in order, and
	// its offset in the chunk, while the piece is in the cache. The piece is reused after emit returns; an
	// error of emit ends the decoding.
	DecodeBlocks(s *Scratch, src []byte, size int, emit func(off int, piece []byte) error) error
}

// PrefixDecoder is implemented by codecs that can decode the beginning of a chunk without the rest.
type PrefixDecoder interface {
	Codec
	// DecodePrefix decodes at least the first n bytes of a chunk of len(dst) bytes into dst. The rest of dst
	// is undefined, and damage of the rest of the chunk may go unnoticed.
	DecodePrefix(s *Scratch, dst, src []byte, n int) error
}

// A parser makes a codec from its configuration object and from the type of the
// elements that it will get.
type parser func(c *config, elem dtype.Type) Codec

// parsersV2 has the codecs of numcodecs by the "id" of their configuration.
var parsersV2 = map[string]parser{
	"gzip":             parseGzip,
	"zlib":             parseZlib,
	"zstd":             parseZstdV2,
	"lz4":              parseLZ4,
	"blosc":            parseBloscV2,
	"bz2":              parseBZ2,
	"lzma":             parseLZMA,
	"crc32":            parseCRC32,
	"crc32c":           parseCRC32CNumcodecs,
	"adler32":          parseAdler32,
	"fletcher32":       parseFletcher32,
	"shuffle":          parseShuffle,
	"delta":            parseDelta,
	"fixedscaleoffset": parseFixedScaleOffset,
	"quantize":         parseQuantize,
	"bitround":         parseBitRound,
	"packbits":         parsePackBits,
	"astype":           parseAsType,
}

// parsersV3 holds the codecs that Zarr v3 names itself. The codecs of parsersV2 have the names "numcodecs.<id>" there.
var parsersV3 = map[string]parser{
	"gzip":   parseGzip,
	"zstd":   parseZstdV3,
	"blosc":  parseBloscV3,
	"crc32c": parseCRC32C,
}

// filtersV3 has the array → array codecs of zarr-extensions.
var filtersV3 = map[string]parser{
	"scale_offset": parseScaleOffset,
	"cast_value":   parseCastValue,
}

// prefixV3 is the prefix of numcodecs' ids in zarr-python's v3 metadata.
const prefixV3 = "numcodecs."

func findV3(name string) parser {
	for _, known := range []map[string]parser{parsersV3, filtersV3} {
		if p := known[name]; p != nil {
			return p
		}
	}
	if name == OfStoreName { // no codec that anyone should write
		return parseOfStore
	}
	if id, ok := strings.CutPrefix(name, prefixV3); ok {
		return parsersV2[id]
	}
	return nil
}

// ParseV2 parses one object of a .zarray's "compressor" or "filters". elem is the type of the elements that
// the codec encodes (see [ParseChainV2]).
func ParseV2(object json.RawMessage, elem dtype.Type) (Codec, error) {
	c, err := newConfig(object)
	if err != nil {
		return nil, fmt.Errorf("codec: %w", err)
	}
	id, ok := c.take("id")
	var name string
	if !ok || json.Unmarshal(id, &name) != nil || name == "" {
		return nil, errors.New(`codec: "id" must be the name of a codec`)
	}
	parse := parsersV2[name]
	if parse == nil {
		return nil, fmt.Errorf("codec %s: %w (known: %s)", strconv.QuoteToASCII(name), ErrUnknown, known(parsersV2))
	}
	c.name = name
	return c.finish(parse(c, elem))
}

// ParseV3 parses one codec of a zarr.json's "codecs" from its name and "configuration", nil if absent. elem
// is the type of the elements that the codec encodes.
func ParseV3(name string, configuration json.RawMessage, elem dtype.Type) (Codec, error) {
	return parseV3(name, configuration, elem, false)
}

// ParseFilterV3 parses a codec that stands in front of "bytes" and so works on values: its configuration's types have
// no byte order.
func ParseFilterV3(name string, configuration json.RawMessage, elem dtype.Type) (Codec, error) {
	c, err := parseV3(name, configuration, elem, true)
	if err != nil {
		return nil, err
	}
	f, ok := c.(Filter)
	if !ok {
		return nil, fmt.Errorf("%q needs \"bytes\" or \"sharding_indexed\" before it", name)
	}
	if from, _ := f.Types(); from != elem {
		return nil, fmt.Errorf("codec %q: works on %s, but gets %s", name, from, elem)
	}
	return c, nil
}

func parseV3(name string, configuration json.RawMessage, elem dtype.Type, values bool) (Codec, error) {
	parse := findV3(name)
	if parse == nil {
		return nil, fmt.Errorf("codec %s: %w (known: %s, %s, and as %q: %s)",
			strconv.QuoteToASCII(name), ErrUnknown, known(parsersV3), known(filtersV3), prefixV3+"…", known(parsersV2))
	}
	if len(configuration) == 0 {
		configuration = json.RawMessage("{}")
	}
	c, err := newConfig(configuration)
	if err != nil {
		return nil, fmt.Errorf("codec %q: configuration: %w", name, err)
	}
	c.name, c.v3, c.values = name, true, values
	return c.finish(parse(c, elem))
}

func known(m map[string]parser) string {
	return strings.Join(slices.Sorted(maps.Keys(m)), ", ")
}

// ChecksumSuffix follows the name or level of a codec in the syntax of [FromFlag] where the chain ends with a checksum.
const ChecksumSuffix = "+crc32c"

// FromFlag returns the chain that a program's flags name as NAME or NAME:LEVEL: raw, zstd, lz4, gzip,
// blosc-lz4, blosc-lz4hc, blosc-zlib or blosc-zstd (the last four with byte shuffle). With [ChecksumSuffix]
// behind, the stored bytes have a checksum: the codec crc32c, or in format 2 that of Zstandard frames. format is
// the Zarr format, 2 or 3.
func FromFlag(s string, elem dtype.Type, format int) (Chain, error) {
	name, sum := strings.CutSuffix(s, ChecksumSuffix)
	chain, err := compressorFromFlag(name, elem)
	if err != nil || !sum {
		return chain, err
	}
	if format != 2 {
		return append(chain, CRC32C()), nil
	}
	if z, ok := chain.only().(*zstdCodec); ok {
		return Chain{Zstd(z.level, true)}, nil
	}
	return nil, errChecksumV2
}

// errChecksumV2 is returned by FromFlag for a checksum in format 2. numcodecs has such a filter, but of the readers of
// format 2 only zarr-python supports it.
var errChecksumV2 = errors.New("--checksum needs Zarr format 3, because readers of format 2 do not have the codec crc32c: give --zarr_format 3, or --codec zstd, which has a checksum of its own")

func compressorFromFlag(s string, elem dtype.Type) (Chain, error) {
	name, level, given := strings.Cut(s, ":")
	// levels: least, greatest, and the one taken when none is given
	choose := func(least, greatest, standard int) (int, error) {
		if !given {
			return standard, nil
		}
		l, err := strconv.Atoi(level)
		if err != nil || l < least || l > greatest {
			return 0, fmt.Errorf("codec %q: level must be a whole number from %d to %d", s, least, greatest)
		}
		return l, nil
	}
	switch name {
	case "raw":
		if given {
			return nil, fmt.Errorf("codec %q: raw has no level", s)
		}
		return nil, nil
	case "zstd":
		l, err := choose(zstdMinLevel, zstdMaxLevel, 1)
		if err != nil {
			return nil, err
		}
		return Chain{Zstd(l, false)}, nil
	case "lz4":
		// the level of plain LZ4 is its acceleration: greater is faster
		l, err := choose(1, 65537, 1)
		if err != nil {
			return nil, err
		}
		return Chain{LZ4(l)}, nil
	case "gzip":
		l, err := choose(0, 9, 1)
		if err != nil {
			return nil, err
		}
		return Chain{Gzip(l)}, nil
	case "blosc-lz4", "blosc-lz4hc", "blosc-zlib", "blosc-zstd":
		l, err := choose(0, 9, 1)
		if err != nil {
			return nil, err
		}
		c, err := Blosc(strings.TrimPrefix(name, "blosc-"), l, ByteShuffle, bloscTypesize(elem.Size()), 0)
		if err != nil {
			return nil, err
		}
		return Chain{c}, nil
	}
	return nil, fmt.Errorf("codec %q: unknown (must be raw, zstd, lz4, gzip, blosc-lz4, blosc-lz4hc, blosc-zlib or blosc-zstd, with :LEVEL or without)", s)
}
