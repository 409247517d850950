package guess

import (
	"slices"
	"strconv"
)

// column is a number of all names of a group.
type column struct {
	at     int // number of the field
	word   string
	after  string
	values map[string]int // text to count
	num    []float64      // distinct numbers, in increasing order
	same   int            // an earlier column that always has the same text; −1: none
	folder bool           // it is in the name of a folder

	decimals, signs bool
	fixed           string // the text that the column has in all names, or is restricted to; "": it varies
	token, why      string
	named           bool // by a word, not by counts
}

// columns returns the columns of a group.
func (g *group) columns() []*column {
	all := make([]*column, g.fields)
	for k := range all {
		all[k] = g.column(k)
	}
	for k, c := range all {
		for j := 0; j < k && c.same < 0 && len(c.values) > 1; j++ {
			if all[j].same < 0 && len(all[j].values) == len(c.values) && g.equal(j, k) {
				c.same = j
			}
		}
	}
	return all
}

// text returns the text of a field of a name.
func (g *group) text(name, field int) string {
	n := g.numbers[name*g.fields+field]
	return g.names[name][n.start:n.end]
}

func (g *group) column(k int) *column {
	c := &column{at: k, same: -1, values: map[string]int{}}
	first := g.numbers[k]
	c.word, c.after = wordBefore(g.names[0][:first.start]), wordAfter(g.names[0][first.end:])
	for j := first.end; j < len(g.names[0]); j++ {
		c.folder = c.folder || g.names[0][j] == '/'
	}
	for i := range g.names {
		c.values[g.text(i, k)]++
	}
	for text := range c.values {
		v, _ := strconv.ParseFloat(text, 64) // digits, a sign and decimals
		c.num = append(c.num, v)
		c.signs = c.signs || text[0] == '-' || text[0] == '+'
		c.decimals = c.decimals || slices.Contains([]byte(text), '.')
	}
	slices.Sort(c.num)
	c.num = slices.Compact(c.num)
	if len(c.values) == 1 {
		c.fixed = g.text(0, k)
	}
	return c
}

// equal reports whether two fields have the same text in all names.
func (g *group) equal(a, b int) bool {
	for i := range g.names {
		if g.text(i, a) != g.text(i, b) {
			return false
		}
	}
	return true
}

func (c *column) extent() (low, high float64) { return c.num[0], c.num[len(c.num)-1] }

// consecutive reports whether most whole numbers between the smallest and the largest occur.
func (c *column) consecutive() bool {
	low, high := c.extent()
	return !c.decimals && high-low+1 <= float64(2*len(c.num)+2)
}

// distinct returns the number of different combinations of the texts of fields.
func (g *group) distinct(fields ...int) int {
	seen := map[string]bool{}
	var key []byte
	for i := range g.names {
		key = key[:0]
		for _, k := range fields {
			key = append(append(key, g.text(i, k)...), '/')
		}
		seen[string(key)] = true
	}
	return len(seen)
}
