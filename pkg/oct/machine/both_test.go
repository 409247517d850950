package machine

import (
	"testing"
	"time"
)

// TestDeviceLeaves: a device takes pieces as long as the host would need longer for what is left than the device for one of them.
func TestDeviceLeaves(t *testing.T) {
	ago := func(s float64) time.Time { return time.Now().Add(-time.Duration(s * float64(time.Second))) }
	for name, c := range map[string]struct {
		q     *sharedWork[int]
		takes bool
	}{
		// 16 workers have a piece each and have done none: the whole is expected to take 10 s
		"nothing is known, much is left":          {&sharedWork[int]{all: 100, left: 84, workers: 16, host: 16, began: ago(0.01), alone: 10 * time.Second, first: time.Second}, true},
		"nothing is known, little is left":        {&sharedWork[int]{all: 20, left: 4, workers: 16, host: 16, began: ago(0.01), alone: time.Second, first: time.Second}, false},
		"the host does 10 a second, 5 s are left": {&sharedWork[int]{all: 200, left: 50, workers: 4, host: 104, began: ago(10), first: time.Second}, true},
		"and half a second is left":               {&sharedWork[int]{all: 200, left: 5, workers: 4, host: 104, began: ago(10), first: time.Second}, false},
		// 6 in hand, 12 done in 6 s: a piece takes 3 s there
		"the device is fast enough": {&sharedWork[int]{all: 200, left: 50, workers: 4, host: 104, began: ago(10), since: ago(6), most: 6, device: 18}, true},
		"it is not any more":        {&sharedWork[int]{all: 200, left: 20, workers: 4, host: 104, began: ago(10), since: ago(6), most: 6, device: 18}, false},
	} {
		c.q.next = func() (int, bool) { return 7, true }
		left := c.q.left
		if piece, ok := c.q.byDevice(); ok != c.takes || ok && (piece != 7 || c.q.left != left-1) {
			t.Errorf("%s: it takes one: %v; %d are left of %d", name, ok, c.q.left, left)
		}
	}
}

// TestDeviceTakesItsOwn: a device that joins with a Next of its own takes what that returns, and the host what is next.
func TestDeviceTakesItsOwn(t *testing.T) {
	q := &sharedWork[int]{all: 9, left: 9, alone: time.Hour, began: time.Now(), next: func() (int, bool) { return 1, true }}
	q.joined(3, func() (int, bool) { return 9, true })
	mine, _ := q.byHost()
	theirs, _ := q.byDevice()
	if mine != 1 || theirs != 9 || q.left != 7 || q.host != 1 || q.device != 1 {
		t.Errorf("the host took %d, the device %d: %+v", mine, theirs, q)
	}
}
