package meta

import (
	"encoding/json"
	"strconv"
	"strings"

	"strata/pkg/zarr/box"
)

// keyEncoding forms the keys of chunk files (v3 "chunk_key_encoding", v2 "dimension_separator").
type keyEncoding struct {
	v2        bool // no leading "c"; 0-d is "0"
	Separator byte
}

func parseSeparator(field string, raw json.RawMessage) (byte, error) {
	s, err := parseString(field, raw)
	if err != nil {
		return 0, err
	}
	if s != "." && s != "/" {
		return 0, FieldError(field, "is %q, must be \".\" or \"/\"", s)
	}
	return s[0], nil
}

func parseKeyEncoding(field string, raw json.RawMessage) (keyEncoding, error) {
	e, err := parseExtension(field, raw)
	if err != nil {
		return keyEncoding{}, err
	}
	var k keyEncoding
	switch e.name {
	case "default":
		k.Separator = '/'
	case "v2":
		k.v2, k.Separator = true, '.'
	default:
		return k, FieldError(field+".name", "%q is not known (must be \"default\" or \"v2\")", e.name)
	}
	m, err := e.settings(field, "separator")
	if err != nil {
		return k, err
	}
	if raw, ok := m["separator"]; ok {
		k.Separator, err = parseSeparator(field+".configuration.separator", raw)
	}
	return k, err
}

// Append appends the key of a chunk, relative to the array, to b.
func (k keyEncoding) Append(b []byte, chunk []int) []byte {
	if k.v2 {
		if len(chunk) == 0 {
			return append(b, '0')
		}
	} else {
		b = append(b, 'c')
		if len(chunk) > 0 {
			b = append(b, k.Separator)
		}
	}
	for d, i := range chunk {
		if d > 0 {
			b = append(b, k.Separator)
		}
		b = strconv.AppendInt(b, int64(i), 10)
	}
	return b
}

// IsChunkKey reports whether a key below the array's folder names a chunk file of its grid or, if folder is set,
// whether such keys begin with it.
func (md *Array) IsChunkKey(key string, folder bool) bool {
	k, grid := md.Keys, make([]int, len(md.Shape))
	for d := range grid {
		grid[d] = box.CeilDiv(md.Shape[d], md.Chunks[d])
	}
	parts := strings.Split(key, string(k.Separator))
	if folder && k.Separator != '/' || !folder && k.Separator == '.' && strings.Contains(key, "/") {
		return false
	}
	if !k.v2 {
		if parts[0] != "c" {
			return false
		}
		parts = parts[1:]
	} else if len(grid) == 0 {
		grid = []int{1} // the key is "0"
	}
	if len(parts) > len(grid) || !folder && len(parts) != len(grid) || folder && len(parts) == len(grid) {
		return false
	}
	for d, p := range parts {
		if i, err := strconv.Atoi(p); err != nil || i < 0 || i >= grid[d] || strconv.Itoa(i) != p {
			return false
		}
	}
	return true
}
