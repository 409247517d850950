package guess

import (
	"fmt"
	"slices"
	"strings"

	"strata/pkg/tilefiles"
)

// words maps a token to the words that clearly name its number.
var words = map[string][]string{
	"row":   {"r", "row", "rows", "ypos", "posy", "yy"},
	"col":   {"col", "cols", "column", "columns", "xpos", "posx", "xx"},
	"index": {"tile", "tiles", "pos", "position", "index", "idx", "i", "m", "site", "stage", "series", "field", "f", "fov", "point", "mosaic"},
	"slice": {"sl", "slice", "slices", "sect", "section", "sections", "cut", "layer", "scene"},
	"z":     {"z", "plane", "planes", "zplane", "depth", "focus", "zslice", "zpos", "stack"},
	"c":     {"ch", "chan", "channel", "channels", "w", "wave", "wavelength", "lambda", "ex"},
	"t":     {"t", "time", "timepoint", "tp", "cycle"},
}

// naming gives the columns of a group their tokens.
type naming struct {
	g   *group
	all []*column
	s   *Series
	sk  bool // names as Opera has them, of wells
}

// free returns the columns that vary and have no token.
func (n *naming) free() (out []*column) {
	for _, c := range n.all {
		if c.same < 0 && c.fixed == "" && c.token == "" {
			out = append(out, c)
		}
	}
	return out
}

// has returns the column with a token, nil if there is none.
func (n *naming) has(token string) *column {
	for _, c := range n.all {
		if c.token == token {
			return c
		}
	}
	return nil
}

// word returns the column beside one of some words, varying or not.
func (n *naming) word(list ...string) *column {
	for _, c := range n.all {
		if c.same < 0 && slices.Contains(list, c.word) {
			return c
		}
	}
	return nil
}

func (n *naming) name(c *column, token, why string, args ...any) {
	c.token, c.why = token, fmt.Sprintf(why, args...)
}

func (n *naming) run() {
	var swap, tenths bool
	var restricted string
	if tenths = n.terastitcher(); !tenths {
		restricted = n.wells()
		n.axes()
		n.byWord()
		n.byAmbiguousWord()
		swap = n.byCount()
	}
	for _, c := range n.free() {
		n.name(c, "*", "no token is left for it")
	}
	n.propose(swap, tenths, restricted)
}

// terastitcher names the numbers of TeraStitcher's folders: RRRRRR/RRRRRR_CCCCCC/RRRRRR_CCCCCC_ZZZZZZ.tif, in tenths of
// µm.
func (n *naming) terastitcher() bool {
	const r, c, z = string(hole), string(hole), string(hole)
	for _, ext := range []string{".tif", ".tiff", ".png"} {
		if n.g.skeleton != r+"/"+r+"_"+c+"/"+r+"_"+c+"_"+z+ext {
			continue
		}
		for i := range n.g.names {
			if n.g.text(i, 0) != n.g.text(i, 1) || n.g.text(i, 0) != n.g.text(i, 3) || n.g.text(i, 2) != n.g.text(i, 4) {
				return false
			}
		}
		why := "the folders of TeraStitcher, RRRRRR/RRRRRR_CCCCCC/RRRRRR_CCCCCC_ZZZZZZ, have positions in tenths of µm"
		for k, token := range []string{"y_um", "y_um", "x_um", "y_um", "x_um", "z"} {
			column := n.all[k]
			column.token, column.why, column.named, column.fixed = token, why, true, ""
		}
		return true
	}
	return false
}

// wells restricts names with wells, fields, planes and channels, as Opera and Operetta write them
// (r01c01f01p01-ch1sk1fk1fl1.tiff), to the first well, since each well is a mosaic of its own. It describes that
// restriction.
func (n *naming) wells() string {
	r, c, f := n.word("r"), n.word("c"), n.word("f")
	if r == nil || c == nil || f == nil || n.word("sk") == nil {
		return ""
	}
	n.sk = true
	text := ""
	for _, w := range []*column{r, c} {
		if w.fixed == "" {
			w.fixed = slices.Min(keys(w.values))
			w.why = "the first of several wells"
			text += w.word + w.fixed
		}
	}
	for word, token := range map[string]string{"f": "index", "p": "z", "sk": "t"} {
		if w := n.word(word); w.fixed == "" {
			n.name(w, token, "%q in names of Opera and Operetta", word)
			w.named = true
		}
	}
	return text
}

func keys(m map[string]int) (out []string) {
	for k := range m {
		out = append(out, k)
	}
	return out
}

// axes names x and y: positions in µm, or columns and rows.
func (n *naming) axes() {
	x, y := n.word("x", "xpos", "posx", "stagex"), n.word("y", "ypos", "posy", "stagey")
	if x == nil || y == nil || x.fixed != "" && y.fixed != "" || n.sk {
		return
	}
	um := x.decimals || y.decimals || strings.HasPrefix(x.after, "um") || strings.HasPrefix(x.after, "µm") || !x.consecutive() && !y.consecutive()
	tokens, why := [2]string{"col", "row"}, "columns and rows beside the words %q and %q"
	if um {
		tokens, why = [2]string{"x_um", "y_um"}, "positions beside the words %q and %q: they have decimals, a unit, or large gaps"
	}
	for k, c := range []*column{x, y} {
		n.name(c, tokens[k], why, x.word, y.word)
		c.named, c.fixed = true, "" // a line of tiles has one value along the other axis
	}
}

// byWord names numbers whose words are clear.
func (n *naming) byWord() {
	for _, c := range n.free() {
		for _, token := range tilefiles.Tokens {
			if slices.Contains(words[token], c.word) && n.has(token) == nil && !n.excluded(token) && !(token == "index" && n.paired(c)) {
				n.name(c, token, "the word %q", c.word)
				c.named = true
				break
			}
		}
	}
	// A scan of one row or one column has a number that does not vary.
	for _, pair := range [][2]string{{"row", "col"}, {"col", "row"}} {
		if n.has(pair[0]) == nil || n.has(pair[1]) != nil {
			continue
		}
		for _, c := range n.all {
			if c.fixed != "" && c.same < 0 && (slices.Contains(words[pair[1]], c.word) || pair[1] == "col" && c.word == "c") {
				n.name(c, pair[1], "the word %q, although all names have %s", c.word, c.fixed)
				c.named, c.fixed = true, ""
				break
			}
		}
	}
}

// paired reports whether a number without a word follows a column after a separator, and both make a grid, as in
// Pos_002_003.
func (n *naming) paired(c *column) bool {
	k := c.at + 1
	if k == len(n.all) || n.all[k].word != "" || n.all[k].same >= 0 || n.all[k].fixed != "" {
		return false
	}
	switch between := n.g.names[0][n.g.numbers[c.at].end:n.g.numbers[k].start]; between {
	case "-", "_", ",", "x", " ", ", ":
		return n.g.distinct(c.at, k)*10 >= len(c.num)*len(n.all[k].num)*7
	}
	return false
}

// excluded reports whether a token contradicts one that is there: rows and columns, an index and positions in µm tell
// tiles apart.
func (n *naming) excluded(token string) bool {
	place := n.has("row") != nil || n.has("col") != nil || n.has("x_um") != nil
	switch token {
	case "c":
		return n.g.channels != nil
	case "channel": // a word
		return true
	case "index":
		return place
	case "row", "col":
		return n.has("index") != nil || n.has("x_um") != nil
	}
	return false
}

// byAmbiguousWord names numbers whose words mean different things in different programs.
func (n *naming) byAmbiguousWord() {
	for _, c := range n.free() {
		switch c.word {
		case "c":
			if r := n.word("r", "row", "rows"); r != nil && n.has("col") == nil && !n.excluded("col") {
				n.name(c, "col", "%q beside %q", "c", r.word)
				if r.fixed != "" {
					n.name(r, "row", "%q beside %q, although all names have %s", r.word, "c", r.fixed)
					r.named, r.fixed = true, ""
				}
			} else if n.has("c") == nil && !n.excluded("c") {
				n.name(c, "c", "%q without rows: a channel", "c")
			}
		case "s":
			// MetaMorph has stage positions, others have slices or scenes beside their tiles.
			if !n.placed() && n.others(c) == 0 {
				n.name(c, "index", "%q, and no other number tells tiles apart: stage positions, as MetaMorph has them", "s")
			} else if n.has("slice") == nil {
				n.name(c, "slice", "%q beside the numbers of tiles", "s")
			}
		case "p":
			if !n.placed() && n.others(c) == 0 {
				n.name(c, "index", "%q, and no other number tells tiles apart: positions", "p")
			} else if n.has("z") == nil {
				n.name(c, "z", "%q beside the numbers of tiles: a plane", "p")
			}
		}
		c.named = c.token != ""
	}
}

// placed reports whether tiles are told apart.
func (n *naming) placed() bool {
	return n.has("index") != nil || n.has("row") != nil && n.has("col") != nil || n.has("x_um") != nil
}

// others returns the number of free columns besides one.
func (n *naming) others(c *column) (count int) {
	for _, o := range n.free() {
		if o != c {
			count++
		}
	}
	return count
}
