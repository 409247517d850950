package unzstd

// What the literals of a block are (RFC 8878, 3.1.1.3.1.1).
const (
	rawLiterals = iota
	oneLiteral
	codedLiterals // with a table
	sameTable     // coded with the table of the block before
)

// literals describes the literals section of a block.
type literals struct {
	kind, size, stored int
	streams            int
	begin              int // of what is stored
}

// literalsHeader reads the header at src[at:]. limit is the most that a block may decode to.
func literalsHeader(src []byte, at, limit int) (l literals, err error) {
	if at == len(src) {
		return l, corrupt(at, "empty block")
	}
	// the two low bits are the kind, the next the format of the sizes
	l.kind, l.streams = int(src[at]&3), 4
	format := src[at] >> 2 & 3
	var header int
	switch {
	case l.kind < codedLiterals && format&1 == 0:
		header = 1
	case l.kind < codedLiterals:
		header = 2 + int(format>>1)
	default:
		header = 3 + max(0, int(format)-1)
	}
	if len(src)-at < header {
		return l, corrupt(len(src), "literals header is truncated")
	}
	bits := uint64(0)
	for i := header - 1; i >= 0; i-- {
		bits = bits<<8 | uint64(src[at+i])
	}
	switch {
	case l.kind < codedLiterals && header == 1:
		l.size = int(bits >> 3)
	case l.kind < codedLiterals:
		l.size = int(bits >> 4)
	default:
		width := [...]uint{10, 10, 14, 18}[format]
		l.size, l.stored = int(bits>>4&(1<<width-1)), int(bits>>(4+width))
		if format == 0 {
			l.streams = 1
		}
	}
	switch l.kind {
	case rawLiterals:
		l.stored = l.size
	case oneLiteral:
		l.stored = 1
	}
	l.begin = at + header
	if l.size > limit || l.stored > len(src)-l.begin {
		return l, corrupt(at, "%d literals in %d bytes (at most %d in %d)", l.size, l.stored, limit, len(src)-l.begin)
	}
	return l, nil
}

// block decodes the compressed block src[at:] behind the n bytes of the frame that dst has already, and returns the new
// n. limit is the most that a block may decode to.
func (d *Decoder) block(dst []byte, n int, src []byte, at, limit int) (int, error) {
	l, err := literalsHeader(src, at, limit)
	if err != nil {
		return 0, err
	}
	rest := l.begin + l.stored
	if rest == len(src) {
		return 0, corrupt(rest, "no sequences section")
	}
	if src[rest] == 0 { // no sequences: the literals are the block
		if rest+1 != len(src) {
			return 0, corrupt(rest+1, "bytes behind the literals")
		}
		if l.size > len(dst)-n {
			return 0, tooLong(len(dst))
		}
		return n + l.size, d.literals(dst[n:n+l.size], src[:rest], l)
	}
	if l.kind == rawLiterals && len(src)-l.begin >= l.size+literalsSlack {
		return d.sequences(dst, n, src, rest, src[l.begin:l.begin+l.size+literalsSlack], limit)
	}
	if err := d.literals(d.buffer[:l.size], src[:rest], l); err != nil {
		return 0, err
	}
	return d.sequences(dst, n, src, rest, d.buffer[:l.size+literalsSlack], limit)
}

// literals decodes the literals that end where src does to out.
func (d *Decoder) literals(out, src []byte, l literals) error {
	switch l.kind {
	case rawLiterals:
		copy(out, src[l.begin:])
		return nil
	case oneLiteral:
		fill(out, src[l.begin])
		return nil
	}
	at := l.begin
	if l.kind == codedLiterals {
		end, err := d.readHuffman(src, at)
		if err != "" {
			return corrupt(at, "Huffman table: %s", err)
		}
		at = end
	}
	if !d.huffman.defined {
		return corrupt(at, "no Huffman table to use again")
	}
	if err := d.huffman.decode(out, src, at, l.streams); err != "" {
		return corrupt(at, "Huffman coded literals: %s", err)
	}
	return nil
}
