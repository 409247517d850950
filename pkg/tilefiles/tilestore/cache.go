package tilestore

import (
	"context"
	"errors"
	"sync"

	"strata/pkg/tilefiles"
)

// mostOpen is the number of files that stay open when nobody reads them: those of which a chunk is a part.
const mostOpen = 16

// cache holds open files.
type cache struct {
	expect *tilefiles.Header
	axes   string

	mu    sync.Mutex
	files map[string]*entry
	idle  []*entry // that nobody reads, oldest first
}

// entry is a file that is open, or being opened.
type entry struct {
	reader
	path  string
	users int
	once  sync.Once
	err   error
}

// acquire opens a file, or returns it if it is open. The caller releases it.
func (c *cache) acquire(ctx context.Context, path string) (*entry, error) {
	c.mu.Lock()
	e := c.files[path]
	if e == nil {
		if c.files == nil {
			c.files = map[string]*entry{}
		}
		e = &entry{path: path}
		c.files[path] = e
	}
	if e.users++; e.users == 1 {
		for k, other := range c.idle {
			if other == e {
				c.idle = append(c.idle[:k], c.idle[k+1:]...)
				break
			}
		}
	}
	c.mu.Unlock()
	e.once.Do(func() { e.reader, e.err = openFile(ctx, path, c.expect, c.axes) })
	if e.err == nil {
		return e, nil
	}
	c.mu.Lock()
	if c.files[path] == e { // who asks again opens it again
		delete(c.files, path)
	}
	c.mu.Unlock()
	return nil, e.err
}

// release gives a file back, and closes the one that was not read for the longest time if too many are open.
func (c *cache) release(e *entry) {
	var old *entry
	c.mu.Lock()
	if e.users--; e.users == 0 {
		c.idle = append(c.idle, e)
		if len(c.idle) > mostOpen {
			old, c.idle = c.idle[0], c.idle[1:]
			delete(c.files, old.path)
		}
	}
	c.mu.Unlock()
	if old != nil {
		_ = old.close() // it was only read
	}
}

// close closes all files. Nobody reads them any more.
func (c *cache) close() (err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range c.files {
		if e.reader != nil {
			err = errors.Join(err, e.reader.close())
		}
	}
	c.files, c.idle = nil, nil
	return err
}
