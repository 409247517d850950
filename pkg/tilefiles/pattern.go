package tilefiles

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Token is a number, or the name of a channel, that a pattern finds in names.
type Token int

// The tokens of patterns.
const (
	Row Token = iota
	Col
	Index
	SliceToken
	Z
	C
	T
	XUM
	YUM
	Channel
	tokens
)

// Tokens are the names of tokens in patterns, in the order of the constants.
var Tokens = [...]string{"row", "col", "index", "slice", "z", "c", "t", "x_um", "y_um", "channel"}

// whole reports whether a number is a whole one.
func (t Token) whole() bool { return t < XUM }

// Pattern describes the names of files, which may lie in folders below a root.
type Pattern struct {
	text   string
	levels [][]part // of the path, folders first
	has    [tokens]bool
}

// part is a text, a star, or a token.
type part struct {
	kind  partKind
	text  string
	token Token
}

type partKind int

const (
	literal partKind = iota
	star
	number
	word
)

// mostPattern is the maximum length of a pattern: that of a path.
const mostPattern = 4096

// ParsePattern parses a pattern: a relative path with / between folders, in which
//
//	{row} {col} {index} {slice} {z} {c} {t}   is a whole number, with or without leading zeros and sign
//	{x_um} {y_um}                             is a position in µm, with or without sign and decimals
//	{channel}                                 is the name of a channel, such as DAPI: any text, as short as it can be
//	*                                         is any text in a name; at its beginning none with a dot, as for a shell
//
// A number is a whole run of digits, never a part of one. Behind a star or a name it has no sign: that belongs to the
// text. A token may appear twice, as in 'sl{slice}/sl{slice}_{index}.tif', and must then have one value. A pattern has
// {row} and {col}, {index}, or {x_um} and {y_um}.
func ParsePattern(text string) (*Pattern, error) {
	p := &Pattern{text: text}
	if err := p.parse(text); err != nil {
		return nil, &OptionError{"pattern", fmt.Errorf("%q: %w", text, err)}
	}
	return p, nil
}

// String returns the pattern as it was given.
func (p *Pattern) String() string { return p.text }

// Has reports whether the pattern has a token.
func (p *Pattern) Has(t Token) bool { return p.has[t] }

func (p *Pattern) parse(text string) error {
	switch {
	case text == "":
		return fmt.Errorf("is empty: want names such as tile_{row}_{col}.tif")
	case len(text) > mostPattern:
		return fmt.Errorf("has %d bytes, at most %d make sense", len(text), mostPattern)
	case strings.HasPrefix(text, "/"):
		return fmt.Errorf("begins with /: names are below the folder")
	case strings.ContainsRune(text, 0):
		return fmt.Errorf("has a zero byte")
	}
	for level := range strings.SplitSeq(text, "/") {
		if level == "" || level == "." || level == ".." {
			return fmt.Errorf("has the folder %q: want the names of folders below the first", level)
		}
		parts, err := parseLevel(level)
		if err != nil {
			return err
		}
		p.levels = append(p.levels, parts)
		for _, x := range parts {
			if x.kind == number || x.kind == word {
				p.has[x.token] = true
			}
		}
	}
	return p.check()
}

// parseLevel parses the name of a folder or file.
func parseLevel(text string) (parts []part, err error) {
	for rest := text; rest != ""; {
		var x part
		switch n := strings.IndexAny(rest, "{}*"); {
		case n < 0:
			x, rest = part{text: rest}, ""
		case n > 0:
			x, rest = part{text: rest[:n]}, rest[n:]
		case rest[0] == '*':
			x, rest = part{kind: star}, strings.TrimLeft(rest, "*")
		case rest[0] == '}':
			return nil, fmt.Errorf("has a } without {")
		default:
			name, behind, ok := strings.Cut(rest[1:], "}")
			if !ok {
				return nil, fmt.Errorf("has a { without }")
			}
			k := slices.Index(Tokens[:], name)
			if k < 0 {
				return nil, fmt.Errorf("{%s} is not known: want {%s}", strings.Trim(strconv.Quote(name), `"`), strings.Join(Tokens[:], "} {"))
			}
			x, rest = part{kind: number, token: Token(k)}, behind
			if x.token == Channel {
				x.kind = word
			}
			if n := len(parts); n > 0 && parts[n-1].kind == x.kind {
				return nil, fmt.Errorf("{%s} follows another %s without text between", name, map[partKind]string{number: "number", word: "name"}[x.kind])
			}
		}
		parts = append(parts, x)
	}
	return parts, nil
}

// Single reports whether a slice is a single tile, whose files are its planes, channels or times.
func (p *Pattern) Single() bool { return !p.has[Row] && !p.has[Index] && !p.has[XUM] }

// check reports whether the tokens tell files apart.
func (p *Pattern) check() error {
	ways := 0
	for _, w := range [][2]Token{{Row, Col}, {Index, Index}, {XUM, YUM}} {
		a, b := p.has[w[0]], p.has[w[1]]
		if a != b {
			there, not := w[0], w[1]
			if b {
				there, not = not, there
			}
			return fmt.Errorf("has {%s} but not {%s}", Tokens[there], Tokens[not])
		}
		if a {
			ways++
		}
	}
	switch {
	case p.has[C] && p.has[Channel]:
		return fmt.Errorf("has {c} besides {channel}: put * for one of them")
	case ways == 0 && !(p.has[Z] || p.has[C] || p.has[Channel] || p.has[T] || p.has[SliceToken]):
		return fmt.Errorf("does not tell tiles apart: want {row} and {col}, {index}, or {x_um} and {y_um}; or {z}, {c}, {channel}, {t} or {slice} for the files of one tile")
	case ways > 1 && !(ways == 2 && p.has[Row] && p.has[XUM]) && !(ways == 2 && p.has[Index] && p.has[XUM]):
		return fmt.Errorf("has {row} and {col} besides {index}: put * for one of them")
	}
	return nil
}

// Fields are the numbers of a name, and the name of a channel.
type Fields struct {
	Whole   [XUM]int64 // of tokens that are whole numbers
	UM      [2]float64 // (x, y)
	Channel string
	set     [tokens]bool
	twice   bool   // a token has two values
	stars   string // what stars stand for, separated by zero bytes
}

// Match returns the numbers in a path below the root; ok is false if the pattern does not match.
func (p *Pattern) Match(path string) (f Fields, ok bool) {
	names := strings.Split(path, "/")
	if len(names) != len(p.levels) {
		return f, false
	}
	for i, name := range names {
		if _, ok := matchLevel(p.levels[i], name, &f); !ok {
			return f, false
		}
	}
	return f, true
}

// matchLevel matches a name and adds its numbers to f. far is the number of parts that matched at most.
func matchLevel(parts []part, name string, f *Fields) (far int, ok bool) {
	if strings.HasPrefix(name, ".") && len(parts) > 0 && (parts[0].kind == star || parts[0].kind == word) { // as for a shell, it is hidden
		return 0, false
	}
	m := matcher{parts: parts, name: name, f: f}
	ok = m.match(0, 0) && !f.twice
	if ok {
		for k, x := range parts {
			if x.kind == star {
				f.stars += name[m.spans[k][0]:m.spans[k][1]] + "\x00"
			}
		}
	}
	return m.far, ok
}

// matcher matches a name against parts. A star is as short as it can be, and so is a word, which has at least one
// character.
type matcher struct {
	parts  []part
	name   string
	f      *Fields
	spans  map[int][2]int  // places of stars
	failed map[[2]int]bool // number of a star or word and the place of its end behind which nothing matches
	far    int
}

func (m *matcher) match(k, at int) bool {
	m.far = max(m.far, k)
	if k == len(m.parts) {
		return at == len(m.name)
	}
	switch x := m.parts[k]; x.kind {
	case literal:
		return strings.HasPrefix(m.name[at:], x.text) && m.match(k+1, at+len(x.text))
	case number:
		end := numberEnd(m.name, at, x.token, k > 0 && m.parts[k-1].kind != literal)
		if end < 0 || !m.match(k+1, end) {
			return false
		}
		return m.f.put(x.token, m.name[at:end])
	}
	if m.failed == nil {
		m.failed, m.spans = map[[2]int]bool{}, map[int][2]int{}
	}
	end, named := at, m.parts[k].kind == word
	if named {
		end++
	}
	for ; end <= len(m.name); end++ {
		if m.failed[[2]int{k, end}] {
			continue
		}
		if m.match(k+1, end) {
			m.spans[k] = [2]int{at, end}
			if named {
				m.f.name(m.name[at:end])
			}
			return true
		}
		m.failed[[2]int{k, end}] = true
	}
	return false
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// numberEnd returns where the number that begins at a place ends, −1 if there is none.
func numberEnd(name string, at int, t Token, behindStar bool) int {
	end := at
	if behindStar {
		if at > 0 && isDigit(name[at-1]) {
			return -1
		}
	} else if end < len(name) && (name[end] == '-' || name[end] == '+') {
		end++
	}
	digits := end
	for end < len(name) && isDigit(name[end]) {
		end++
	}
	if end == digits {
		return -1
	}
	if !t.whole() && end+1 < len(name) && name[end] == '.' && isDigit(name[end+1]) {
		for end++; end < len(name) && isDigit(name[end]); end++ {
		}
	}
	return end
}

const (
	// farthest bounds positions in µm: a kilometre.
	farthest = 1e9
	// mostNumber bounds whole numbers: dates and times have 14 digits.
	mostNumber = 1e15
)

// put notes a number, and whether it differs from that which the token has already; false: it is too large.
func (f *Fields) put(t Token, text string) bool {
	if t.whole() {
		v, err := strconv.ParseInt(text, 10, 64)
		if err != nil || v > mostNumber || v < -mostNumber {
			return false
		}
		f.twice = f.twice || f.set[t] && f.Whole[t] != v
		f.Whole[t] = v
	} else {
		v, err := strconv.ParseFloat(text, 64)
		if err != nil || v > farthest || v < -farthest {
			return false
		}
		f.twice = f.twice || f.set[t] && f.UM[t-XUM] != v
		f.UM[t-XUM] = v
	}
	f.set[t] = true
	return true
}

// name notes the name of a channel, and whether it differs from that which is there already.
func (f *Fields) name(text string) {
	f.twice = f.twice || f.set[Channel] && f.Channel != text
	f.Channel, f.set[Channel] = text, true
}
