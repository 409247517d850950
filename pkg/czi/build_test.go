package czi_test

import (
	"bytes"
	"encoding/binary"
	"math"

	"strata/pkg/czi"
)

// dim is a dimension entry.
type dim struct {
	name                byte
	start, size, stored int32
}

// block is a sub-block of a file that build makes.
type block struct {
	dims                      []dim
	pixel                     czi.PixelType
	compression               czi.Compression
	part                      int32
	meta, payload, attachment []byte
	deleted                   bool
}

// at is the position of a level-0 tile of 4 × 3 pixels, with a mosaic index unless that is negative.
func at(x, y, m int32) []dim {
	d := []dim{{'X', x, 4, 4}, {'Y', y, 3, 3}}
	if m >= 0 {
		d = append(d, dim{'M', m, 1, 1})
	}
	return d
}

// segment makes a segment of data that is filled up.
func segment(id string, data []byte) []byte {
	b := make([]byte, 32)
	copy(b, id)
	used := len(data)
	data = append(data, make([]byte, -len(data)&31)...)
	binary.LittleEndian.PutUint64(b[16:], uint64(len(data)))
	binary.LittleEndian.PutUint64(b[24:], uint64(used))
	return append(b, data...)
}

// build makes a file that no writer makes.
func build(xml string, blocks ...block) []byte {
	le := binary.LittleEndian
	file := make([]byte, 544)
	var entries []byte
	for _, k := range blocks {
		e := make([]byte, 32)
		copy(e, "DV")
		le.PutUint32(e[2:], uint32(k.pixel))
		le.PutUint64(e[6:], uint64(len(file)))
		le.PutUint32(e[14:], uint32(k.part))
		le.PutUint32(e[18:], uint32(k.compression))
		le.PutUint32(e[28:], uint32(len(k.dims)))
		for _, d := range k.dims {
			e = append(e, d.name, 0, 0, 0)
			e = le.AppendUint32(e, uint32(d.start))
			e = le.AppendUint32(e, uint32(d.size))
			e = le.AppendUint32(e, math.Float32bits(float32(d.start)))
			e = le.AppendUint32(e, uint32(d.stored))
		}
		entries = append(entries, e...)
		data := make([]byte, max(256, 16+len(e)))
		le.PutUint32(data, uint32(len(k.meta)))
		le.PutUint32(data[4:], uint32(len(k.attachment)))
		le.PutUint64(data[8:], uint64(len(k.payload)))
		copy(data[16:], e)
		id := "ZISRAWSUBBLOCK"
		if k.deleted {
			id = "DELETED"
		}
		file = append(file, segment(id, bytes.Join([][]byte{data, k.meta, k.payload, k.attachment}, nil))...)
	}
	metaAt := len(file)
	meta := make([]byte, 256)
	le.PutUint32(meta, uint32(len(xml)))
	file = append(file, segment("ZISRAWMETADATA", append(meta, xml...))...)
	dirAt := len(file)
	dir := make([]byte, 128)
	le.PutUint32(dir, uint32(len(blocks)))
	file = append(file, segment("ZISRAWDIRECTORY", append(dir, entries...))...)
	copy(file, "ZISRAWFILE")
	le.PutUint32(file[32:], 1)
	le.PutUint64(file[84:], uint64(dirAt))
	le.PutUint64(file[92:], uint64(metaAt))
	return file
}
