package benchczi

import (
	"strings"
	"testing"

	"strata/pkg/bench"
)

// Times that overlap give one advice, whichever median is smaller.
func TestRecommendation(t *testing.T) {
	advice := func(seq, par []float64) string {
		doc := &bench.Document{Image: &bench.Image{Tiles: 100}}
		for _, seconds := range [][]float64{{0.01}, seq, par} {
			doc.Results = append(doc.Results, bench.Result{Seconds: seconds, Ops: 100})
		}
		list := recommend(doc)
		return list[len(list)-1]
	}
	noisy := "recommendation: read tiles one after the other: the times "
	for _, c := range []struct {
		seq, par []float64
		want     string
	}{
		{[]float64{1, 1.4, 2}, []float64{0.9, 1.2, 1.9}, noisy},
		{[]float64{0.9, 1.2, 1.9}, []float64{1, 1.4, 2}, noisy},
		{[]float64{2, 2.1, 2.2}, []float64{0.5, 0.6, 0.7}, "recommendation: read several tiles at a time"},
		{[]float64{1, 1.1, 1.2}, []float64{2, 2.1, 2.2}, "recommendation: read tiles one after the other; "},
	} {
		if got := advice(c.seq, c.par); !strings.HasPrefix(got, c.want) {
			t.Errorf("%v and %v: %q", c.seq, c.par, got)
		}
	}
	for each, want := range map[float64]int{0: 15, 0.5: 8, 1.5: 2, 60: 1} {
		if got := rounds(each); got != want {
			t.Errorf("rounds of %v s: %d, want %d", each, got, want)
		}
	}
}
