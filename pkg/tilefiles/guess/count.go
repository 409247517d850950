package guess

import "slices"

// byCount names numbers that no word names, by how many values they have and how they run together. It reports whether
// rows and columns were told apart by their order alone.
func (n *naming) byCount() (swap bool) {
	swap = n.byPair()
	free := n.free()
	if c := n.has("t"); c != nil && !n.placed() && n.has("row") == nil && n.has("col") == nil && len(free) == 0 {
		n.name(c, "index", "%q, and no other number tells tiles apart", c.word)
		c.named = false
	}
	switch row, col := n.has("row"), n.has("col"); {
	case n.placed():
	case row != nil && len(free) > 0:
		n.name(free[0], "col", "the number beside the rows")
	case col != nil && len(free) > 0:
		n.name(free[0], "row", "the number beside the columns")
	case row != nil || col != nil: // one of them alone numbers tiles
		c := row
		if c == nil {
			c = col
		}
		n.name(c, "index", "%q without its counterpart numbers the tiles", c.word)
		c.named = false
	case len(free) == 1:
		n.name(free[0], "index", "the only number that differs between tiles")
	case len(free) > 1:
		swap = n.pair(free) || swap
	}
	for _, c := range n.free() {
		switch {
		case c.folder && n.has("slice") == nil:
			n.name(c, "slice", "a number in a folder's name beside those of tiles")
		case !c.folder && n.placedInFolders() && n.has("z") == nil:
			n.name(c, "z", "files in the folder of a tile")
		case n.has("slice") == nil:
			n.name(c, "slice", "a number beside those of tiles")
		case n.has("z") == nil:
			n.name(c, "z", "a number beside those of tiles and slices")
		}
	}
	return swap
}

// byPair names two numbers behind one word for a position, as in Pos_002_003: they are rows and columns, in an order
// that only pictures can tell.
func (n *naming) byPair() bool {
	if n.placed() || n.has("row") != nil || n.has("col") != nil {
		return false
	}
	for _, c := range n.free() {
		if slices.Contains(words["index"], c.word) && n.paired(c) {
			n.name(c, "row", "two numbers behind %q make a grid", c.word)
			n.name(n.all[c.at+1], "col", "two numbers behind %q make a grid", c.word)
			return true
		}
	}
	return false
}

// placedInFolders reports whether the numbers of tiles stand in the names of folders.
func (n *naming) placedInFolders() bool {
	for _, token := range []string{"index", "row", "col", "x_um"} {
		if c := n.has(token); c != nil && !c.folder {
			return false
		}
	}
	return true
}

// pair names two or more numbers without words: the last two are rows and columns if all of their combinations occur,
// else slices and an index that runs on or has as many values as tiles.
func (n *naming) pair(free []*column) (swap bool) {
	a, b := free[len(free)-2], free[len(free)-1]
	product := len(a.num) * len(b.num)
	switch there := n.g.distinct(a.at, b.at); {
	case a.folder != b.folder && b.consecutive():
		n.name(b, "index", "the number in the files' names")
	case !a.consecutive() && b.consecutive():
		n.name(b, "index", "the last number: the one before does not count")
	case !b.consecutive() && a.consecutive():
		n.name(a, "index", "the number that counts")
	case there*10 >= product*7:
		n.name(a, "row", "%d × %d values make %d of %d combinations", len(a.num), len(b.num), there, product)
		n.name(b, "col", "%d × %d values make %d of %d combinations", len(a.num), len(b.num), there, product)
		return true
	default:
		n.name(b, "index", "%d × %d values make only %d combinations: no grid", len(a.num), len(b.num), there)
	}
	return false
}
