package enzstd

import (
	"encoding/binary"
	"slices"
)

// A huffStream encodes literals to a stream of their codes, the last literal first.
type huffStream struct {
	src  []byte // what is left
	dst  []byte // has room for all in codes of the greatest length, and streamSlack
	at   int    // bytes of dst
	acc  uint64 // bits that are not in dst, at the top; below them there may be anything
	bits uint64 // their number, in the lowest byte
}

const streamSlack = 16

// streamBound returns the room for n literals.
func streamBound(n int) int { return n*huffMaxBits/8 + streamSlack }

// appendStream appends src as one stream.
func (t *huffTable) appendStream(dst, src []byte) []byte {
	dst = slices.Grow(dst, streamBound(len(src)))
	s := huffStream{src: src, dst: dst[len(dst):cap(dst)]}
	s.encode(len(src), &t.codes)
	return dst[:len(dst)+s.close()]
}

// appendFour appends src as four streams, behind the lengths of three.
func (t *huffTable) appendFour(dst, src []byte) []byte {
	part := (len(src) + 3) / 4
	bound := streamBound(part)
	dst = slices.Grow(dst, 6+4*bound)
	jump, out := dst[len(dst):len(dst)+6], dst[len(dst)+6:cap(dst)]
	n := 0
	for i := 0; i < 4; i += 2 { // two at a time, so that one goes on while the other waits
		a := huffStream{src: src[i*part : (i+1)*part], dst: out[n:]}
		b := huffStream{src: src[(i+1)*part : min((i+2)*part, len(src))], dst: out[n+bound:]}
		same := len(b.src) &^ 3
		a.encode(len(a.src)-same, &t.codes)
		b.encode(len(b.src)-same, &t.codes)
		encodePair(&a, &b, same/4, &t.codes, haveBMI2)
		na, nb := a.close(), b.close()
		binary.LittleEndian.PutUint16(jump[2*i:], uint16(na))
		if i == 0 {
			binary.LittleEndian.PutUint16(jump[2:], uint16(nb))
		}
		copy(out[n+na:], b.dst[:nb])
		n += na + nb
	}
	return dst[:len(dst)+6+n]
}

// encode writes the codes of the last n literals that are left.
func (s *huffStream) encode(n int, codes *[256]huffCode) {
	for ; n&3 != 0; n-- {
		s.add(codes[s.src[len(s.src)-1]])
		s.src = s.src[:len(s.src)-1]
		s.flush()
	}
	for ; n > 0; n -= 4 {
		v := binary.LittleEndian.Uint32(s.src[len(s.src)-4:])
		s.src = s.src[:len(s.src)-4]
		s.add(codes[byte(v>>24)])
		s.add(codes[byte(v>>16)])
		s.add(codes[byte(v>>8)])
		s.add(codes[byte(v)])
		s.flush() // up to 7 + 4·11 bits
	}
}

func (s *huffStream) add(c huffCode) {
	s.acc = s.acc>>(c&63) | uint64(c)
	s.bits += uint64(c)
}

// flush writes whole bytes.
func (s *huffStream) flush() {
	n := s.bits & 0xff
	binary.LittleEndian.PutUint64(s.dst[s.at:], s.acc>>(-n&63))
	s.at += int(n >> 3)
	s.bits = n & 7
}

// close adds the mark of the end and returns the length of the stream.
func (s *huffStream) close() int {
	s.add(1<<63 | 1)
	s.flush()
	if s.bits > 0 {
		s.at++
	}
	return s.at
}

// encodePairScalar writes the codes of 4·fours literals of both streams.
func encodePairScalar(a, b *huffStream, fours int, codes *[256]huffCode) {
	a.encode(4*fours, codes)
	b.encode(4*fours, codes)
}
