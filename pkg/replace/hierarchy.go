package replace

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path"
	"slices"
	"strings"

	"strata/pkg/atomic"
	"strata/pkg/ngff"
	"strata/pkg/runrecord"
	"strata/pkg/zarr"
	"strata/pkg/zarr/store"
)

// notPart ends the description of an entry of a hierarchy.
const notPart = "which is not part of the image there"

// ByHierarchy returns [Hierarchy] as a function of the folder alone.
func ByHierarchy(ctx context.Context) atomic.Foreign {
	return func(dir string) (string, error) { return Hierarchy(ctx, dir) }
}

// Hierarchy returns a description of the first entry of a folder that is not part of the Zarr image or array there:
// metadata documents, chunks of the levels of its pyramid, and further groups and arrays that strata's record in the
// image names. An empty folder holds nothing foreign.
func Hierarchy(ctx context.Context, dir string) (string, error) {
	st := store.Folder(dir)
	h, err := open(ctx, st)
	if errors.Is(err, fs.ErrNotExist) {
		return other(dir)
	}
	if what := unreadable(err); what != "" {
		return what, nil
	}
	if err != nil {
		return "", err
	}
	return tree(ctx, dir, "", h.kind, notPart)
}

// Keys is [Hierarchy] for a store that lists the keys of all its objects.
func Keys(ctx context.Context, st store.Store, keys iter.Seq2[string, error]) (string, error) {
	h, err := open(ctx, st)
	if what := unreadable(err); what != "" {
		return what, nil
	}
	if err != nil {
		return "", err
	}
	for key, err := range keys {
		if err != nil {
			return "", err
		}
		// some programs make an object for an empty folder, whose name ends in a slash
		if name := strings.TrimSuffix(key, "/"); !store.Litter(path.Base(name)) && h.kind(name, name != key) == Foreign {
			return fmt.Sprintf("%q, %s", key, notPart), nil
		}
	}
	return "", nil
}

// unreadable describes a folder whose metadata is none, or not valid; "" for other errors.
func unreadable(err error) string {
	var format *zarr.FormatError
	switch {
	case err == nil:
	case errors.As(err, &format), errors.Is(err, zarr.ErrBudget), errors.Is(err, store.ErrTooLarge):
		return fmt.Sprintf("no valid Zarr (%v)", err)
	case errors.Is(err, fs.ErrNotExist):
		return "other things, and no Zarr"
	case !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, fs.ErrPermission) && !errors.Is(err, store.ErrUnavailable):
		return fmt.Sprintf("no readable Zarr (%v)", err)
	}
	return ""
}

// other describes a folder without a Zarr hierarchy by its first entry; "" for an empty one.
func other(dir string) (string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	for _, e := range entries {
		if !e.Type().IsRegular() || !store.Litter(e.Name()) {
			return fmt.Sprintf("%q, and no Zarr", e.Name()), nil
		}
	}
	return "", nil
}

// hierarchy holds the nodes of a Zarr hierarchy that may be replaced with it, by their path; a group is nil.
type hierarchy map[string]*zarr.Array

// open opens the nodes of an image: the root, the levels of its pyramid, and what strata's record names.
func open(ctx context.Context, st store.Store) (hierarchy, error) {
	root, err := zarr.Open(ctx, st, "", zarr.Workers(1))
	if err != nil {
		return nil, err
	}
	h := hierarchy{"": nil}
	if a, ok := root.(*zarr.Array); ok {
		h[""] = a
		return h, nil
	}
	var names []string
	m, _ := ngff.ReadMetadata(root)
	for _, image := range m.Multiscales {
		for _, d := range image.Datasets {
			names = append(names, path.Clean(d.Path))
		}
	}
	var p runrecord.Provenance
	if json.Unmarshal(root.Attributes()[runrecord.Attribute], &p) == nil {
		names = append(names, p.Nodes...)
	}
	for _, name := range names {
		if err := h.add(ctx, st, name); err != nil {
			return nil, err
		}
	}
	return h, nil
}

// add adds the node of a name, and the groups above it. A node that is missing or not valid has no entries.
func (h hierarchy) add(ctx context.Context, st store.Store, name string) error {
	if _, ok := h[name]; ok || !store.ValidKey(name) {
		return nil
	}
	n, err := zarr.Open(ctx, st, name, zarr.Workers(1))
	if err != nil {
		if unreadable(err) == "" {
			return err
		}
		return nil
	}
	a, _ := n.(*zarr.Array)
	h[name] = a
	for above := path.Dir(name); above != "."; above = path.Dir(above) {
		if _, ok := h[above]; !ok {
			h[above] = nil
		}
	}
	return nil
}

// kind is the [Rule] of the hierarchy.
func (h hierarchy) kind(key string, folder bool) Kind {
	if _, ok := h[key]; ok && folder {
		return Folder
	}
	for node := path.Dir(key); ; node = path.Dir(node) {
		if node == "." {
			node = ""
		}
		a, ok := h[node]
		if !ok {
			continue
		}
		switch rest := strings.TrimPrefix(strings.TrimPrefix(key, node), "/"); {
		case a == nil && !folder && slices.Contains([]string{"zarr.json", ".zgroup", ".zattrs"}, rest):
			return File
		case a == nil || !a.IsKey(rest, folder):
			return Foreign
		case folder:
			return Folder
		}
		return File
	}
}
