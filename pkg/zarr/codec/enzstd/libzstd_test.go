package enzstd

import (
	"bytes"
	"os/exec"
	"testing"
)

// TestLibzstd: libzstd decodes what is encoded here, where its program is installed.
func TestLibzstd(t *testing.T) {
	program, err := exec.LookPath("zstd")
	if err != nil {
		t.Skip("there is no program zstd")
	}
	var frames, want []byte // it decodes one frame after the other
	var e Encoder
	for _, n := range []int{0, 1, 300, 20_000, blockMax, 400_001} {
		for _, src := range contents(n) {
			for _, level := range []int{-3, 1, 2, 3, 4, 5, 7, 9} {
				frames = e.Encode(frames, src, level, level == 3)
				want = append(want, src...)
			}
		}
	}
	c := exec.Command(program, "-d", "-c")
	c.Stdin = bytes.NewReader(frames)
	var stderr bytes.Buffer
	c.Stderr = &stderr
	got, err := c.Output()
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes, want %d: %v: %s", len(got), len(want), err, stderr.Bytes())
	}
}
