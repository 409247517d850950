package guess

import (
	"cmp"
	"slices"
	"strings"
)

// Series is a group of files whose names differ in numbers only.
type Series struct {
	Example string // the first of them
	Files   int
	Fields  []Field // the numbers that differ
	// Proposals are the patterns that may describe the names, the likeliest first. None: the names have no number that
	// could tell tiles apart.
	Proposals []Proposal
}

// Field is a number that differs from name to name.
type Field struct {
	Word   string  // beside it, in lower case; "": none
	Values int     // how many it has
	Low    float64 // the smallest
	High   float64 // the largest
	Token  string  // of the first proposal: "row"; "*": any text
	Why    string  // why it is that
	Twice  bool    // it repeats an earlier one
}

// Proposal is a pattern with its reasons.
type Proposal struct {
	Pattern    string
	Confidence string // Certain, Likely or Unsure
	Why        string
	// Files is how many of the names it describes.
	Files int
	// Tenths: {x_um} and {y_um} are in tenths of µm, as TeraStitcher has them: they order the tiles, but are no
	// positions.
	Tenths bool
	// Swap: rows and columns may be exchanged; only pictures can tell.
	Swap bool
}

// How sure a proposal is.
const (
	Certain = "high"   // words name all numbers, and their counts agree
	Likely  = "medium" // counts name some numbers
	Unsure  = "low"
)

// group is what is known of names with one skeleton.
type group struct {
	skeleton string
	names    []string
	numbers  []number // of all names, fields together
	fields   int
	channels []string // words in the place of the channel; nil: there is none
	dyes     bool     // all of them are names of dyes
}

// Names groups paths, with / between folders, by their skeletons, and proposes patterns for each group of at least two,
// the largest group first. It looks at each path once.
func Names(paths []string) []Series {
	groups := map[string]*group{}
	var order []*group
	var numbers []number
	var skeleton []byte
	for _, p := range paths {
		if strings.IndexByte(p, hole) >= 0 || strings.IndexByte(p, channelHole) >= 0 {
			continue // no system has the one, nobody the other
		}
		numbers, skeleton = split(p, numbers[:0], skeleton[:0])
		g := groups[string(skeleton)]
		if g == nil {
			g = &group{skeleton: string(skeleton), fields: len(numbers)}
			groups[g.skeleton] = g
			order = append(order, g)
		}
		g.names = append(g.names, p)
		g.numbers = append(g.numbers, numbers...)
	}
	bySize(order)
	order = channels(slices.DeleteFunc(order, func(g *group) bool { return len(g.names) < 2 }))
	bySize(order)
	out := make([]Series, 0, len(order))
	for _, g := range order {
		out = append(out, g.series())
	}
	return out
}

// bySize sorts groups by their numbers of names, the largest first.
func bySize(groups []*group) {
	slices.SortStableFunc(groups, func(a, b *group) int {
		return cmp.Or(len(b.names)-len(a.names), strings.Compare(a.skeleton, b.skeleton))
	})
}

// series describes a group.
func (g *group) series() Series {
	all := g.columns()
	s := Series{Example: slices.Min(g.names), Files: len(g.names)}
	var varying []*column
	for _, c := range all {
		if c.same >= 0 || len(c.values) > 1 {
			varying = append(varying, c)
		}
	}
	n := naming{g: g, all: all, s: &s}
	n.run()
	for _, c := range varying {
		low, high := c.extent()
		s.Fields = append(s.Fields, Field{Word: c.word, Values: len(c.values), Low: low, High: high, Token: c.token, Why: c.why, Twice: c.same >= 0})
	}
	return s
}
