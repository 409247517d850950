package codec

import (
	"bytes"
	"encoding/hex"
	"testing"
)

// TestLZ4ByNvcomp reads what NVIDIA's encoder wrote (nvCOMP 6.0.0, on an H100): the match of the last token is not 0. The decoders of
// short and of long blocks take it.
func TestLZ4ByNvcomp(t *testing.T) {
	for stored, want := range map[string][]byte{
		"010000001cad":                         {0xad},
		"020000002cdc7f":                       {0xdc, 0x7f},
		"0d000000dc6c6f726d2070737520646c6f72": []byte("lorm psu dlor"),
		"640000001f0001004b5c0000000000":       make([]byte, 100),
		"001000001f000100fffffffffffffffffffffffffffffff65c0000000000": make([]byte, 4096),
	} {
		b, err := hex.DecodeString(stored)
		if err != nil {
			t.Fatal(err)
		}
		got := make([]byte, len(want))
		if n, err := LZ4(1).Decode(NewScratch(), got, b); err != nil || n != len(want) || !bytes.Equal(got, want) {
			t.Errorf("%s: %x, %v", stored, got[:min(n, 20)], err)
		}
		clear(got)
		if n, err := decodeLZ4(t.Context(), got, b[4:]); err != nil || n != len(want) || !bytes.Equal(got, want) {
			t.Errorf("%s: by the decoder of long blocks %x, %v", stored, got[:min(n, 20)], err)
		}
		if n, err := LZ4(1).Decode(NewScratch(), got, b[:len(b)-1]); err == nil && n == len(want) && bytes.Equal(got, want) {
			t.Errorf("%s: a byte less goes unnoticed", stored)
		}
	}
}
