// Package trial finds out which of two ways of doing the same work is faster, by doing the first pieces by
// each.
//
// Work that every piece of an array needs, such as decoding or encoding, can be done on the device or by the
// host. Each worker asks the array's [Trial] which way its next piece takes, and reports how long it took:
//
//	way, timed := t.Next()
//	…
//	if timed {
//		t.Took(way, bytes, seconds)
//	}
//
// Pieces differ in size and content, so that rates are compared; and the best rate of each way, since the
// first call of a library or a page that is not cached yet is slower than later ones. No work is done twice.
package trial

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// Outcome is the result of a trial.
type Outcome struct {
	What   string // was done: "read", "write"
	Array  string // location
	Ways   []Way
	Chosen string // name of the way that goes on
}

// Way is a way of doing the work, with its best rate.
type Way struct {
	Name string
	Rate float64 // decoded bytes per second
}

// String returns the outcome on one line.
func (o Outcome) String() string {
	rates := make([]string, len(o.Ways))
	for i, w := range o.Ways {
		rates[i] = fmt.Sprintf("%s %.0f MB/s", w.Name, w.Rate/1e6)
	}
	return fmt.Sprintf("%s: %s by way of %s (%s)", o.Array, o.What, o.Chosen, strings.Join(rates, ", "))
}

// Book holds the trials of a run. A nil Book has none: the first way is always taken.
type Book struct {
	tries int

	mu    sync.Mutex
	named map[[2]string]*Trial
	done  []Outcome
}

// New returns a book whose trials give each way the given number of pieces, or nil for none.
func New(tries int) *Book {
	if tries < 1 {
		return nil
	}
	return &Book{tries: tries, named: map[[2]string]*Trial{}}
}

// Of returns the trial of an operation on an array; the same arguments give the same trial.
func (b *Book) Of(what, array string, ways ...string) *Trial {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	name := [2]string{what, array}
	t := b.named[name]
	if t == nil {
		t = &Trial{book: b, outcome: Outcome{What: what, Array: array}, given: make([]int, len(ways)), took: make([]int, len(ways))}
		for _, w := range ways {
			t.outcome.Ways = append(t.outcome.Ways, Way{Name: w})
		}
		b.named[name] = t
	}
	return t
}

// Outcomes returns the outcomes of finished trials, sorted by operation and array.
func (b *Book) Outcomes() []Outcome {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.SortedFunc(slices.Values(b.done), func(x, y Outcome) int {
		return cmp.Or(strings.Compare(x.What, y.What), strings.Compare(x.Array, y.Array))
	})
}

// Trial compares the ways for one array. Several goroutines may use it. With a nil Trial the first way is
// taken.
type Trial struct {
	book *Book

	mu      sync.Mutex
	outcome Outcome
	given   []int // pieces that were given to a way
	took    []int // those whose time is known
	winner  int   // once the outcome has a Chosen
}

// Next returns the way that the next piece takes, and whether to report its duration to [Trial.Took]. While
// tried pieces are in progress, or if one failed so that its duration is never known, the others take the
// first way.
func (t *Trial) Next() (way int, timed bool) {
	if t == nil {
		return 0, false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.outcome.Chosen != "" {
		return t.winner, false
	}
	for w, n := range t.given {
		if n < t.given[way] {
			way = w
		}
	}
	if t.given[way] == t.book.tries {
		return 0, false
	}
	t.given[way]++
	return way, true
}

// Took records the duration of a piece of the given number of decoded bytes. The last one decides the trial;
// of equally fast ways the first wins.
func (t *Trial) Took(way int, bytes int64, seconds float64) {
	if o, over := t.note(way, bytes, seconds); over {
		t.book.end(o)
	}
}

func (t *Trial) note(way int, bytes int64, seconds float64) (o Outcome, over bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	ways := t.outcome.Ways
	ways[way].Rate = max(ways[way].Rate, float64(bytes)/max(seconds, 1e-9))
	t.took[way]++
	if slices.Min(t.took) < t.book.tries {
		return o, false
	}
	for w := range ways {
		if ways[w].Rate > ways[t.winner].Rate {
			t.winner = w
		}
	}
	t.outcome.Chosen = ways[t.winner].Name
	o = t.outcome
	o.Ways = slices.Clone(ways)
	return o, true
}

// end notes an outcome.
func (b *Book) end(o Outcome) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.done = append(b.done, o)
}
