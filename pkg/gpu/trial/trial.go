// Package trial finds out which of two ways of doing the same work is faster, by doing the first pieces by
// each.
//
// Work that every piece of an array needs, such as decoding or encoding, can be done on the device or by the host. Each
// worker asks the [Trial] of the array, or of all like it, which way its next piece takes, and reports how long it
// took:
//
//	piece := t.Next()
//	…              // by piece.Way
//	if piece.Timed() {
//		piece.Took(bytes, seconds)
//	} else {
//		piece.Drop()
//	}
//
// All workers take one way, then all take the next, so that each way is timed under the load that it would
// have: a device that serves one piece after the other looks fast while nobody queues, and a host thread
// looks fast while the other processors are idle. A piece is timed only if more than half of the workers were
// busy that way when it began. Pieces differ in size and content, so that rates are compared; and the best
// rate of each way, since the first call of a library or a page that is not cached yet is slower than later
// ones. No work is done twice.
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
	Array  string // location of the first
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
	tries, workers int

	mu    sync.Mutex
	named map[[2]string]*Trial
	done  []Outcome
}

// New returns a book whose trials time the given number of pieces of each way, or nil for none. workers is
// the number of goroutines that do such work at the same time; if fewer turn out to, they are enough.
func New(tries, workers int) *Book {
	if tries < 1 {
		return nil
	}
	return &Book{tries: tries, workers: max(workers, 1), named: map[[2]string]*Trial{}}
}

// Of returns the trial of an operation on an array. Arrays of one kind, which says all that the speed of the
// ways depends on, share a trial, whose outcome names the first of them; "" is an array of its own kind.
func (b *Book) Of(what, array, kind string, ways ...string) *Trial {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	name := [2]string{what, cmp.Or(kind, array)}
	t := b.named[name]
	if t == nil {
		t = &Trial{book: b, outcome: Outcome{What: what, Array: array}, ways: make([]way, len(ways))}
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

// Trial compares the ways for arrays of one kind. Several goroutines may use it. With a nil Trial the first way is
// taken.
type Trial struct {
	book *Book

	mu      sync.Mutex
	outcome Outcome
	ways    []way
	winner  int // once the outcome has a Chosen
}

// way is what a trial knows of a way.
type way struct {
	given int // pieces
	busy  int // those in progress
	peak  int // the most that were in progress
	timed int // those whose time is known, or will be
	took  int // those whose time is known
}

// Piece is a piece of work on the way that its trial chose. Only one goroutine at a time may use it.
type Piece struct {
	Way   int
	trial *Trial // nil once it has ended
	busy  bool
	timed bool
}

// Next returns the piece that a worker does next. Its end is reported to one of [Piece.Took] and
// [Piece.Drop].
func (t *Trial) Next() *Piece {
	if t == nil {
		return &Piece{}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.outcome.Chosen != "" {
		return &Piece{Way: t.winner}
	}
	p := &Piece{trial: t, busy: true}
	if p.Way = slices.IndexFunc(t.ways, func(w way) bool { return w.timed < t.book.tries }); p.Way < 0 {
		p.Way = 0 // all that will be timed are in progress
	}
	w := &t.ways[p.Way]
	w.given++
	w.busy++
	w.peak = max(w.peak, w.busy)
	company := t.book.workers
	if w.given > company { // all workers that there are have come
		company = w.peak
	}
	if p.timed = w.timed < t.book.tries && 2*w.busy > company; p.timed {
		w.timed++
	}
	return p
}

// Timed reports whether [Piece.Took] wants to know how long the piece takes.
func (p *Piece) Timed() bool { return p.timed }

// Left reports that the worker goes on with other work before the end of the piece is known.
func (p *Piece) Left() {
	if p.trial == nil {
		return
	}
	p.trial.mu.Lock()
	defer p.trial.mu.Unlock()
	p.left()
}

func (p *Piece) left() {
	if p.busy {
		p.trial.ways[p.Way].busy--
		p.busy = false
	}
}

// Drop ends a piece whose duration is not known: if it was to be timed, another is in its place. After Took
// it does nothing.
func (p *Piece) Drop() {
	if p == nil || p.trial == nil {
		return
	}
	t := p.trial
	t.mu.Lock()
	defer t.mu.Unlock()
	p.left()
	if p.timed && t.outcome.Chosen == "" {
		t.ways[p.Way].timed--
	}
	p.trial, p.timed = nil, false
}

// Took ends a timed piece of the given number of decoded bytes. The last one decides the trial; of equally
// fast ways the first wins.
func (p *Piece) Took(bytes int64, seconds float64) {
	if t := p.trial; t != nil && p.timed {
		if o, over := p.took(bytes, seconds); over {
			t.book.end(o)
		}
	}
}

func (p *Piece) took(bytes int64, seconds float64) (o Outcome, over bool) {
	t := p.trial
	t.mu.Lock()
	defer t.mu.Unlock()
	p.left()
	p.trial, p.timed = nil, false
	ways := t.outcome.Ways
	ways[p.Way].Rate = max(ways[p.Way].Rate, float64(bytes)/max(seconds, 1e-9))
	t.ways[p.Way].took++
	if slices.ContainsFunc(t.ways, func(w way) bool { return w.took < t.book.tries }) {
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
