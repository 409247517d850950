package codec

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"strata/pkg/dtype"
)

// bloscCodec writes and reads the container of c-blosc 1 (format version 2): a
// header of 16 bytes, the offsets of the blocks, and the blocks. A block is
// shuffled, then compressed whole or as one stream per byte of an element
// ("split"). See README_HEADER.rst of c-blosc.
type bloscCodec struct {
	cname     string
	clevel    int
	shuffle   BloscShuffle
	typesize  int
	blocksize int
}

// BloscShuffle selects how Blosc reorders a block before compression. The numbers are those of numcodecs.
type BloscShuffle int

// Shuffles of c-blosc 1.
const (
	AutoShuffle BloscShuffle = iota - 1 // bit shuffle for elements of one byte, otherwise byte shuffle
	NoShuffle
	ByteShuffle
	BitShuffle
)

var bloscShuffleNames = []string{"noshuffle", "shuffle", "bitshuffle"} // from NoShuffle on

var bloscNames = []string{"blosclz", "lz4", "lz4hc", "snappy", "zlib", "zstd"}

const (
	bloscHeader      = 16
	bloscMaxTypesize = 255
	bloscMaxSize     = 1<<31 - 1 - bloscHeader // BLOSC_MAX_BUFFERSIZE

	// BlockRoom is the maximum length of a Blosc block that a Scratch holds; it has room for two. Compressors
	// choose longer blocks only on request; those borrow memory from a pool of the process.
	BlockRoom = 2 << 20
)

// Blosc returns a Blosc codec. cname is blosclz (read only), lz4, lz4hc, zlib or zstd; clevel is 0 (stored)
// to 9; typesize is the size of an element in bytes, 1 to 255; blocksize is the length of a block in bytes, 0
// for the length that c-blosc would choose.
func Blosc(cname string, clevel int, shuffle BloscShuffle, typesize, blocksize int) (Codec, error) {
	switch {
	case !slices.Contains(bloscNames, cname) || cname == "snappy":
		return nil, fmt.Errorf("blosc: compressor %q (must be blosclz, lz4, lz4hc, zlib or zstd)", cname)
	case clevel < 0 || clevel > 9:
		return nil, fmt.Errorf("blosc: level %d (must be 0 to 9)", clevel)
	case shuffle < AutoShuffle || shuffle > BitShuffle:
		return nil, fmt.Errorf("blosc: shuffle %d (must be -1 to 2)", shuffle)
	case typesize < 1 || typesize > bloscMaxTypesize:
		return nil, fmt.Errorf("blosc: element size %d (must be 1 to %d)", typesize, bloscMaxTypesize)
	case blocksize < 0 || blocksize > bloscMaxSize:
		return nil, fmt.Errorf("blosc: block size %d (must be 0 to %d)", blocksize, bloscMaxSize)
	}
	return &bloscCodec{cname, clevel, shuffle, typesize, blocksize}, nil
}

func parseBloscV2(c *config, elem dtype.Type) Codec {
	b := &bloscCodec{
		cname:     c.choice("cname", "lz4", bloscNames...),
		clevel:    c.setting("clevel", 0, 9, 5),
		shuffle:   BloscShuffle(c.setting("shuffle", -1, 2, 1)),
		typesize:  bloscTypesize(c.setting("typesize", 0, math.MaxInt32, elem.Size())),
		blocksize: c.setting("blocksize", 0, bloscMaxSize, 0),
	}
	b.refuseSnappy(c)
	return b
}

func parseBloscV3(c *config, elem dtype.Type) Codec {
	names := bloscShuffleNames
	b := &bloscCodec{
		cname:     c.choice("cname", "zstd", bloscNames...),
		clevel:    c.setting("clevel", 0, 9, 5),
		shuffle:   BloscShuffle(slices.Index(names, c.choice("shuffle", "shuffle", names...))),
		typesize:  bloscTypesize(c.setting("typesize", 0, math.MaxInt32, elem.Size())),
		blocksize: c.setting("blocksize", 0, bloscMaxSize, 0),
	}
	b.refuseSnappy(c)
	return b
}

func (b *bloscCodec) refuseSnappy(c *config) {
	if b.cname == "snappy" {
		c.fail("\"cname\" is snappy, which is not supported (must be blosclz, lz4, lz4hc, zlib, zstd)")
	}
}

// bloscTypesize returns the element size that Blosc uses: elements larger than its maximum count as bytes.
func bloscTypesize(n int) int {
	if n > bloscMaxTypesize {
		return 1
	}
	return max(n, 1)
}

// resolved returns the shuffle that is used, never AutoShuffle.
func (b *bloscCodec) resolved() BloscShuffle {
	switch {
	case b.shuffle == AutoShuffle && b.typesize == 1:
		return BitShuffle
	case b.shuffle == AutoShuffle:
		return ByteShuffle
	}
	return b.shuffle
}

func (b *bloscCodec) Name() string { return "blosc" }

// MetadataV2 leaves the element size out, as numcodecs does: it is the array's.
func (b *bloscCodec) MetadataV2() (json.RawMessage, error) {
	return metadataV2("blosc", map[string]any{
		"cname": b.cname, "clevel": b.clevel, "shuffle": int(b.shuffle), "blocksize": b.blocksize})
}

func (b *bloscCodec) MetadataV3() (json.RawMessage, error) {
	return metadataV3("blosc", map[string]any{
		"cname": b.cname, "clevel": b.clevel, "shuffle": bloscShuffleNames[b.resolved()],
		"typesize": b.typesize, "blocksize": b.blocksize})
}
