package guess

import (
	"fmt"
	"slices"
	"strings"

	"strata/pkg/tilefiles"
)

// propose writes the patterns.
func (n *naming) propose(swap, tenths bool, restricted string) {
	if !n.placed() && n.has("z") == nil {
		return
	}
	confidence, why := n.confidence()
	if restricted != "" {
		why += fmt.Sprintf("; names of the well %s: others are mosaics of their own", restricted)
	}
	n.add(Proposal{Confidence: confidence, Why: why, Tenths: tenths, Swap: swap})
	if swap {
		n.alternative("columns come before rows", map[string]string{"row": "col", "col": "row"})
	}
	if s, i := n.has("slice"), n.has("index"); s != nil && i != nil && !s.named {
		n.alternative("the tiles of a grid have rows and columns in their names", map[string]string{"slice": "row", "index": "col"})
	}
	if z := n.has("z"); z != nil && !z.named && n.has("slice") == nil {
		n.alternative("the files of a tile are slices", map[string]string{"z": "slice"})
	}
	if i := n.has("index"); i != nil && i.word == "s" && n.has("t") != nil && n.has("slice") == nil {
		n.alternative("s counts slices, and t their tiles", map[string]string{"index": "slice", "t": "index"})
	}
	if s := n.has("slice"); s != nil && s.word == "s" && n.has("z") == nil {
		n.alternative("s counts planes", map[string]string{"slice": "z"})
	}
}

// confidence says how sure the names of the numbers are.
func (n *naming) confidence() (confidence, why string) {
	var named, counted []string
	for _, c := range n.all {
		switch {
		case c.token == "" || c.same >= 0:
		case c.token == "*":
			counted = append(counted, "a number that is any text")
		case c.named:
			named = append(named, "{"+c.token+"}")
		default:
			counted = append(counted, "{"+c.token+"}: "+c.why)
		}
	}
	if list := n.g.channels; list != nil {
		names := list
		if len(list) > 4 {
			names = append(slices.Clone(list[:3]), "…")
		}
		if text := "{channel}: " + strings.Join(names, ", "); n.g.dyes {
			named = append(named, text)
		} else {
			counted = append(counted, text)
		}
	}
	if len(counted) == 0 {
		return Certain, "words in the names name " + strings.Join(named, " ")
	}
	why = strings.Join(counted, "; ")
	if len(named) > 0 {
		why = "words name " + strings.Join(named, " ") + "; " + why
	}
	if n.has("*") != nil {
		return Unsure, why
	}
	return Likely, why
}

// alternative proposes a pattern in which some tokens are others.
func (n *naming) alternative(why string, tokens map[string]string) {
	old := make([]string, len(n.all))
	for k, c := range n.all {
		old[k] = c.token
		if other, ok := tokens[c.token]; ok {
			c.token = other
		}
	}
	n.add(Proposal{Confidence: Unsure, Why: why})
	for k, c := range n.all {
		c.token = old[k]
	}
}

// add writes the pattern of a proposal, unless package tilefiles refuses it, as it does for two numbers without text
// between.
func (n *naming) add(p Proposal) {
	p.Pattern = n.pattern()
	if _, err := tilefiles.ParsePattern(p.Pattern); err != nil {
		return
	}
	p.Files = len(n.g.names)
	for i := range n.g.names {
		for _, c := range n.all {
			if c.fixed != "" && n.g.text(i, c.at) != c.fixed {
				p.Files--
				break
			}
		}
	}
	n.s.Proposals = append(n.s.Proposals, p)
}

// pattern returns the pattern of the tokens. Characters that mean something in patterns become stars.
func (n *naming) pattern() string {
	var b strings.Builder
	k := 0
	for i := range len(n.g.skeleton) { // bytes: a name need not be UTF-8
		switch r := n.g.skeleton[i]; r {
		case hole:
			c := n.all[k]
			k++
			if c.same >= 0 {
				c = n.all[c.same]
			}
			switch {
			case c.fixed != "":
				b.WriteString(c.fixed)
			case c.token == "*":
				b.WriteString("*")
			default:
				b.WriteString("{" + c.token + "}")
			}
		case channelHole:
			b.WriteString("{channel}")
		case '{', '}', '*':
			b.WriteByte('*')
		default:
			b.WriteByte(r)
		}
	}
	return b.String()
}
