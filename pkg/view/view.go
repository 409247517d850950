// Package view serves images to a browser: one page with three linked cuts, and the tiles that it requests.
//
//	v := view.New(view.Options{Entries: entries, Open: open, Mem: 128 << 20, Workers: 2, Token: view.NewToken()})
//	err := v.Serve(ctx, listener)
//
// The page gets the voxels of a tile in stored form and colours them itself: window, gamma, colour map and
// channels change immediately, without a request, and the value under the pointer is the image's own. A tile of
// 256×256 voxels is at most 256 KiB; one whose voxels are all equal is a single element.
//
// Decoded chunks are cached within a byte budget, so that scrolling through the planes of a chunk decodes it once.
// A request ends with its connection; its work ends unless another request waits for it.
//
// Every address begins with a random token. The viewer refuses requests whose host is not 127.0.0.1 or localhost,
// and requests by pages of other origins unless they are allowed. Other programs get the documents and chunks of an
// image in stored form, and no other file ([Local]).
package view

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"strata/pkg/mem"
	"strata/pkg/ngff"
)

// Options configures a viewer.
type Options struct {
	Entries []Entry // images and pages
	First   int     // index of the image shown first; where a page has it, the first image is
	Overlay int     // index of the entry laid over that image; -1: none
	Place   any     // where the overlay lies at first, as JSON: a registration.Placed; nil: where its metadata put it
	// Open opens an image. It is called once for each entry, and never concurrently.
	Open    func(ctx context.Context, path string) (*ngff.Image, error)
	Mem     int64    // limit of the buffers, in bytes
	Workers int      // maximum number of requests in progress
	Origins []string // origins of other pages that may read the images, such as https://hms-dbmi.github.io
	Token   string   // beginning of every address
	Title   string
	Version string
	Warn    func(format string, args ...any)
}

// A Viewer answers the page's requests. It is an http.Handler and safe for concurrent use.
type Viewer struct {
	o       Options
	blocks  *blocks
	slots   chan struct{}
	opening sync.Mutex
	opened  []*opened
	routes  http.Handler

	entrance *Entrance // nil: none
}

// opened holds an entry's image after the first request for it.
type opened struct {
	mu     sync.Mutex
	source *source
	stats  map[string]*Statistics
}

// Shares of the memory for decoded chunks; the rest is for decoding.
const (
	cachePart   = 2 // half of it
	largestPart = 8 // of the cache, for one chunk
)

// New returns a viewer. The caller must call Serve or Close.
func New(o Options) *Viewer {
	o.First = shownFirst(o)
	v := &Viewer{o: o, blocks: newBlocks(o.Mem / cachePart), slots: make(chan struct{}, max(2, o.Workers))}
	for range o.Entries {
		v.opened = append(v.opened, &opened{stats: map[string]*Statistics{}})
	}
	v.routes = v.handler()
	return v
}

// shownFirst returns the index of the image that is shown first.
func shownFirst(o Options) int {
	if o.First < len(o.Entries) && !o.Entries[o.First].Page {
		return o.First
	}
	return max(0, slices.IndexFunc(o.Entries, func(e Entry) bool { return !e.Page }))
}

// First returns the index of the image that is shown first.
func (v *Viewer) First() int { return v.o.First }

// NewToken returns 128 random bits in hexadecimal.
func NewToken() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// Source opens an entry's image, so that errors show before the page requests it.
func (v *Viewer) Source(ctx context.Context, entry int) error {
	_, err := v.source(ctx, entry)
	return err
}

// source returns the image of an entry, opening it on first use.
func (v *Viewer) source(ctx context.Context, entry int) (*source, error) {
	if entry < 0 || entry >= len(v.o.Entries) || v.o.Entries[entry].Page {
		return nil, fmt.Errorf("image %d: %w", entry, os.ErrNotExist)
	}
	v.opening.Lock()
	defer v.opening.Unlock()
	o := v.opened[entry]
	if o.source != nil {
		return o.source, nil
	}
	e := v.o.Entries[entry]
	if err := e.unmoved(); err != nil {
		return nil, err
	}
	im, err := v.o.Open(ctx, e.Path)
	if err == nil {
		err = e.unmoved() // what was opened
	}
	if err != nil {
		return nil, err
	}
	cache := v.o.Mem / cachePart
	scratch := (v.o.Mem - cache) / int64(cap(v.slots))
	s, err := newSource(im, entry, v.blocks, mem.Pooled(cache)/largestPart, scratch)
	if err != nil {
		return nil, err
	}
	if s.objects, err = newObjects(s, e); err != nil {
		return nil, err
	}
	o.source = s
	return s, nil
}

// unmoved returns an error if the entry's path names another image by now than when it was found.
func (e Entry) unmoved() error {
	if e.In == nil {
		return nil
	}
	found, err := e.In.root.Stat(name(e.Key))
	if err != nil {
		return e.In.explain(e.Key, err)
	}
	if now, err := os.Stat(e.Path); err != nil || !os.SameFile(found, now) {
		return fmt.Errorf("%s: was moved or replaced since view listed it: start view again", e.Path)
	}
	return nil
}

// statistics returns the statistics of an image, which are computed once.
func (v *Viewer) statistics(ctx context.Context, entry int, others []int) (*Statistics, error) {
	s, err := v.source(ctx, entry)
	if err != nil {
		return nil, err
	}
	o, key := v.opened[entry], fmt.Sprint(others)
	o.mu.Lock()
	st := o.stats[key]
	o.mu.Unlock()
	if st != nil {
		return st, nil
	}
	if st, err = s.statistics(ctx, others); err != nil {
		return nil, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.stats) >= mostChannels {
		clear(o.stats)
	}
	o.stats[key] = st
	return st, nil
}

// begin waits for a turn to work, or until ctx ends.
func (v *Viewer) begin(ctx context.Context) error {
	select {
	case v.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (v *Viewer) end() { <-v.slots }

// Close releases the memory and closes folders. No request may be in progress.
func (v *Viewer) Close() {
	v.blocks.close()
	for i, o := range v.opened {
		if o.source != nil {
			_ = o.source.objects.close() // only read
		}
		if in := v.o.Entries[i].In; in != nil {
			_ = in.Close()
		}
	}
}

// Timeouts of connections.
const (
	headerTime   = 10 * time.Second
	writeTime    = time.Minute
	idleTime     = 2 * time.Minute
	shutdownTime = 2 * time.Second
)
