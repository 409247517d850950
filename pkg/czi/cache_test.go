package czi

import "testing"

// TestTileCache holds what was used last, within its budget, in memory of the right length.
func TestTileCache(t *testing.T) {
	c := &tileCache{limit: 100, held: map[int]*cachedTile{}}
	for i := range 60 {
		n := int64(10 + i%3)
		k, mine := c.take(i, n)
		if !mine || int64(len(k.data)) != n {
			t.Fatalf("tile %d: mine %v, %d bytes, want %d", i, mine, len(k.data), n)
		}
		close(k.done)
		c.leave(i, k)
		again, mine := c.take(0, 10) // is always used again
		if mine {
			t.Fatalf("tile 0 was forgotten after %d", i)
		}
		c.leave(0, again)
		used := int64(0)
		for _, k := range c.held {
			used += int64(len(k.data))
		}
		if used != c.used || used > c.limit {
			t.Fatalf("after %d tiles %d bytes are held, %d counted", i, used, c.used)
		}
	}
	if len(c.held) < 8 {
		t.Errorf("%d tiles are held", len(c.held))
	}
}
