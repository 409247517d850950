package registration

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"
)

func TestTilePositions(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"import": {`{"tiles": [2, 3], "positions": [{"tile": [1, 2], "position_um": [10.5, -2e3]}, {"tile": [0, 0], "position_um": [0, 1]}]}`,
			"[2 3] false [{[1 2] [10.5 -2000]} {[0 0] [0 1]}]"},
		"stitch":             {`{"voxel_um": [0.5, 2], "origin_px": [1, 2], "positions": [{"tile": [0, 1], "position_px": [3, 4], "used": true}]}`, "[0 0] false [{[0 1] [1.5 8]}]"},
		"stitch, no voxel":   {`{"positions": [{"tile": [0, 1], "position_px": [3, 4]}]}`, "[0 0] true [{[0 1] [3 4]}]"},
		"both":               {`{"voxel_um": [0.5, 2], "positions": [{"tile": [0, 1], "position_px": [3, 4], "position_um": [7, 8]}]}`, "[0 0] false [{[0 1] [7 8]}]"},
		"table":              {"\ufeffcolumn, row,x_um,y_um,note\r\n1,0,5,6,a\r\n\r\n2.0,01,7e1,8,\r\n", "[0 0] false [{[0 1] [6 5]} {[1 2] [8 70]}]"},
		"table of pixels":    {"row,column,y_px,x_px\n0,0,1,2\n", "[0 0] true [{[0 0] [1 2]}]"},
		"table of both":      {"row,column,y_px,x_px,y_um,x_um\n0,0,1,2,3,4\n", "[0 0] false [{[0 0] [3 4]}]"},
		"spaces and newline": {"\n\n {\"positions\": [{\"tile\": [0, 0], \"position_um\": [0, 0]}]}\n", "[0 0] false [{[0 0] [0 0]}]"},
	} {
		p, err := ReadTilePositions(strings.NewReader(c.text), "f")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := fmt.Sprint(p.Grid, p.Pixels, p.Tiles); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func TestBadTilePositions(t *testing.T) {
	for text, want := range map[string]string{
		"":                                  "f:1: the file is empty",
		"{}":                                "f: contains no tile positions",
		"row,column,y_um,x_um\n":            "f: contains no tile positions",
		"row,column,y_um\n0,0,1\n":          `f:1: there is no column "x_um"`,
		"row,col,y_um,x_um\n0,0,1,2\n":      `f:1: there is no column "column"`,
		"row,column,y_um,x_um\n0,0,1,a\n":   `f:2: x_um is "a", want a number`,
		"row,column,y_um,x_um\n-1,0,1,2\n":  `f:2: row is "-1", want a whole number`,
		"row,column,y_um,x_um\n0,0,1,NaN\n": `f:2: x_um is "NaN", want a number`,
		"row,column,y_um,x_um\n0,0,1,2\n0,0,1,2\n":                                  "f:3: tile (0, 0) has a position already",
		"row,column,y_um,x_um\n0,0,1,2e15\n":                                        `f:2: x_um is "2e15", want a number from -1e+12 to 1e+12`,
		"{\"positions\":\n[{\"tile\": \"a\"}]}":                                     "f:2: positions.tile is a string, want a slice",
		"{\"positions\":\n[}":                                                       "f:2: invalid character",
		`{"positions": [{"tile": [0]}]}`:                                            `f:1: positions[0]: want "tile": [row, column]`,
		`{"positions": [{"tile": [0, 1]}]}`:                                         `f:1: positions[0]: want "tile": [row, column]`,
		`{"tiles": [1, 1], "positions": [{"tile": [0, 1], "position_um": [0, 0]}]}`: "f:1: positions[0]: tile (0, 1) lies outside the mosaic grid",
		"{\"positions\": [{\"tile\": [0, 1], \"position_um\": [0, 0]},\n{\"tile\": [0, 0],\n\"position_um\": [0, -1e300]}]}": "f:2: positions[1]: position -1e+300 is out of range",
		`{"positions": [{"tile": [0, 1], "position_um": [0, 1e999]}]}`:                                                       "f:1: positions.position_um is 1e999, which is too large",
		`{"tiles": [1, 0], "positions": []}`:                                                                                 "f:1: tiles is [1 0], want rows and columns",
		`{"voxel_um": [1, 0], "positions": []}`:                                                                              "f:1: voxel_um is [1 0], want two positive numbers",
		`{"positions": [{"tile": [0, 1], "position_um": [0, 0]}, {"tile": [0, 0], "position_px": [0, 0]}]}`:                  "f:1: positions[1]: some positions are in micrometres",
	} {
		_, err := ReadTilePositions(strings.NewReader(text), "f")
		checkError(t, err, "f")
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// What is written is read again.
func FuzzTilePositions(f *testing.F) {
	f.Add(`{"tiles": [2, 3], "voxel_um": [1, 2], "positions": [{"tile": [1, 2], "position_px": [10.5, -2e3]}]}`)
	f.Add("row,column,y_um,x_um\n0,1,2.5,3\n")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ReadTilePositions(strings.NewReader(text), "f")
		checkError(t, err, "f")
		if err != nil {
			return
		}
		for _, tile := range p.Tiles {
			if v := tile.Position; !(math.Abs(v[0]) <= farthest && math.Abs(v[1]) <= farthest) || min(tile.Tile[0], tile.Tile[1]) < 0 {
				t.Errorf("%+v", tile)
			}
		}
		var b, c bytes.Buffer
		if err := p.Write(&b); err != nil {
			t.Fatal(err)
		}
		q, err := ReadTilePositions(bytes.NewReader(b.Bytes()), "f")
		if err != nil {
			t.Fatalf("%v in what was written:\n%s", err, b.String())
		}
		if err := q.Write(&c); err != nil || !bytes.Equal(b.Bytes(), c.Bytes()) {
			t.Errorf("%v: %s, then %s", err, b.String(), c.String())
		}
	})
}
