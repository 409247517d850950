package fusion

import (
	"errors"
	"testing"
)

// Weights are made once for a key, planes that nobody uses make room for others, and those in use stay.
func TestWeightCache(t *testing.T) {
	w := newWeightCache(250)
	made := map[string]int{}
	use := func(key string) (done func()) {
		p, done, err := w.of(key, 100, func(p *weightPlane) error {
			made[key]++
			p.host = make([]float32, 25)
			return nil
		})
		if err != nil || len(p.host) != 25 {
			t.Fatalf("%s: %d weights, %v", key, len(p.host), err)
		}
		return done
	}
	a := use("a")
	use("b")()
	use("a")()
	use("c")() // b makes room: a is in use
	use("a")()
	if w.bytes != 200 || made["a"] != 1 {
		t.Errorf("%d bytes are held, a was made %d times", w.bytes, made["a"])
	}
	c := use("c")
	use("d")() // nothing can make room
	if w.bytes != 300 || made["c"] != 1 {
		t.Errorf("%d bytes are held, c was made %d times", w.bytes, made["c"])
	}
	a()
	c()
	use("b")() // the least recently used makes room, until there is enough
	if w.bytes != 200 || made["b"] != 2 || w.known["a"] != nil || w.known["d"] == nil {
		t.Errorf("%d bytes are held, b was made %d times", w.bytes, made["b"])
	}
	if !w.trim() || w.trim() || w.bytes != 0 {
		t.Errorf("%d bytes are held by nobody", w.bytes)
	}
	broken := errors.New("broken")
	if _, _, err := w.of("e", 100, func(*weightPlane) error { return broken }); err != broken || w.bytes != 0 {
		t.Errorf("%v, and %d bytes are held", err, w.bytes)
	}
}
