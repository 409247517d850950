package shuffle

import (
	"hash/crc32"
	"testing"
)

// cBlosc holds CRC-32s of blocks as c-blosc 1.21.7 filtered them: the LZ4 streams of the last block of a frame were
// decompressed, with no other decoder than LZ4's own. The block's content is the formula in the test.
var cBlosc = []struct {
	typesize, size int
	bit            bool
	crc            uint32
}{
	{1, 1000, false, 0x7E9D797E},
	{1, 1000, true, 0x0D7110E7},
	{1, 4096, false, 0x0429903A},
	{1, 4096, true, 0xB964BC8D},
	{1, 264, false, 0xD4AC411B},
	{1, 264, true, 0x1E672D6B},
	{1, 400, false, 0x34A750C6},
	{1, 400, true, 0x25A322F8},
	{1, 1001, false, 0x96785F87},
	{1, 1001, true, 0x96785F87},
	{1, 600, false, 0xEB7AADAB},
	{1, 600, true, 0x5831A50A},
	{2, 2000, false, 0x9E560A0F},
	{2, 2000, true, 0xE271103A},
	{2, 8192, false, 0xEB38BC2D},
	{2, 8192, true, 0x640601EB},
	{2, 528, false, 0x63B9888F},
	{2, 528, true, 0x3A0D6EE1},
	{2, 801, false, 0xC2515B05},
	{2, 801, true, 0x236D7AED},
	{2, 2002, false, 0xD4E9F2BC},
	{2, 2002, true, 0xDF50ABA8},
	{2, 1201, false, 0x54CD3924},
	{2, 1201, true, 0x406BDBD6},
	{3, 3000, false, 0xE73EAD30},
	{3, 3000, true, 0x28AAF2D7},
	{3, 12288, false, 0x4C13DD9E},
	{3, 12288, true, 0xB1CC30FC},
	{3, 792, false, 0xD11BBB61},
	{3, 792, true, 0x351D5133},
	{3, 1202, false, 0x3E525004},
	{3, 1202, true, 0xCC8E5F60},
	{3, 3003, false, 0x5B7A01DB},
	{3, 3003, true, 0xC111CF38},
	{3, 1801, false, 0x314EAF39},
	{3, 1801, true, 0x9369DCFD},
	{4, 4000, false, 0x940A52C9},
	{4, 4000, true, 0x5A7E20A8},
	{4, 16384, false, 0x3BD1858F},
	{4, 16384, true, 0x9F2E2FCD},
	{4, 1056, false, 0x12A64F7E},
	{4, 1056, true, 0x8AD4C563},
	{4, 1603, false, 0x7564953C},
	{4, 1603, true, 0x023F6EF3},
	{4, 4004, false, 0xE6658399},
	{4, 4004, true, 0x83D460AB},
	{4, 2402, false, 0x71D5B981},
	{4, 2402, true, 0x2B51F776},
	{5, 5000, false, 0x00F9EB44},
	{5, 5000, true, 0xE57C9818},
	{5, 20480, false, 0xA97158FB},
	{5, 20480, true, 0x136BA8A1},
	{5, 1320, false, 0x861504CA},
	{5, 1320, true, 0x44C62401},
	{5, 2004, false, 0x43D48DA6},
	{5, 2004, true, 0x8AB94F19},
	{5, 5005, false, 0x973745DA},
	{5, 5005, true, 0xE4B9B5A4},
	{5, 3002, false, 0xB1753F28},
	{5, 3002, true, 0x5FB46772},
	{8, 8000, false, 0x7C2113BF},
	{8, 8000, true, 0x996E1CF6},
	{8, 32768, false, 0x0971DF09},
	{8, 32768, true, 0x36ED3348},
	{8, 2112, false, 0x983560CD},
	{8, 2112, true, 0x230EBB3C},
	{8, 3207, false, 0x74F5BD1A},
	{8, 3207, true, 0xD4C8B517},
	{8, 8008, false, 0xC0653B44},
	{8, 8008, true, 0x3CCB2511},
	{8, 4804, false, 0x15BFFF02},
	{8, 4804, true, 0x3AEE736E},
	{16, 16000, false, 0x81386997},
	{16, 16000, true, 0x2A73FC4A},
	{16, 65536, false, 0x91A5AF5A},
	{16, 65536, true, 0xB2ADA328},
	{16, 4224, false, 0xFC745051},
	{16, 4224, true, 0x04C56B3C},
	{16, 6415, false, 0x90DE7735},
	{16, 6415, true, 0x8062630E},
	{16, 16016, false, 0xC18FDEAF},
	{16, 16016, true, 0x52F1ADE6},
	{16, 9608, false, 0xF5C21308},
	{16, 9608, true, 0xBDEA8584},
	{17, 17000, false, 0x3F7D1EF1},
	{17, 17000, true, 0x54BCD9EE},
	{17, 4488, false, 0xE8F847BE},
	{17, 4488, true, 0x6584D714},
	{17, 6816, false, 0x27BC51A5},
	{17, 6816, true, 0x8B240593},
	{17, 17017, false, 0xFF5BE6CC},
	{17, 17017, true, 0x6AB49A18},
	{17, 10208, false, 0x85CA561C},
	{17, 10208, true, 0x002F39C7},
}

func TestAsCBlosc(t *testing.T) {
	for _, c := range cBlosc {
		src, dst, back := make([]byte, c.size), make([]byte, c.size), make([]byte, c.size)
		for i := range src {
			src[i] = byte(i*i>>5&0x1f | i&1<<6)
		}
		if c.bit {
			BitShuffle(dst, src, c.typesize)
			BitUnshuffle(back, dst, c.typesize)
		} else {
			Shuffle(dst, src, c.typesize)
			Unshuffle(back, dst, c.typesize)
		}
		if got := crc32.ChecksumIEEE(dst); got != c.crc {
			t.Errorf("typesize %d, %d bytes, bit %v: crc %08x, c-blosc has %08x", c.typesize, c.size, c.bit, got, c.crc)
		}
		if string(back) != string(src) {
			t.Errorf("typesize %d, %d bytes, bit %v does not come back", c.typesize, c.size, c.bit)
		}
	}
}
