package jpegxr

import "sync"

// entry is the meaning of a code, found by the next 8 bits.
type entry struct {
	delta  int32 // added to the discriminants: the first in the low 16 bits, the second in the high ones
	length uint8 // of the code with the bits behind it that belong to the symbol, in bits
	symbol uint8
}

type table [256]entry

// alphabet has the codes of a set of symbols: in tables of which one is in use, with discriminants that say when to
// change it.
type alphabet struct {
	tables []*table
	start  int8
}

// codes are those of an alphabet: in each string, separated by spaces, the codes of symbols 0, 1 …. Row i of deltas
// leads from table i to table i+1 and back.
type codes struct {
	start  int8
	words  []string
	deltas [][]int8
}

var (
	codesOf4 = codes{words: []string{"1 01 000 001"}}
	codesOf5 = codes{
		words:  []string{"1 01 001 0000 0001", "1 000 001 010 011"},
		deltas: [][]int8{{0, -1, 0, 1, 1}},
	}
	codesOf6 = codes{
		start: 1,
		words: []string{
			"1 00000 001 00001 01 0001",
			"01 0000 10 0001 11 001",
			"0000 0001 01 10 11 001",
			"00000 00001 01 1 0001 001",
		},
		deltas: [][]int8{{-1, 1, 1, 1, 0, 1}, {-2, 0, 0, 2, 0, 0}, {-1, -1, 0, 1, -2, 0}},
	}
	codesOf7 = codes{
		words:  []string{"01 10 11 001 0001 00000 00001", "1 01 001 0001 00001 000000 000001"},
		deltas: [][]int8{{1, 0, -1, -1, -1, -1, -1}},
	}
	codesOf8 = codes{words: []string{"10 001 00001 0001 11 010 00000 011"}}
	codesOf9 = codes{
		words: []string{
			"010 00000 0010 00001 00010 1 011 00011 0011",
			"1 001 010 0001 000001 011 00001 0000000 0000001",
		},
		deltas: [][]int8{{2, 2, 1, 1, -1, -2, -2, -2, -3}},
	}
	codesOf12 = codes{
		start: 1,
		words: []string{
			"00001 000001 0000000 0000001 00100 010 00101 1 00110 0001 00111 011",
			"0010 00010 000000 000001 0011 010 00011 11 011 100 00001 101",
			"11 001 0000000 0000001 00001 010 0000010 011 100 101 0000011 0001",
			"001 11 0000000 00001 00010 010 0000001 011 00011 100 000001 101",
			"010 1 0000001 0001 0000010 011 00000000 0010 0000011 0011 00000001 00001",
		},
		deltas: [][]int8{
			{1, 1, 1, 1, 1, 0, 0, -1, 2, 1, 0, 0},
			{2, 2, -1, -1, -1, 0, -2, -1, 0, 0, -2, -1},
			{-1, 1, 0, 2, 0, 0, 0, 0, -2, 0, 1, 1},
			{0, 1, 0, 1, -2, 0, -1, -1, -2, -1, -2, -2},
		},
	}
)

// extended says that more bits, of which there are bits, belong to a symbol, which then stands for base and up.
type extended struct{ base, bits uint8 }

// Levels above 1: what the symbols of the alphabet of 7 stand for. The last one is an escape.
var levels = []extended{{2, 0}, {3, 0}, {4, 1}, {6, 2}, {10, 2}, {14, 2}, {0, 0}}

// Runs of zeros: what the symbols of the first table of the alphabet of 5 stand for where at most 14, 10 and 6 zeros
// fit.
var runsUpTo = [3][]extended{
	{{1, 0}, {2, 0}, {3, 1}, {5, 1}, {7, 3}},
	{{1, 0}, {2, 0}, {3, 1}, {5, 1}, {7, 2}},
	{{1, 0}, {2, 0}, {3, 0}, {4, 0}, {5, 1}},
}

// build enters the codes of a string into a table.
func build(words string, ext []extended, delta func(symbol int) int32) *table {
	t := &table{}
	symbol, code, length := 0, 0, 0
	put := func() {
		e := extended{base: uint8(symbol)}
		if ext != nil {
			e = ext[symbol]
		}
		free := 8 - length - int(e.bits)
		for i := range 1 << (8 - length) {
			t[code<<(8-length)|i] = entry{delta(symbol), uint8(length) + e.bits, e.base + uint8(i>>free)}
		}
		symbol, code, length = symbol+1, 0, 0
	}
	for _, c := range words {
		if c == ' ' {
			put()
			continue
		}
		code, length = code<<1|int(c-'0'), length+1
	}
	put()
	return t
}

func (c codes) alphabet(ext []extended) *alphabet {
	a := &alphabet{start: c.start}
	for i, words := range c.words {
		a.tables = append(a.tables, build(words, ext, func(symbol int) int32 {
			if c.deltas == nil {
				return 0
			}
			down, up := c.deltas[max(i-1, 0)], c.deltas[min(i, len(c.deltas)-1)]
			return int32(down[symbol]) + int32(up[symbol])<<16
		}))
	}
	return a
}

// coding has the tables of all codes.
type coding struct {
	chroma, dc           *table // alphabets of 4 and 8
	pattern, grey, color *alphabet
	first, next, level   *alphabet
	ends                 [2]*table  // instead of next, before and at the last place
	runs                 [16]*table // by the number of places behind the next coefficient's
}

// theCoding makes the tables, once.
var theCoding = sync.OnceValue(func() *coding {
	none := func(int) int32 { return 0 }
	c := &coding{
		chroma:  codesOf4.alphabet(nil).tables[0],
		dc:      codesOf8.alphabet(nil).tables[0],
		pattern: codesOf5.alphabet(nil),
		grey:    codesOf5.alphabet(nil),
		color:   codesOf9.alphabet(nil),
		first:   codesOf12.alphabet(nil),
		next:    codesOf6.alphabet(nil),
		level:   codesOf7.alphabet(levels),
		ends:    [2]*table{build("0 110 10 111", nil, none), build("0 1", nil, none)},
	}
	unary := []extended{{1, 0}, {2, 0}, {3, 0}, {4, 0}}
	for room, words := range []string{"", "", "1 0", "1 01 00", "1 01 001 000"} {
		if words != "" {
			c.runs[room] = build(words, unary, none)
		}
	}
	c.runs[1] = &table{}
	for i := range c.runs[1] {
		c.runs[1][i] = entry{symbol: 1}
	}
	for room := 5; room < 15; room++ {
		c.runs[room] = build(codesOf5.words[0], runsUpTo[(14-room)/4], none)
	}
	return c
})

// adaptive is a use of an alphabet.
type adaptive struct {
	*table
	disc     int32
	at       int8
	alphabet *alphabet
}

func (a *adaptive) reset(of *alphabet) {
	*a = adaptive{alphabet: of, at: of.start, table: of.tables[of.start]}
}

// adapt changes the table if the discriminants ask for it.
func (a *adaptive) adapt() {
	const limit, memory = 8, 64
	down := int32(int16(a.disc))
	up := (a.disc - down) >> 16
	switch {
	case down < -limit && a.at > 0:
		a.at--
	case up > limit && int(a.at) < len(a.alphabet.tables)-1:
		a.at++
	default:
		a.disc = min(max(down, -memory), memory) + min(max(up, -memory), memory)<<16
		return
	}
	a.disc, a.table = 0, a.alphabet.tables[a.at]
}

// code reads a symbol.
func (r *reader) code(t *table) int {
	e := &t[uint8(window(r.data, r.pos)>>56)]
	r.pos += int(e.length)
	return int(e.symbol)
}

// symbol reads a symbol of an alphabet that adapts.
func (r *reader) symbol(a *adaptive) int {
	e := &a.table[uint8(window(r.data, r.pos)>>56)]
	r.pos += int(e.length)
	a.disc += e.delta
	return int(e.symbol)
}

// level reads a level of 2 or more.
func (r *reader) level(a *adaptive) int32 {
	if v := r.symbol(a); v != 0 {
		return int32(v)
	}
	return r.escape()
}

// escape reads a level behind its escape code.
func (r *reader) escape() int32 {
	n := r.bits(4) + 4
	if n == 19 {
		if n += r.bits(2); n == 22 {
			n += r.bits(3)
		}
	}
	return 2 + 1<<n + int32(r.bits(uint(n)))
}
