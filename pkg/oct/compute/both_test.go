package compute

import (
	"testing"
	"time"

	"strata/pkg/oct"
)

// TestDeviceLeaves: a device takes pieces as long as the host would need longer for what is left than the device for
// one of them, and both do more than the host alone.
func TestDeviceLeaves(t *testing.T) {
	seconds := func(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
	ago := func(s float64) time.Time { return time.Now().Add(-seconds(s)) }
	expected := oct.NewComing(time.Second, 0, 10*time.Second)
	hundred := taken{workers: 4, pieces: 104, began: ago(10), last: time.Now()} // done in 10 s
	device := func(pieces int) taken { return taken{workers: 1, pieces: pieces, began: ago(6)} }
	for name, c := range map[string]struct {
		q     *sharedWork[int]
		since float64 // seconds since the device took the piece that it has done last
		takes bool
	}{
		// 16 workers have a piece each and have done none: the whole is expected to take 10 s
		"nothing is known, much is left":          {&sharedWork[int]{all: 100, left: 84, host: taken{workers: 16, pieces: 16, began: ago(0.01), last: ago(0.01)}}, 0, true},
		"nothing is known, little is left":        {&sharedWork[int]{all: 200, left: 4, host: taken{workers: 16, pieces: 16, began: ago(0.01), last: ago(0.01)}}, 0, false},
		"the host does 10 a second, 5 s are left": {&sharedWork[int]{all: 200, left: 50, host: hundred}, 0, true},
		"and half a second is left":               {&sharedWork[int]{all: 200, left: 5, host: hundred}, 0, false},
		"a piece may take 2 s, 5 s are left":      {&sharedWork[int]{all: 200, left: 50, host: hundred, coming: oct.NewComing(time.Second, 2*time.Second, 0)}, 0, true},
		"and the second 2 s more":                 {&sharedWork[int]{all: 200, left: 45, host: hundred, device: device(1), coming: oct.NewComing(time.Second, 2*time.Second, 0)}, 0, false},
		"the device is fast enough":               {&sharedWork[int]{all: 200, left: 50, host: hundred, device: device(8)}, 3, true},
		"it is not any more":                      {&sharedWork[int]{all: 200, left: 20, host: hundred, device: device(8)}, 3, false},
		"it has left":                             {&sharedWork[int]{all: 200, left: 50, host: hundred, over: true}, 0, false},
		// since 70 pieces were taken, 40 were done in 3 s; the host did 12 a second alone
		"both do more than the host did": {&sharedWork[int]{all: 300, left: 196, host: hundred, device: device(8), alone: 12, full: 70, since: ago(3)}, 1, true},
		"they do less":                   {&sharedWork[int]{all: 300, left: 196, host: hundred, device: device(8), alone: 15, full: 70, since: ago(3)}, 1, false},
		"they have not done enough":      {&sharedWork[int]{all: 300, left: 196, host: hundred, device: device(6), alone: 15, full: 70, since: ago(3)}, 1, true},
	} {
		q := c.q
		q.device.workers = 1
		if q.coming == nil {
			q.coming = expected
		}
		for range q.inHand() + 1 {
			q.took = append(q.took, ago(c.since))
		}
		q.next = func() (int, bool) { return 7, true }
		left := q.left
		if piece, ok := q.byDevice(); ok != c.takes || ok && (piece != 7 || q.left != left-1) {
			t.Errorf("%s: it takes one: %v; %d are left of %d", name, ok, q.left, left)
		}
	}
}

// TestDeviceTakesItsOwn: a device that joins with a Next of its own takes what that returns, and the host what is next.
func TestDeviceTakesItsOwn(t *testing.T) {
	q := &sharedWork[int]{all: 9, left: 9, coming: oct.NewComing(0, 0, time.Hour), host: taken{workers: 1, began: time.Now()}, next: func() (int, bool) { return 1, true }}
	q.joined(3, func() (int, bool) { return 9, true })
	mine, _ := q.byHost()
	theirs, _ := q.byDevice()
	if mine != 1 || theirs != 9 || q.left != 7 || q.host.pieces != 1 || q.device.pieces != 1 {
		t.Errorf("the host took %d, the device %d: %+v", mine, theirs, q)
	}
}
