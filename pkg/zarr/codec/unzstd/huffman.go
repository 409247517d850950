package unzstd

import (
	"encoding/binary"
	"math/bits"
)

const (
	huffmanLog     = 11 // bits of the longest code (RFC 8878, 4.2.1)
	weightLog      = 6  // of the states that code the weights
	symbolsARound  = 5  // symbols that a round takes from each stream: 55 bits at most
	bytesARound    = 7  // bytes that have them
	streamsMargin  = 8  // bytes before the streams, and a jump table, that loads may touch
	jumpTableBytes = 6
)

// huffman is the table of literals, and the four streams that are being decoded with it. huffman_amd64.s knows the
// places of its fields.
type huffman struct {
	lengths [1 << huffmanLog]uint8 // by the next bits: the number of bits of the code
	symbols [1 << huffmanLog]uint8 // and its symbol
	shift   uint64                 // 64 less the number of bits that select them
	defined bool
	weights [256]uint8

	// The streams are read from their ends to their fronts. A word has the next bits at its top; count, in its low six
	// bits, says how many of them are known to be there. The next 8 bytes to be loaded are at src[at:].
	word    [4]uint64
	count   [4]uint64
	at      [4]int
	src     *byte
	out     *byte
	segment int // bytes of output of each stream, but for the last
	done    int // bytes there are of each
}

// readHuffman reads the description of a table of literals at src[at:], and returns where that ends.
func (d *Decoder) readHuffman(src []byte, at int) (end int, err string) {
	h := &d.huffman
	h.defined = false
	if at >= len(src) {
		return 0, "truncated"
	}
	n, kind := 0, int(src[at])
	at++
	if kind >= 128 { // half a byte each
		n = kind - 127
		end = at + (n+1)/2
		if end > len(src) {
			return 0, "truncated"
		}
		for i := range n {
			h.weights[i] = src[at+i/2] >> (4 * (^i & 1)) & 15
		}
	} else {
		end = at + kind
		if end > len(src) {
			return 0, "truncated"
		}
		if n, err = d.readWeights(src, at, end); err != "" {
			return 0, err
		}
	}
	return end, h.build(n)
}

// readWeights decodes weights coded with two states in turn at src[at:end] (RFC 8878, 4.2.1.2), and returns how many
// there are.
func (d *Decoder) readWeights(src []byte, at, end int) (n int, err string) {
	counts, log, read, err := d.readCounts(src[at:end], huffmanLog+1, weightLog)
	if err != "" {
		return 0, err
	}
	at += read
	if at == end || src[end-1] == 0 {
		return 0, "bits of the weights have no end mark"
	}
	var states [1 << weightLog]entry
	var symbols [tableSize]uint8
	spread(states[:1<<log], &symbols, counts, log, new([64]entry))
	position := 8*(end-1) + bits.Len8(src[end-1]) - 1
	take := func(n uint) int {
		w := top(word(src, position), n)
		position -= int(n)
		return w
	}
	this, other := take(log), take(log)
	if position < 8*at {
		return 0, "bits of the weights are truncated"
	}
	for ; n < 254; n++ {
		s := this & (1<<weightLog - 1)
		d.huffman.weights[n] = symbols[s]
		this = int(states[s].next()) + take(states[s].bits())
		if position < 8*at {
			d.huffman.weights[n+1] = symbols[other&(1<<weightLog-1)]
			return n + 2, ""
		}
		this, other = other, this
	}
	return 0, "too many weights"
}

// build makes the table of the codes of symbols with n weights, of which the last is implied by the others.
func (h *huffman) build(n int) (err string) {
	sum := 0
	var cells [huffmanLog + 2]int // by weight
	for _, w := range h.weights[:n] {
		if w > huffmanLog {
			return "a code is too long"
		}
		sum += 1 << w >> 1
		cells[w] += 1 << w >> 1
	}
	log := bits.Len(uint(sum))
	rest := 1<<log - sum
	if sum == 0 || log > huffmanLog || rest&(rest-1) != 0 {
		return "weights do not add up"
	}
	last := bits.Len(uint(rest))
	h.weights[n] = uint8(last)
	cells[last] += 1 << last >> 1
	if cells[1] < 2 {
		return "weights do not add up"
	}
	var begin [huffmanLog + 2]int
	for w := 1; w <= log; w++ {
		begin[w+1] = begin[w] + cells[w]
	}
	for s, w := range h.weights[:n+1] {
		if w == 0 {
			continue
		}
		b, n := begin[w], 1<<w>>1
		begin[w] = b + n
		repeatByte(h.lengths[b:b+n], uint8(log+1-int(w)))
		repeatByte(h.symbols[b:b+n], uint8(s))
	}
	h.shift, h.defined = uint64(64-log), true
	return ""
}

// repeatByte fills b, of a power of two bytes, with v.
func repeatByte(b []uint8, v uint8) {
	if len(b) < 8 {
		for i := range b {
			b[i] = v
		}
		return
	}
	for i := 0; i < len(b); i += 8 {
		binary.LittleEndian.PutUint64(b[i:], uint64(v)*0x0101010101010101)
	}
}

// decode fills out from one stream or four at src[at:].
func (h *huffman) decode(out, src []byte, at, streams int) (err string) {
	if at < streamsMargin {
		return "no room for headers before them" // cannot happen: the headers are longer
	}
	if streams == 1 {
		if at == len(src) || src[len(src)-1] == 0 {
			return "no end mark"
		}
		return h.finish(out, src, 8*(len(src)-1)+bits.Len8(src[len(src)-1])-1, 8*at)
	}
	if len(src)-at < jumpTableBytes {
		return "truncated"
	}
	segment := (len(out) + 3) / 4
	if 3*segment > len(out) {
		return "too few for four streams"
	}
	var begin [5]int
	begin[0] = at + jumpTableBytes
	for i := range 3 {
		begin[i+1] = begin[i] + int(binary.LittleEndian.Uint16(src[at+2*i:]))
	}
	begin[4] = len(src)
	if begin[3] >= begin[4] {
		return "truncated"
	}
	for i := range 4 {
		last := begin[i+1] - 1
		if last < begin[i] || src[last] == 0 {
			return "no end mark"
		}
		mark := bits.Len8(src[last]) - 1
		h.word[i], h.count[i], h.at[i] = uint64(src[last])<<(64-mark), uint64(mark), last-8
	}
	h.segment, h.done, h.src, h.out = segment, 0, &src[0], nil
	if len(out) > 0 {
		h.out = &out[0]
	}
	for {
		rounds := (len(out) - 3*segment - h.done) / symbolsARound
		for i := range 4 {
			rounds = min(rounds, (h.at[i]+8+int(h.count[i]>>3)-begin[i])/bytesARound)
		}
		if rounds <= 0 {
			break
		}
		if haveLoop {
			huffmanLoop(h, rounds)
		} else {
			h.loop(out, src, rounds)
		}
	}
	h.src, h.out = nil, nil
	for i := range 4 {
		segments := out[i*segment:]
		if i < 3 {
			segments = segments[:segment]
		}
		if err = h.finish(segments[h.done:], src, 8*(h.at[i]+8)+int(h.count[i]), 8*begin[i]); err != "" {
			return err
		}
	}
	return ""
}

// finish fills out with the stream whose bits end below position and begin at floor.
func (h *huffman) finish(out, src []byte, position, floor int) (err string) {
	for len(out) > 0 && position >= floor {
		w, n := word(src, position), min(symbolsARound, len(out))
		for i := range out[:n] {
			k := w >> (h.shift & 63) & (1<<huffmanLog - 1)
			out[i] = h.symbols[k]
			w <<= h.lengths[k] & 63
			position -= int(h.lengths[k])
		}
		out = out[n:]
	}
	if len(out) > 0 || position != floor {
		return "bits are missing or left over"
	}
	return ""
}

// loop takes a number of rounds of 5 symbols each from the four streams, which must have 7 bytes for each round, and
// room for the symbols. It refills words with a load whose place is known since the refill before, and the bits of
// which may be there already. The place lies at most 16 bytes before the bits that come next, thus less than 10 before
// the stream: the jump table and streamsMargin are there.
func (h *huffman) loop(out, src []byte, rounds int) {
	const mask = 1<<huffmanLog - 1
	shift, done, segment := h.shift&63, h.done, h.segment
	w0, w1, w2, w3 := h.word[0], h.word[1], h.word[2], h.word[3]
	c0, c1, c2, c3 := h.count[0], h.count[1], h.count[2], h.count[3]
	a0, a1, a2, a3 := h.at[0], h.at[1], h.at[2], h.at[3]
	for range rounds {
		w0 |= binary.LittleEndian.Uint64(src[a0:]) >> (c0 & 63)
		w1 |= binary.LittleEndian.Uint64(src[a1:]) >> (c1 & 63)
		w2 |= binary.LittleEndian.Uint64(src[a2:]) >> (c2 & 63)
		w3 |= binary.LittleEndian.Uint64(src[a3:]) >> (c3 & 63)
		a0, c0 = a0-int(^c0>>3&7), c0|56
		a1, c1 = a1-int(^c1>>3&7), c1|56
		a2, c2 = a2-int(^c2>>3&7), c2|56
		a3, c3 = a3-int(^c3>>3&7), c3|56
		o0 := (*[symbolsARound]byte)(out[done:])
		o1 := (*[symbolsARound]byte)(out[segment+done:])
		o2 := (*[symbolsARound]byte)(out[2*segment+done:])
		o3 := (*[symbolsARound]byte)(out[3*segment+done:])
		for i := range symbolsARound {
			k0, k1, k2, k3 := w0>>shift&mask, w1>>shift&mask, w2>>shift&mask, w3>>shift&mask
			o0[i], o1[i], o2[i], o3[i] = h.symbols[k0], h.symbols[k1], h.symbols[k2], h.symbols[k3]
			n0, n1, n2, n3 := h.lengths[k0], h.lengths[k1], h.lengths[k2], h.lengths[k3]
			w0, c0 = w0<<(n0&63), c0-uint64(n0)
			w1, c1 = w1<<(n1&63), c1-uint64(n1)
			w2, c2 = w2<<(n2&63), c2-uint64(n2)
			w3, c3 = w3<<(n3&63), c3-uint64(n3)
		}
		done += symbolsARound
	}
	h.word, h.count, h.at, h.done = [4]uint64{w0, w1, w2, w3}, [4]uint64{c0, c1, c2, c3}, [4]int{a0, a1, a2, a3}, done
}
