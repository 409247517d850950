package trial

import (
	"sync"
	"testing"
)

// TestTrial: each way gets as many pieces as there are tries, in turn; what goes on is the one with the best rate.
func TestTrial(t *testing.T) {
	const mb = 1 << 20
	for name, c := range map[string]struct {
		seconds [2][]float64 // of the pieces of each way
		bytes   [2]int64
		want    string
	}{
		"the first":              {[2][]float64{{1, 1}, {2, 2}}, [2]int64{mb, mb}, "nvcomp"},
		"the second":             {[2][]float64{{2, 2}, {1, 1}}, [2]int64{mb, mb}, "host"},
		"the same":               {[2][]float64{{1, 1}, {1, 1}}, [2]int64{mb, mb}, "nvcomp"},
		"the first call is slow": {[2][]float64{{9, 1}, {2, 2}}, [2]int64{mb, mb}, "nvcomp"},
		"larger pieces":          {[2][]float64{{2, 2}, {1, 1}}, [2]int64{4 * mb, mb}, "nvcomp"},
		"no time at all":         {[2][]float64{{1, 1}, {0, 0}}, [2]int64{mb, mb}, "host"},
	} {
		b := New(2)
		x := b.Of("read", "a/0", "nvcomp", "host")
		var ways []int
		for range 4 {
			way, timed := x.Next()
			if !timed {
				t.Fatalf("%s: way %d is not timed", name, way)
			}
			ways = append(ways, way)
		}
		if way, timed := x.Next(); way != 0 || timed {
			t.Errorf("%s: before the outcome %d, %v", name, way, timed)
		}
		if ways[0] != 0 || ways[1] != 1 || ways[2] != 0 || ways[3] != 1 {
			t.Errorf("%s: %v", name, ways)
		}
		for i := range 2 {
			for way := range 2 {
				if len(b.Outcomes()) > 0 {
					t.Errorf("%s: decided before all pieces are known", name)
				}
				x.Took(way, c.bytes[way], c.seconds[way][i])
			}
		}
		way, timed := x.Next()
		o := b.Outcomes()
		if timed || len(o) != 1 || o[0].Chosen != c.want || o[0].Ways[way].Name != c.want {
			t.Errorf("%s: way %d, timed %v, %+v", name, way, timed, o)
		}
		if b.Of("read", "a/0", "nvcomp", "host") != x || b.Of("write", "a/0", "nvcomp", "host") == x || b.Of("read", "a/1", "nvcomp", "host") == x {
			t.Errorf("%s: trials are of what is done with an array", name)
		}
	}
}

func TestOutcome(t *testing.T) {
	b := New(1)
	x := b.Of("read", "a/0", "nvcomp", "host")
	x.Took(0, 2e9, 1)
	x.Took(1, 1e9, 2)
	for _, array := range []string{"c/0", "b/0"} {
		y := b.Of("write", array, "nvcomp", "host")
		y.Took(0, 1, 1)
		y.Took(1, 1, 1)
	}
	if o := b.Outcomes(); len(o) != 3 || o[0].What != "read" || o[1].Array != "b/0" || o[2].Array != "c/0" {
		t.Errorf("in the order %v", o)
	}
	if got, want := b.Outcomes()[0].String(), "a/0: read by way of nvcomp (nvcomp 2000 MB/s, host 500 MB/s)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestNone: without a book, and with one that tries nothing, the first way is taken.
func TestNone(t *testing.T) {
	for _, b := range []*Book{nil, New(0)} {
		if way, timed := b.Of("read", "a", "nvcomp", "host").Next(); way != 0 || timed || b.Outcomes() != nil {
			t.Errorf("%d %v %v", way, timed, b.Outcomes())
		}
	}
}

// TestWorkers: workers share a trial; one whose piece fails leaves the others with the first way.
func TestWorkers(t *testing.T) {
	b := New(2)
	x := b.Of("read", "a", "nvcomp", "host")
	var wait sync.WaitGroup
	var mu sync.Mutex
	var timed [2]int
	for range 8 {
		wait.Go(func() {
			for range 10 {
				if way, is := x.Next(); is {
					mu.Lock()
					timed[way]++
					mu.Unlock()
					x.Took(way, 1, float64(2-way))
				}
			}
		})
	}
	wait.Wait()
	if way, _ := x.Next(); timed != [2]int{2, 2} || way != 1 {
		t.Errorf("%v, way %d", timed, way)
	}
	lost := b.Of("write", "a", "nvcomp", "host")
	for range 4 {
		lost.Next()
	}
	lost.Took(1, 1, 1)
	for range 3 {
		if way, is := lost.Next(); way != 0 || is {
			t.Errorf("%d %v", way, is)
		}
	}
}
