package enzstd_test

import (
	"encoding/json"
	"os"
	"testing"

	"strata/pkg/zarr/codec/enzstd"
	"strata/pkg/zarr/codec/enzstd/enzstdtest"
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
