package filelayer

import "testing"

// Tasks cover a read without gap or overlap, none is larger than asked for, and from a
// page on all but the last end at page boundaries.
func FuzzTasks(f *testing.F) {
	f.Add(int64(0), int64(1), int64(1))
	f.Add(int64(4095), int64(1<<20), int64(4096))
	f.Add(int64(1), int64(100000), int64(5000))
	f.Add(int64(1<<40), int64(12345), int64(4<<20))
	f.Add(int64(4097), int64(30), int64(7))
	f.Fuzz(func(t *testing.T, off, n, size int64) {
		off, size = off&(1<<50-1), size&(1<<40-1)+1
		n = min(n&(1<<50-1), size*300, 1<<45)
		for at := int64(0); at < n; {
			k := firstTask(off+at, n-at, size)
			if k < 1 || k > size || at+k > n {
				t.Fatalf("%d of %d bytes from %d on, at most %d", k, n-at, off+at, size)
			}
			at += k
			if at < n && size >= page && (off+at)%page != 0 {
				t.Fatalf("a task of %d ends at %d of %d bytes from %d on", k, at, n, off)
			}
			if at < n && 2*k <= size-page {
				t.Fatalf("a task of only %d of %d", k, size)
			}
		}
	})
}

func FuzzAligned(f *testing.F) {
	f.Add(int64(0), int64(4096))
	f.Add(int64(4095), int64(1))
	f.Add(int64(1), int64(8191))
	f.Fuzz(func(t *testing.T, off, n int64) {
		off, n = off&(1<<50-1), n&(1<<50-1)
		head, whole := aligned(off, n)
		if head < 0 || head >= page || whole < 0 || whole%page != 0 || head+whole > n || n-head-whole >= page {
			t.Fatalf("%d %d of %d from %d on", head, whole, n, off)
		}
		if whole > 0 && (off+head)%page != 0 {
			t.Fatalf("%d %d of %d from %d on: not at a page", head, whole, n, off)
		}
	})
}
