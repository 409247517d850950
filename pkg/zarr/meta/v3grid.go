package meta

import (
	"encoding/json"
	"fmt"

	"strata/pkg/zarr/internal/number"
)

// parseGrid reads the chunk shape of a regular grid, or of a rectilinear grid whose chunks all have the same shape.
func (md *Array) parseGrid(field string, raw json.RawMessage) ([]int, error) {
	e, err := parseExtension(field, raw)
	if err != nil {
		return nil, err
	}
	const shape, shapes = "chunk_shape", "chunk_shapes"
	switch e.name {
	case "regular":
		grid, err := e.settings(field, shape)
		if err != nil {
			return nil, err
		}
		at := field + ".configuration." + shape
		if raw, ok := grid[shape]; ok {
			return parseChunkShape(at, raw, len(md.Shape))
		}
		return nil, FieldError(at, "missing")
	case "rectilinear":
		grid, err := e.settings(field, "kind", shapes)
		if err != nil {
			return nil, err
		}
		if string(grid["kind"]) != `"inline"` {
			return nil, foreign(FieldError(field+".configuration.kind", "%s is not supported (only \"inline\" is)", Shorten(grid["kind"])))
		}
		return parseRectilinear(field+".configuration."+shapes, grid[shapes], md.Shape)
	}
	return nil, foreign(FieldError(field+".name", "%q is not supported (only \"regular\" is, and \"rectilinear\" with chunks of one shape)", e.name))
}

// parseRectilinear reads the chunk shape of a rectilinear grid (zarr-extensions, chunk-grids/rectilinear): for each
// dimension a length, or a list of lengths and of pairs of a length and how often it is repeated. Chunks of several
// lengths are refused.
func parseRectilinear(field string, raw json.RawMessage, shape []int) ([]int, error) {
	list, ok := ParseList(raw)
	if !ok || len(list) != len(shape) {
		return nil, FieldError(field, "is %s, must be a list of %d lengths or lists of lengths, one for each dimension", Shorten(raw), len(shape))
	}
	chunks := make([]int, len(shape))
	for d, raw := range list {
		at := fmt.Sprintf("%s[%d]", field, d)
		lengths := []json.RawMessage{raw}
		_, uniform := number.Int(raw)
		if !uniform {
			if lengths, ok = ParseList(raw); !ok || len(lengths) == 0 {
				return nil, FieldError(at, "is %s, must be a length or a list of lengths", Shorten(raw))
			}
		}
		left := shape[d] // samples that no chunk holds so far
		for _, raw := range lengths {
			n, repeat := 0, 1
			pair, isPair := ParseList(raw)
			if isPair && len(pair) == 2 {
				raw = pair[0]
				repeat, isPair = number.Int(pair[1])
				if !isPair {
					repeat = 0
				}
			}
			if n, ok = number.Int(raw); !ok || n < 1 || repeat < 1 {
				return nil, FieldError(at, "is %s, whose lengths must be whole numbers above 0", Shorten(list[d]))
			}
			if chunks[d] != 0 && chunks[d] != n {
				return nil, foreign(FieldError(at, "chunks of several lengths (%d, %d) are not supported", chunks[d], n))
			}
			chunks[d] = n
			left -= min(left, n*min(repeat, 1+left/n))
		}
		if left > 0 && !uniform {
			return nil, FieldError(at, "is %s, whose sum must be %d, the length of the dimension, or more", Shorten(list[d]), shape[d])
		}
	}
	return chunks, nil
}
