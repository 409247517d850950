package enlz4

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/pierrec/lz4/v4"
)

// decoded checks that another decoder makes src of a block.
func decoded(t *testing.T, src, block []byte) {
	t.Helper()
	got := make([]byte, len(src))
	n, err := lz4.UncompressBlock(block, got)
	if len(src) == 0 {
		if !bytes.Equal(block, []byte{0}) {
			t.Errorf("the block of nothing is %v", block)
		}
		return
	}
	if err != nil || !bytes.Equal(got[:n], src) {
		t.Fatalf("%d bytes in %d: %v, equal %v", len(src), len(block), err, bytes.Equal(got[:n], src))
	}
}

// kinds are data of each kind that takes another way through the encoder.
func kinds(n int) map[string][]byte {
	rng := rand.New(rand.NewPCG(1, uint64(n)))
	noise, same, text, far := make([]byte, n), bytes.Repeat([]byte{7}, n), make([]byte, n), make([]byte, n)
	for i := range noise {
		noise[i] = byte(rng.Uint32())
		text[i] = "etaoin shrdlu"[rng.IntN(13)]
		far[i] = noise[i%min(n, 70_000)] // repeats from just beyond the window
	}
	runs := []byte{}
	for len(runs) < n {
		runs = append(runs, noise[:rng.IntN(min(n, 40)+1)]...)
		runs = append(runs, bytes.Repeat([]byte{byte(rng.Uint32())}, rng.IntN(600))...)
	}
	near := make([]byte, n)
	for i := range near {
		near[i] = noise[i%min(n, 65_535)] // from its very end
	}
	return map[string][]byte{"noise": noise, "same": same, "text": text, "runs": runs[:n], "far": far, "near": near}
}

func TestEncode(t *testing.T) {
	var e Encoder
	for _, n := range []int{0, 1, 4, 11, 12, 13, 14, 17, 30, 64, 300, 1000, 65_535, 65_536, 70_000, 300_000} {
		for name, src := range kinds(n) {
			for _, acceleration := range []int{-1, 1, 9, 1 << 30} {
				dst := make([]byte, Bound(n))
				k := e.Encode(dst, src, acceleration)
				if k == 0 {
					t.Fatalf("%s of %d: %d bytes do not suffice", name, n, len(dst))
				}
				decoded(t, src, dst[:k])
				if name == "same" && n >= 300 && k > n/200+20 || name == "near" && n >= 300_000 && acceleration == 1 && k > 70_000 {
					t.Errorf("%s of %d: %d bytes", name, n, k)
				}
				for _, room := range []int{k - 1, k / 2, 0} { // too short, whatever is done
					if m := e.Encode(dst[:room:room], src, acceleration); m != 0 {
						t.Fatalf("%s of %d: %d bytes in %d", name, n, m, room)
					}
				}
				if m := e.Encode(dst[:k+4:k+4], src, acceleration); m != 0 && m != k || m == 0 && n > 1000 && name == "noise" {
					t.Errorf("%s of %d: %d bytes in %d", name, n, m, k)
				}
			}
		}
	}
}

// What comes next is not that of the block before.
func TestEncodeAgain(t *testing.T) {
	var e Encoder
	dst := make([]byte, Bound(5000))
	for _, src := range kinds(5000) {
		first := bytes.Clone(dst[:e.Encode(dst, src, 1)])
		e.Encode(dst, kinds(4000)["text"], 1)
		if again := dst[:e.Encode(dst, src, 1)]; !bytes.Equal(first, again) {
			t.Errorf("%d bytes, then %d", len(first), len(again))
		}
	}
}

func FuzzEncode(f *testing.F) {
	for _, src := range kinds(100) {
		f.Add(src, 1, 20)
	}
	var e Encoder
	f.Fuzz(func(t *testing.T, src []byte, acceleration, room int) {
		dst := make([]byte, Bound(len(src)))
		k := e.Encode(dst, src, acceleration)
		decoded(t, src, dst[:k])
		if room >= 0 && room < len(dst) {
			if m := e.Encode(dst[:room:room], src, acceleration); m > 0 {
				decoded(t, src, dst[:m])
			}
		}
	})
}
