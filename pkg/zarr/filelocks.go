package zarr

import "sync"

// fileLocks locks the chunk files that are being written. Writers of different files never wait for one another: each
// file has a lock of its own while somebody holds it or waits for it. No goroutine holds two.
type fileLocks struct {
	mu   sync.Mutex
	held map[string]*fileLock
}

type fileLock struct {
	sync.Mutex
	key   string
	users int // that hold it or wait for it
}

// lock waits until no other goroutine writes the file with this key, and locks it. It copies the key. Use:
//
//	defer l.unlock(l.lock(key))
func (l *fileLocks) lock(key []byte) *fileLock {
	l.mu.Lock()
	f := l.held[string(key)]
	if f == nil {
		f = &fileLock{key: string(key)}
		if l.held == nil {
			l.held = map[string]*fileLock{}
		}
		l.held[f.key] = f
	}
	f.users++
	l.mu.Unlock()
	f.Lock()
	return f
}

func (l *fileLocks) unlock(f *fileLock) {
	f.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	if f.users--; f.users == 0 {
		delete(l.held, f.key)
	}
}
