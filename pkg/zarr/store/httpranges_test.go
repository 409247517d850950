package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"
)

// gate is a server that keeps range requests waiting until it is opened.
type gate struct {
	open   chan struct{}
	mu     sync.Mutex
	ranges []string
}

func (g *gate) handler(data []byte, broken string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Range") != fmt.Sprintf("bytes=-%d", tailSize) {
			g.mu.Lock()
			g.ranges = append(g.ranges, r.Header.Get("Range"))
			again := slices.Index(g.ranges, broken) < len(g.ranges)-1
			g.mu.Unlock()
			<-g.open
			if r.Header.Get("Range") == broken && !again {
				cutAfter(data, 700)(w, r)
				return
			}
		}
		honest(data)(w, r)
	}
}

func (g *gate) asked() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.ranges)
}

// until waits for something that happens in other goroutines.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for range 500 {
		if ok() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("waited in vain for ", what)
}

func TestNeighboursAreAskedForTogether(t *testing.T) {
	data := content("shard", 40<<20)
	together := fmt.Sprintf("bytes=%d-%d", 10<<20, 10<<20+29*2000+1999)
	for name, broken := range map[string]string{"whole": "", "cut": together} {
		t.Run(name, func(t *testing.T) {
			g := &gate{open: make(chan struct{})}
			st := serve(t, g.handler(data, broken)).store(t)
			object, err := st.Open(bg, "shard")
			if err != nil {
				t.Fatal(err)
			}
			defer object.Close()
			o := object.(*httpObject)
			var wg sync.WaitGroup
			read := func(ctx context.Context, off, n int) {
				wg.Go(func() {
					p := make([]byte, n)
					if k, err := o.ReadAt(ctx, p, int64(off)); k != n || err != nil || !bytes.Equal(p, data[off:off+n]) {
						t.Errorf("%d bytes at %d: %d, %v", n, off, k, err)
					}
				})
			}
			waiting := func() int {
				o.ranges.mu.Lock()
				defer o.ranges.mu.Unlock()
				return len(o.ranges.waiting)
			}
			for i := range perObject { // these go at once
				read(bg, i<<20, 1000)
			}
			until(t, "the first requests", func() bool { return len(g.asked()) == perObject })
			// 30 neighbours, in any order, some with a gap; the first of those that wait is in the middle
			for k, i := range append([]int{13}, rangeWithout(30, 13)...) {
				read(bg, 10<<20+i*2000, 1000+i%2*1000)
				until(t, "the reads to wait", func() bool { return waiting() == k+1 })
			}
			read(bg, 20<<20, 9<<20) // too large for a group
			until(t, "the large one", func() bool { return waiting() == 31 })
			read(bg, 10<<20+30*2000+gapBytes+1, 10) // too far away
			until(t, "the far one", func() bool { return waiting() == 32 })
			other, cancel := context.WithCancel(bg)
			defer cancel()
			read(other, 10<<20+2000*30, 100) // of another call
			until(t, "that of another call", func() bool { return waiting() == 33 })

			gone, stop := context.WithCancel(bg)
			ended := make(chan error)
			go func() {
				_, err := o.ReadAt(gone, make([]byte, 10), 10<<20+5)
				ended <- err
			}()
			until(t, "the one that is given up", func() bool { return waiting() == 34 })
			stop()
			if err := <-ended; !errors.Is(err, context.Canceled) || waiting() != 33 {
				t.Errorf("given up: %v, %d wait", err, waiting())
			}
			close(g.open)
			wg.Wait()

			asked := g.asked()[perObject:]
			slices.Sort(asked)
			want := []string{
				together,
				fmt.Sprintf("bytes=%d-%d", 10<<20+60000, 10<<20+60099),
				fmt.Sprintf("bytes=%d-%d", 10<<20+60001+gapBytes, 10<<20+60000+gapBytes+10),
				fmt.Sprintf("bytes=%d-%d", 20<<20, 29<<20-1),
			}
			if broken != "" { // what is missing of it
				want = slices.Insert(want, 1, fmt.Sprintf("bytes=%d-%d", 10<<20+700, 10<<20+29*2000+1999))
			}
			if !slices.Equal(asked, want) {
				t.Errorf("asked for %v, want %v", asked, want)
			}
			if o.ranges.active != 0 || waiting() != 0 {
				t.Errorf("%d active, %d wait at the end", o.ranges.active, waiting())
			}
		})
	}
}

// rangeWithout is 0 … n-1 without one of them.
func rangeWithout(n, without int) []int {
	var list []int
	for i := range n {
		if i != without {
			list = append(list, i)
		}
	}
	return list
}

// One that fails fails all that were asked for with it, and nobody waits for ever.
func TestNeighboursFailTogether(t *testing.T) {
	data := content("shard", 2<<20)
	g := &gate{open: make(chan struct{})}
	var mu sync.Mutex
	changed := false
	st := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Range") != fmt.Sprintf("bytes=-%d", tailSize) {
			mu.Lock()
			is := changed
			mu.Unlock()
			if is {
				w.Header().Set("ETag", `"v2"`)
				http.ServeContent(w, r, "x.bin", time.Time{}, bytes.NewReader(data))
				return
			}
		}
		g.handler(data, "")(w, r)
	}).store(t)
	o, err := st.Open(bg, "shard")
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	var wg sync.WaitGroup
	failed := 0
	read := func(off int, may bool) {
		wg.Go(func() {
			_, err := o.ReadAt(bg, make([]byte, 100), int64(off))
			if err != nil && !errors.Is(err, ErrChanged) || err != nil && !may {
				t.Errorf("at %d: %v", off, err)
			}
			if err != nil {
				mu.Lock()
				failed++
				mu.Unlock()
			}
		})
	}
	for i := range perObject {
		read(i*1000, false)
	}
	until(t, "the first requests", func() bool { return len(g.asked()) == perObject })
	mu.Lock()
	changed = true
	mu.Unlock()
	for i := range 10 {
		read(1<<20+i*100, true)
	}
	until(t, "the others to wait", func() bool {
		q := &o.(*httpObject).ranges
		q.mu.Lock()
		defer q.mu.Unlock()
		return len(q.waiting) == 10
	})
	close(g.open)
	wg.Wait()
	if failed != 10 {
		t.Errorf("%d of 10 failed", failed)
	}
}
