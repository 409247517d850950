package benchczi

import (
	"slices"
	"testing"

	"strata/pkg/bench"
)

// TestAdvice: what is measured is turned into what to do, and only what is measured.
func TestAdvice(t *testing.T) {
	result := func(way string, seconds, cpu float64, resident int64) bench.Result {
		return bench.Result{Name: opTiles, Who: bench.Strata, Axes: bench.Axes{{Name: "way", Value: way}}, Seconds: []float64{seconds}, CPU: cpu, RSS: resident, Pixels: 1e8, Ops: 100}
	}
	advice := func(results ...bench.Result) []string {
		doc := bench.New(tool, "test", nil)
		doc.Image, doc.Results = &bench.Image{Tiles: 100, TilesRead: 100, Compression: []string{"zstd1"}}, results
		doc.System.Cores = 8
		return advise(doc)
	}
	said := advice(result(sequential, 4, 1, 1<<20), result("threads 2", 1.8, 1, 2<<20), result("threads 8", 2.7, 1, 8<<20), result("processes 4", 3.6, 1, 64<<20),
		result("batches of 10", 2, 1, 10<<20), result("batches of 100", 2.05, 1, 100<<20))
	for _, want := range []string{
		"the fastest way is threads 2: 2.22 times as fast as sequential reading",
		"one thread waits for the file 75% of the time: read ahead (prefetch) while tiles are computed",
		"more than 2 workers cost time: threads 8 take 1.50 times as long",
		"threads in place of processes: processes 4 take 2.00 times as long, since each opens the file and sends pixels through a pipe",
		"batches of 10 are enough: 10 MiB in memory, 100 MiB with batches of 100, which take 1.02 times as long",
	} {
		if !slices.Contains(said, want) {
			t.Errorf("not said: %s", want)
		}
	}
	if t.Failed() {
		for _, s := range said {
			t.Log(s)
		}
	}
	for _, s := range advice(result(sequential, 4, 4, 1<<20), result("threads 2", 2, 4, 2<<20), result("threads 8", 2, 4, 8<<20), result("processes 4", 1.5, 4, 64<<20),
		result("batches of 10", 3, 4, 10<<20), result("batches of 100", 2, 4, 100<<20)) {
		for _, not := range []string{"one thread waits", "more than", "threads in place", "batches of 10 are"} {
			if len(s) >= len(not) && s[:len(not)] == not {
				t.Errorf("said: %s", s)
			}
		}
	}
}
