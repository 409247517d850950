package view

import (
	"cmp"
	"context"
	"encoding/json"
	"path"
	"slices"
	"strings"

	"strata/pkg/ngff"
	"strata/pkg/zarr"
	"strata/pkg/zarr/store"
)

// Entry is an image or a page in the viewer's list.
type Entry struct {
	Path string // of an image: as typed; of a page: the file
	Name string // name in the list
	Page bool   // an HTML page, such as the quality report of a run

	// Where it was found: it is served only while it lies there, and not if a link there leads out. An image
	// without In is the folder that its path names. The viewer closes In.
	In  *Local
	Key string
}

// Volume returns the index of the volume of a run, which lies in a folder volume or stack: of several, that with the
// shortest path. It returns 0 if there is none.
func Volume(entries []Entry) int {
	found, least := 0, 0
	for i, e := range entries {
		parts := strings.Split(e.Name, "/")
		if n := len(parts); !e.Page && n > 1 && slices.Contains([]string{"volume", "stack"}, parts[n-2]) && (least == 0 || n < least) {
			found, least = i, n
		}
	}
	return found
}

// Folder is a local folder, or a folder in a bucket, to be searched for images.
type Folder struct {
	Store store.Store
	// Place returns the path or address of the object or folder at a key of the store, as a user would type it.
	Place func(key string) string
	// IsImage reports whether the object at a key is an image file.
	IsImage func(key string) bool
	Pages   bool // also list HTML pages; Store must be a [Local]
}

// Find returns the images in a folder and its subfolders down to the given depth, and HTML pages of reports, by
// name. more reports whether there are more than limit.
func (f *Folder) Find(ctx context.Context, depth, limit int) (list []Entry, more bool, err error) {
	s := search{f, limit, nil}
	more, err = s.visit(ctx, "", depth)
	return s.list, more, err
}

// search holds the state of a search.
type search struct {
	*Folder
	limit int
	list  []Entry
}

// add adds an entry, or returns false if the list is full.
func (s *search) add(key string, page bool) bool {
	if len(s.list) >= s.limit {
		return false
	}
	e := Entry{Path: s.Place(key), Name: key, Page: page}
	if in, ok := s.Store.(*Local); ok {
		e.In, e.Key = in, key
	}
	s.list = append(s.list, e)
	return true
}

// visit adds the contents of the folder at a key, which may be an image or a collection of images. more reports
// whether the list is full.
func (s *search) visit(ctx context.Context, key string, depth int) (more bool, err error) {
	entries, err := s.Store.List(ctx, key)
	if err != nil {
		return false, err
	}
	if slices.ContainsFunc(entries, func(e store.Entry) bool { return slices.Contains(store.NodeFiles(), e.Name) }) {
		if in, ok := s.Store.(*Local); ok {
			in.forget(key) // an image's links are not the list's
		}
		inside := Collection(ctx, s.Store, key)
		for _, k := range inside {
			if !s.add(store.Join(key, k), false) {
				return true, nil
			}
		}
		return len(inside) == 0 && !s.add(key, false), nil
	}
	if depth < 0 {
		return false, nil
	}
	slices.SortFunc(entries, func(a, b store.Entry) int { return strings.Compare(a.Name, b.Name) })
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		below := store.Join(key, e.Name)
		switch {
		case strings.HasPrefix(e.Name, "."):
		case e.Dir:
			if more, err = s.visit(ctx, below, depth-1); err != nil {
				more = false // a folder that may not be read hides nothing else
			}
		case e.Lost && strings.Contains(e.Name, ".zarr"): // which says so when it is opened
			more = !s.add(below, false)
		case s.isImage(below):
			more = !s.add(below, false)
		case s.Pages && strings.EqualFold(path.Ext(e.Name), ".html"):
			more = !s.add(below, true)
		}
		if more {
			return true, nil
		}
	}
	return false, ctx.Err()
}

// isImage reports whether a file is an image. Zip files are recognised by name.
func (s *search) isImage(key string) bool {
	name := strings.ToLower(key)
	return strings.HasSuffix(name, ".zarr.zip") || strings.HasSuffix(name, ".ozx") || s.IsImage(key)
}

// Collection returns the names of the images of a collection in the layout of bioformats2raw, or none if there is
// no collection.
func Collection(ctx context.Context, st store.Store, key string) (images []string) {
	g, err := zarr.OpenGroup(ctx, st, key)
	if err != nil {
		return nil
	}
	if m, _ := ngff.ReadMetadata(g); m == nil || !m.Collection || len(m.Multiscales) > 0 {
		return nil
	}
	if images = series(ctx, g); images != nil {
		return images
	}
	children, err := g.Children(ctx)
	if err != nil {
		return nil
	}
	for _, k := range children {
		if strings.Trim(k, "0123456789") == "" {
			images = append(images, k)
		}
	}
	slices.SortFunc(images, func(a, b string) int { return cmp.Or(len(a)-len(b), strings.Compare(a, b)) })
	return images
}

// series returns the images that the group OME of a collection lists.
func series(ctx context.Context, g *zarr.Group) (images []string) {
	o, err := g.Group(ctx, "OME")
	if err != nil {
		return nil
	}
	attrs := o.Attributes()
	if raw, ok := attrs["ome"]; ok {
		attrs = nil
		_ = json.Unmarshal(raw, &attrs) // one that is not valid names none
	}
	_ = json.Unmarshal(attrs["series"], &images)
	return slices.DeleteFunc(images, func(k string) bool { return !store.ValidKey(k) })
}
