package enzstd_test

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os"
	"testing"

	"strata/pkg/zarr/codec/enzstd"
	"strata/tests/enzstdtest"
	"strata/tests/race"
)

// TestSizes: levels mean what libzstd's mean: what it stores, and at most 6 % more. Its sizes were written by
//
//	go run ./lab/zstdlevels -reps 1 -record pkg/zarr/codec/enzstd/testdata/libzstd.json
func TestSizes(t *testing.T) {
	if testing.Short() {
		t.Skip("compresses 60 MB nine times")
	}
	const tolerance = 1.06
	b, err := os.ReadFile("testdata/libzstd.json")
	if err != nil {
		t.Fatal(err)
	}
	var recorded struct {
		Sizes map[string][]int
	}
	if err := json.Unmarshal(b, &recorded); err != nil {
		t.Fatal(err)
	}
	sets := enzstdtest.Small()
	if len(sets) != len(recorded.Sizes) {
		t.Errorf("%d sets, %d recorded", len(sets), len(recorded.Sizes))
	}
	var e enzstd.Encoder
	var out []byte
	for _, s := range sets {
		want := recorded.Sizes[s.Name]
		for i, most := range want {
			out = e.Encode(out[:0], s.Bytes, i+1, false)
			if ratio := float64(len(out)) / float64(most); ratio > tolerance {
				t.Errorf("%s, level %d: %d bytes, %.3f of libzstd's %d", s.Name, i+1, len(out), ratio, most)
			}
		}
		if len(want) != 9 {
			t.Errorf("%s: %d levels are recorded", s.Name, len(want))
		}
	}
}

// TestSegmentSizes: a frame in segments takes at most 1 % more than one that is encoded as a whole, at 12 MiB of each
// kind of data.
func TestSegmentSizes(t *testing.T) {
	race.Leave(t)
	if testing.Short() {
		t.Skip("compresses 240 MB eight times")
	}
	const size, tolerance = 12<<20 + 12345, 1.01
	var e enzstd.Encoder
	var whole, cut []byte
	compare := func(name string, src []byte) {
		for _, level := range []int{1, 3, 6, 9} {
			whole = e.Encode(whole[:0], src, level, false)
			f := enzstd.Frame{Src: src, Level: level, Length: enzstd.SegmentLength}
			cut = f.AppendHeader(cut[:0])
			for i := range f.Segments() {
				cut = f.AppendSegment(&e, cut, i)
			}
			ratio := float64(len(cut)) / float64(len(whole))
			t.Logf("%s, level %d: %d bytes, in segments %.4f of them", name, level, len(whole), ratio)
			if ratio > tolerance {
				t.Errorf("%s, level %d: %d bytes in segments, %.4f of %d", name, level, len(cut), ratio, len(whole))
			}
		}
	}
	for _, s := range enzstdtest.Small() {
		src := bytes.Repeat(s.Bytes, size/len(s.Bytes)+1)[:size]
		for i := range src { // each time with other values
			src[i] ^= byte(i / len(s.Bytes))
		}
		compare(s.Name, src)
	}
	noise := make([]byte, 1<<20)
	r := rand.New(rand.NewPCG(7, 7))
	for i := range noise {
		noise[i] = byte(r.Uint32())
	}
	src := bytes.Repeat(noise, 12)
	for i := range src { // repeats, but not for long
		if r.IntN(2000) == 0 {
			src[i]++
		}
	}
	compare("repeats at a distance of 1 MiB", src)
}
