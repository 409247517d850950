package view

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"

	"strata/pkg/zarr/store"
)

// stored serves the objects of an image in stored form, whole or in ranges, for other viewers. Sending does not occupy
// a turn to work, since a slow client may prolong it at will.
func (v *Viewer) stored(w http.ResponseWriter, r *http.Request) {
	ctx := r.Context()
	o, err := v.object(ctx, r)
	if err != nil {
		v.fail(w, r, err)
		return
	}
	defer o.Close()
	key := r.PathValue("key")
	w.Header().Set("Content-Type", "application/octet-stream")
	if path.Ext(key) == ".json" || path.Base(key)[0] == '.' {
		w.Header().Set("Content-Type", "application/json")
	}
	http.ServeContent(w, r, "", time.Time{}, io.NewSectionReader(readerAt{ctx, o}, 0, o.Size()))
}

// zarrEnd may follow the number of an image in an address, since napari takes only addresses with .zarr for its
// plugins.
const zarrEnd = ".ome.zarr"

// StoredAt returns where the objects of an entry are served, below the viewer's address.
func StoredAt(entry int) string { return fmt.Sprintf("zarr/%d%s/", entry, zarrEnd) }

// Stored reports whether an entry is an image that is open and stored as Zarr, which other viewers can read below
// [StoredAt].
func (v *Viewer) Stored(ctx context.Context, entry int) bool {
	s, err := v.source(ctx, entry)
	if err != nil {
		return false
	}
	_, other := s.image.Group.Store().(store.Decoder)
	return !other
}

// object opens the object that a request names.
func (v *Viewer) object(ctx context.Context, r *http.Request) (store.Object, error) {
	if err := v.begin(ctx); err != nil {
		return nil, err
	}
	defer v.end()
	entry, err := strconv.Atoi(strings.TrimSuffix(r.PathValue("id"), zarrEnd))
	if err != nil {
		return nil, badRequest("image %q: want a number", r.PathValue("id"))
	}
	s, err := v.source(ctx, entry)
	if err != nil {
		return nil, err
	}
	st := s.image.Group.Store()
	if _, other := st.(store.Decoder); other {
		return nil, badRequest("%s is not stored as Zarr: zarr-tool import makes such a copy of it", s.image.Group.Location())
	}
	key := r.PathValue("key")
	if !store.ValidKey(key) {
		return nil, badRequest("key %q", key)
	}
	o, err := s.objects.open(ctx, key)
	if errors.Is(err, errOutside) && v.o.Warn != nil && s.objects.told.CompareAndSwap(false, true) {
		v.o.Warn("%v: not served to other viewers, nor are further such links of this image", err)
	}
	return o, err
}

// readerAt adapts an object to io.ReaderAt, which has no context.
type readerAt struct {
	ctx context.Context
	store.Object
}

// ReadAt reads a part of the object.
func (r readerAt) ReadAt(p []byte, off int64) (int, error) { return r.Object.ReadAt(r.ctx, p, off) }
