package inflate

import "hash/adler32"

// adlerMod is the largest prime below 2¹⁶ (RFC 1950, section 9).
const adlerMod = 65521

// adler returns the Adler-32 of p: a is 1 plus the sum of the bytes, b the sum of all values that a takes, both modulo
// adlerMod. The standard library's loop takes about as long as decoding does, so there is a faster one where the
// processor has AVX2.
func adler(p []byte) uint32 {
	if !haveAVX2 {
		return adler32.Checksum(p)
	}
	a, b := uint64(1), uint64(0)
	for len(p) >= adlerStep {
		// In such a piece no 32-bit sum of the kernel exceeds 2³¹, and no 64-bit sum here 2⁶⁴: one modulo at its end
		// will do.
		n := min(len(p), 1<<18) &^ (adlerStep - 1)
		sum, before, weighted := adlerSums(&p[0], n)
		b = (b + uint64(n)*a + adlerStep*before + weighted) % adlerMod
		a = (a + sum) % adlerMod
		p = p[n:]
	}
	for _, x := range p {
		a += uint64(x)
		b += a
	}
	return uint32(b%adlerMod<<16 | a%adlerMod)
}
