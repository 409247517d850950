package trial

import (
	"slices"
	"sync"
	"testing"
)

// TestTrial: one worker gives each way as many pieces as there are tries, one way after the other; what goes on is the
// one with the best rate.
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
		b := New(2, 1)
		x := b.Of("read", "a/0", "", "nvcomp", "host")
		var ways []int
		for i := range 4 {
			p := x.Next()
			if !p.Timed() || len(b.Outcomes()) > 0 {
				t.Fatalf("%s: way %d: timed %v, decided %v", name, p.Way, p.Timed(), b.Outcomes())
			}
			ways = append(ways, p.Way)
			p.Took(c.bytes[p.Way], c.seconds[p.Way][i%2])
			p.Drop() // it has ended
		}
		if !slices.Equal(ways, []int{0, 0, 1, 1}) {
			t.Errorf("%s: %v", name, ways)
		}
		p, o := x.Next(), b.Outcomes()
		if p.Timed() || len(o) != 1 || o[0].Chosen != c.want || o[0].Ways[p.Way].Name != c.want {
			t.Errorf("%s: way %d, timed %v, %+v", name, p.Way, p.Timed(), o)
		}
		if b.Of("read", "a/0", "", "nvcomp", "host") != x || b.Of("write", "a/0", "", "nvcomp", "host") == x || b.Of("read", "a/1", "", "nvcomp", "host") == x {
			t.Errorf("%s: trials are of what is done with an array", name)
		}
		if k := b.Of("read", "a/2", "zstd", "nvcomp", "host"); k == x || b.Of("read", "a/3", "zstd", "nvcomp", "host") != k || b.Of("read", "a/2", "blosc", "nvcomp", "host") == k ||
			b.Of("write", "a/2", "zstd", "nvcomp", "host") == k {
			t.Errorf("%s: arrays of a kind share a trial", name)
		}
	}
}

func TestOutcome(t *testing.T) {
	b := New(1, 1)
	took := func(x *Trial, bytes int64, seconds ...float64) {
		for _, s := range seconds {
			x.Next().Took(bytes, s)
		}
	}
	took(b.Of("read", "a/0", "", "nvcomp", "host"), 2e9, 1, 4)
	for _, array := range []string{"c/0", "b/0"} {
		took(b.Of("write", array, "", "nvcomp", "host"), 1, 1, 1)
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
	for _, b := range []*Book{nil, New(0, 4)} {
		p := b.Of("read", "a", "", "nvcomp", "host").Next()
		if p.Left(); p.Way != 0 || p.Timed() || b.Outcomes() != nil {
			t.Errorf("%d %v %v", p.Way, p.Timed(), b.Outcomes())
		}
		p.Drop()
	}
	(*Piece)(nil).Drop()
}

// TestCompany: of eight workers only pieces that begin beside four others on their way are timed, whatever the other
// way has to do meanwhile.
func TestCompany(t *testing.T) {
	b := New(2, 8)
	x := b.Of("read", "a", "", "device", "host")
	var way, timed []int
	pieces := make([]*Piece, 0, 14)
	next := func() {
		p := x.Next()
		pieces, way = append(pieces, p), append(way, p.Way)
		if p.Timed() {
			timed = append(timed, len(pieces)-1)
		}
	}
	for range 8 {
		next()
	}
	for i := range 5 { // those of the device that are not timed, and the first that is
		if pieces[i].Timed() {
			pieces[i].Took(1, 1)
		} else {
			pieces[i].Drop()
		}
		next()
	}
	if !slices.Equal(way, []int{0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 0}) || !slices.Equal(timed, []int{4, 5, 10, 11}) {
		t.Errorf("ways %v, timed %v", way, timed)
	}
	for _, i := range []int{5, 10, 11} {
		if len(b.Outcomes()) > 0 {
			t.Fatal("decided before all pieces are known")
		}
		pieces[i].Took(1, 2)
	}
	if o := b.Outcomes(); len(o) != 1 || o[0].Chosen != "device" {
		t.Error(o)
	}
	pieces[12].Drop() // decided meanwhile
}

// TestFewWorkers: if fewer work than were announced, their number is enough once all have had a turn.
func TestFewWorkers(t *testing.T) {
	b := New(1, 6)
	x := b.Of("read", "a", "", "device", "host")
	n := 0
	for ; len(b.Outcomes()) == 0 && n < 100; n++ {
		if p := x.Next(); p.Timed() {
			p.Took(1, float64(2-p.Way))
		} else {
			p.Drop()
		}
	}
	if o := b.Outcomes(); len(o) != 1 || o[0].Chosen != "host" || n != 14 {
		t.Errorf("%d pieces: %v", n, o)
	}
}

// TestDrop: another piece is timed in place of one that failed, also if its worker has left it.
func TestDrop(t *testing.T) {
	b := New(1, 2)
	x := b.Of("write", "a", "", "device", "host")
	first, second := x.Next(), x.Next()
	if first.Timed() || !second.Timed() {
		t.Fatal("without company, or not with it")
	}
	second.Left()
	if p := x.Next(); p.Way != 1 || p.Timed() {
		t.Errorf("way %d, timed %v", p.Way, p.Timed())
	}
	second.Drop()
	second.Took(1, 1) // it has ended
	if p := x.Next(); p.Way != 0 || !p.Timed() {
		t.Errorf("way %d, timed %v", p.Way, p.Timed())
	}
	if len(b.Outcomes()) > 0 {
		t.Error(b.Outcomes())
	}
}

// TestWorkers: workers share a trial.
func TestWorkers(t *testing.T) {
	b := New(2, 8)
	x := b.Of("read", "a", "", "nvcomp", "host")
	var wait sync.WaitGroup
	var mu sync.Mutex
	var timed [2]int
	for range 8 {
		wait.Go(func() {
			for range 40 {
				p := x.Next()
				if p.Timed() {
					mu.Lock()
					timed[p.Way]++
					mu.Unlock()
					p.Took(1, float64(2-p.Way))
				}
				p.Drop()
			}
		})
	}
	wait.Wait()
	if p := x.Next(); timed != [2]int{2, 2} || p.Way != 1 {
		t.Errorf("%v, way %d", timed, p.Way)
	}
}
