package view

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"strata/pkg/zarr"
	"strata/pkg/zarr/store"
)

// objects are what an image is stored in: the metadata documents of its groups and arrays, and the chunks or
// shards of its arrays. Nothing else in its folder is served.
type objects struct {
	st    store.Store
	base  string // key of the image
	local *Local // the image's folder, in place of st; nil: it is not a local folder
	told  atomic.Bool

	mu    sync.Mutex
	nodes map[string]zarr.Node // by key below the image
}

// errNoKey is wrapped by errors about keys that an image does not have.
var errNoKey = errors.New("not a document, chunk or shard of the image")

// mostNodes is the maximum number of nodes that are remembered.
const mostNodes = 1024

// documents returns the names of metadata documents.
func documents() []string { return append(store.NodeFiles(), ".zattrs", ".zmetadata") }

// newObjects returns the objects of the image of an entry.
func newObjects(s *source, e Entry) (*objects, error) {
	g := s.image.Group
	o := &objects{st: g.Store(), base: g.Path(), nodes: map[string]zarr.Node{"": g}}
	for i := range s.levels {
		a := s.levels[i].Array
		o.nodes[strings.TrimPrefix(strings.TrimPrefix(a.Path(), o.base), "/")] = a
	}
	if _, ok := o.st.(*store.FolderStore); !ok {
		return o, nil
	}
	var err error
	if e.In != nil {
		o.local, err = e.In.below(store.Join(e.Key, o.base))
	} else {
		o.local, err = OpenLocal(g.Location())
	}
	if err != nil {
		return nil, err
	}
	o.st, o.base = o.local, ""
	return o, nil
}

// close closes the image's folder.
func (o *objects) close() error {
	if o.local == nil {
		return nil
	}
	return o.local.Close()
}

// open opens the object at a key below the image.
func (o *objects) open(ctx context.Context, key string) (store.Object, error) {
	if slices.Contains(documents(), path.Base(key)) {
		return o.st.Open(ctx, store.Join(o.base, key))
	}
	a, rest, err := o.array(ctx, key)
	if err != nil {
		return nil, err
	}
	if a == nil || !a.IsKey(rest, false) {
		return nil, fmt.Errorf("%s: %w", o.st.Location(store.Join(o.base, key)), errNoKey)
	}
	return o.st.Open(ctx, store.Join(o.base, key))
}

// array returns the array in which a key lies, and the rest of the key, or nil if it lies in none.
func (o *objects) array(ctx context.Context, key string) (a *zarr.Array, rest string, err error) {
	o.mu.Lock()
	known := false
	for i, c := range key { // also where the groups above are not stored
		if c == '/' && !known {
			if a, known = o.nodes[key[:i]].(*zarr.Array); known {
				rest = key[i+1:]
			}
		}
	}
	o.mu.Unlock()
	if known {
		return a, rest, nil
	}
	for i, c := range key {
		if c != '/' {
			continue
		}
		n, err := o.node(ctx, key[:i])
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, store.ErrNoFile) {
			return nil, "", nil
		}
		if err != nil {
			return nil, "", err
		}
		if a, ok := n.(*zarr.Array); ok {
			return a, key[i+1:], nil
		}
	}
	return nil, "", nil
}

// node returns the group or array at a key below the image.
func (o *objects) node(ctx context.Context, key string) (zarr.Node, error) {
	o.mu.Lock()
	n := o.nodes[key]
	o.mu.Unlock()
	if n != nil {
		return n, nil
	}
	n, err := zarr.Open(ctx, o.st, store.Join(o.base, key))
	if err != nil {
		return nil, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.nodes) < mostNodes {
		o.nodes[key] = n
	}
	return n, nil
}
