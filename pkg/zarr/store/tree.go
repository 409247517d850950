package store

import (
	"io/fs"
	"slices"
	"strings"
	"syscall"
)

// tree holds values under keys, in folders that exist because something is or was below them: a file system's
// rules for stores that have none.
type tree[T any] struct {
	value   T
	entries map[string]*tree[T] // nil: this is an object
}

func newTree[T any]() *tree[T] { return &tree[T]{entries: map[string]*tree[T]{}} }

// find returns the node of key; "" is the root.
func (t *tree[T]) find(key string) (*tree[T], error) {
	for key != "" {
		var name string
		name, key, _ = strings.Cut(key, "/")
		if t.entries == nil {
			return nil, syscall.ENOTDIR
		}
		if t = t.entries[name]; t == nil {
			return nil, fs.ErrNotExist
		}
	}
	return t, nil
}

// object returns the value under key.
func (t *tree[T]) object(key string) (value T, err error) {
	n, err := t.find(key)
	if err == nil && n.entries != nil {
		err = syscall.EISDIR
	}
	if err != nil {
		return value, err
	}
	return n.value, nil
}

// folder returns the folder key, creating it and its parents if missing.
func (t *tree[T]) folder(key string) (*tree[T], error) {
	for key != "" {
		var name string
		name, key, _ = strings.Cut(key, "/")
		if t.entries == nil {
			return nil, syscall.ENOTDIR
		}
		next := t.entries[name]
		if next == nil {
			next = newTree[T]()
			t.entries[name] = next
		}
		t = next
	}
	if t.entries == nil {
		return nil, syscall.ENOTDIR
	}
	return t, nil
}

// missing returns the number of nodes that storing a value under key would create.
func (t *tree[T]) missing(key string) int {
	for key != "" && t != nil {
		name, rest, _ := strings.Cut(key, "/")
		next := t.entries[name]
		if next == nil {
			return 1 + strings.Count(key, "/")
		}
		t, key = next, rest
	}
	return 0
}

// put stores value under key.
func (t *tree[T]) put(key string, value T) error {
	dir, name := "", key
	if i := strings.LastIndexByte(key, '/'); i >= 0 {
		dir, name = key[:i], key[i+1:]
	}
	f, err := t.folder(dir)
	if err != nil {
		return err
	}
	if n := f.entries[name]; n == nil {
		f.entries[name] = &tree[T]{value: value}
	} else if n.entries != nil {
		return syscall.EISDIR
	} else {
		n.value = value
	}
	return nil
}

// remove removes the object key.
func (t *tree[T]) remove(key string) error {
	if _, err := t.object(key); err != nil {
		return err
	}
	dir, name := "", key
	if i := strings.LastIndexByte(key, '/'); i >= 0 {
		dir, name = key[:i], key[i+1:]
	}
	f, err := t.find(dir)
	if err != nil {
		return err
	}
	delete(f.entries, name)
	return nil
}

// list returns the children of the folder key, sorted by name.
func (t *tree[T]) list(key string, size func(T) int64) ([]Entry, error) {
	f, err := t.find(key)
	if err == nil && f.entries == nil {
		err = syscall.ENOTDIR
	}
	if err != nil {
		return nil, err
	}
	entries := make([]Entry, 0, len(f.entries))
	for name, n := range f.entries {
		e := Entry{Name: name, Dir: n.entries != nil}
		if !e.Dir {
			e.Size = size(n.value)
		}
		entries = append(entries, e)
	}
	slices.SortFunc(entries, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
	return entries, nil
}
