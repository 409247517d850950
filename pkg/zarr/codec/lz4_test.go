package codec

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"testing"
)

// TestLZ4ByNvcomp reads what NVIDIA's encoder wrote (nvCOMP 6.0.0, on an H100), with four bytes of the decoded length
// before it: the match of the last token is not 0. The decoders of short and of long blocks take it. The SHA-256 are of
// what LZ4_decompress_safe of liblz4 1.9.4 makes of the files.
func TestLZ4ByNvcomp(t *testing.T) {
	for name, sum := range map[string]string{
		"lz4.0.1":     "22adaf058a2cb668b15cb4c1f30e7cc720bbe38c146544169db35fbf630389c4",
		"lz4.4.2":     "db8b83290f5b8f2bfd27531bc75d485351b7bbe5391161975cb677153cab1f13",
		"lz4.10.13":   "5ce653d7b5b810c9f373f548e4031d0ddccbc6f3746c6c9a0584180b64cb39ef",
		"lz4.14.100":  "6107d8f09e685e307b37166c3dae82f981d8ba0cfcb05b300db3126237e618fe",
		"lz4.15.100":  "cd00e292c5970d3c5e2f0ffa5171e555bc46bfc4faddfb4a418b6840b86e79a3",
		"lz4.17.4096": "b9609c18f08f1f6120228cd5d45a725351c19758fbe298b57f6634885b575ed1",
		"lz4.19.4096": "ad7facb2586fc6e966c004d7d1d16b024f5805ff7cb47c7a85dabd8b48892ca7",
	} {
		b, err := os.ReadFile(filepath.Join("testdata", "lz4-by-nvcomp", name))
		if err != nil {
			t.Fatal(err)
		}
		got := make([]byte, int(b[0])|int(b[1])<<8)
		right := func(by string, n int, err error) {
			t.Helper()
			if have := sha256.Sum256(got); err != nil || n != len(got) || hex.EncodeToString(have[:]) != sum {
				t.Errorf("%s: by %s %x, %v", name, by, got[:min(n, 20)], err)
			}
		}
		n, err := LZ4(1).Decode(NewScratch(), got, b)
		right("the codec", n, err)
		want := bytes.Clone(got)
		clear(got)
		n, err = decodeLZ4(t.Context(), got, b[4:])
		right("the decoder of long blocks", n, err)
		if n, err := LZ4(1).Decode(NewScratch(), got, b[:len(b)-1]); err == nil && n == len(want) && bytes.Equal(got, want) {
			t.Errorf("%s: a byte less goes unnoticed", name)
		}
	}
}
