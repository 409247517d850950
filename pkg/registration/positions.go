package registration

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"

	"strata/pkg/smallfile"
)

// TilePositions holds the stage positions that a microscope recorded for the tiles of a mosaic grid.
type TilePositions struct {
	Name   string // of the file
	Grid   [2]int // rows and columns of the mosaic grid; zero: the file does not say
	Pixels bool   // positions are in pixels, otherwise in micrometres
	Tiles  []TilePosition
}

// TilePosition is the position of a tile's first pixel.
type TilePosition struct {
	Tile     [2]int     // row and column in the mosaic grid
	Position [2]float64 // (y, x)
}

// mostTile bounds rows and columns: beyond is a mistake.
const mostTile = 1 << 20

// positionsFile is the JSON form, that of stitch --save_positions. Positions in pixels become micrometres where
// the file states the voxel size.
type positionsFile struct {
	Grid  *[2]int     `json:"tiles"`
	Voxel *[2]float64 `json:"voxel_um"`
	Tiles []struct {
		Tile        []int     `json:"tile"`
		Micrometres []float64 `json:"position_um"`
		Pixels      []float64 `json:"position_px"`
	} `json:"positions"`
}

// ReadTilePositions reads the positions of tiles: JSON as written by stitch --save_positions and zarr-tool
// import --tiles, or CSV with the columns row, column, y_um and x_um (or y_px and x_px). Duplicate tiles,
// impossible numbers, and a file without tiles are errors, which begin with file and line. name is the file's
// name in errors.
func ReadTilePositions(r io.Reader, name string) (*TilePositions, error) {
	b, err := smallfile.All(r, name)
	if err != nil {
		return nil, err
	}
	text := bytes.TrimSpace(bytes.TrimPrefix(b, []byte("\xef\xbb\xbf")))
	p := &TilePositions{Name: name}
	if bytes.HasPrefix(text, []byte("{")) {
		err = p.readJSON(b)
	} else {
		err = p.readTable(b)
	}
	if err != nil {
		return nil, err
	}
	if len(p.Tiles) == 0 {
		return nil, fmt.Errorf("%s: contains no tile positions", name)
	}
	return p, nil
}

func (p *TilePositions) readJSON(b []byte) error {
	b = bytes.TrimPrefix(b, []byte("\xef\xbb\xbf"))
	var f positionsFile
	if err := json.Unmarshal(b, &f); err != nil {
		return smallfile.JSONError(p.Name, b, err)
	}
	if f.Grid != nil {
		p.Grid = *f.Grid
		if !(min(p.Grid[0], p.Grid[1]) > 0 && max(p.Grid[0], p.Grid[1]) <= mostTile) {
			return fmt.Errorf("%s:%d: tiles is %v, want rows and columns of the mosaic grid", p.Name, smallfile.JSONLine(b, "tiles"), p.Grid)
		}
	}
	scale := [2]float64{1, 1}
	if v := f.Voxel; v != nil {
		if !(min(v[0], v[1]) > 0 && max(v[0], v[1]) < 1e9) {
			return fmt.Errorf("%s:%d: voxel_um is %v, want two positive numbers", p.Name, smallfile.JSONLine(b, "voxel_um"), *v)
		}
		scale = *v
	}
	seen := map[[2]int]bool{}
	bad := func(i int, format string, args ...any) error {
		keys := append([]string{"positions"}, slices.Repeat([]string{"tile"}, i+1)...)
		return fmt.Errorf("%s:%d: positions[%d]: %w", p.Name, smallfile.JSONLine(b, keys...), i, fmt.Errorf(format, args...))
	}
	for i, e := range f.Tiles {
		at := e.Micrometres
		pixels := at == nil && f.Voxel == nil
		if at == nil {
			at = e.Pixels
		}
		if len(e.Tile) != 2 || len(at) != 2 {
			return bad(i, `want "tile": [row, column] with "position_um" or "position_px": [y, x]`)
		}
		if i == 0 {
			p.Pixels = pixels
		} else if p.Pixels != pixels {
			return bad(i, "some positions are in micrometres, others in pixels")
		}
		t := TilePosition{[2]int(e.Tile), [2]float64(at)}
		if e.Micrometres == nil {
			t.Position = [2]float64{at[0] * scale[0], at[1] * scale[1]}
		}
		if err := p.add(t, seen); err != nil {
			return bad(i, "%w", err)
		}
	}
	return nil
}

func (p *TilePositions) readTable(b []byte) error {
	t, err := openTable(bytes.NewReader(b), p.Name, "row", "column")
	if err != nil {
		return err
	}
	_, um := t.columns["y_um"]
	_, px := t.columns["y_px"]
	unit := "um"
	if p.Pixels = px && !um; p.Pixels {
		unit = "px"
	}
	for _, c := range []string{"y_" + unit, "x_" + unit} {
		if _, ok := t.columns[c]; !ok {
			return t.errorf("there is no column %q (columns are %s)", c, t.names())
		}
	}
	seen := map[[2]int]bool{}
	for {
		ok, err := t.next()
		if err != nil || !ok {
			return err
		}
		var e TilePosition
		for d, c := range []string{"row", "column"} {
			v, ok := wholeNumber(t.text(c))
			if !ok {
				return t.errorf("%s is %s, want a whole number from 0 on", c, t.quoted(c))
			}
			e.Tile[d] = v
		}
		for d, c := range []string{"y_" + unit, "x_" + unit} {
			if e.Position[d], err = t.number(c); err != nil {
				return err
			}
		}
		if err := p.add(e, seen); err != nil {
			return t.errorf("%w", err)
		}
	}
}

// add adds a tile that was not seen before.
func (p *TilePositions) add(t TilePosition, seen map[[2]int]bool) error {
	for d, v := range t.Position {
		if !(math.Abs(v) <= farthest) {
			return fmt.Errorf("position %g is out of range", v)
		}
		if n := p.Grid[d]; t.Tile[d] < 0 || t.Tile[d] >= mostTile || n > 0 && t.Tile[d] >= n {
			return fmt.Errorf("tile (%d, %d) lies outside the mosaic grid", t.Tile[0], t.Tile[1])
		}
	}
	if seen[t.Tile] {
		return fmt.Errorf("tile (%d, %d) has a position already", t.Tile[0], t.Tile[1])
	}
	seen[t.Tile] = true
	p.Tiles = append(p.Tiles, t)
	return nil
}

// Write writes the positions as JSON, one tile per line, in grid order.
func (p *TilePositions) Write(w io.Writer) error {
	b := bufio.NewWriter(w)
	b.WriteString("{\n")
	if p.Grid != [2]int{} {
		fmt.Fprintf(b, " \"tiles\": [%d, %d],\n", p.Grid[0], p.Grid[1])
	}
	unit := "um"
	if p.Pixels {
		unit = "px"
	}
	b.WriteString(" \"positions\": [")
	tiles := slices.SortedFunc(slices.Values(p.Tiles), func(a, b TilePosition) int {
		return cmp.Or(a.Tile[0]-b.Tile[0], a.Tile[1]-b.Tile[1])
	})
	for i, t := range tiles {
		if i > 0 {
			b.WriteByte(',')
		}
		number := func(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
		fmt.Fprintf(b, "\n  {\"tile\": [%d, %d], \"position_%s\": [%s, %s]}", t.Tile[0], t.Tile[1], unit, number(t.Position[0]), number(t.Position[1]))
	}
	b.WriteString("\n ]\n}\n")
	return b.Flush() // what failed before fails here
}
