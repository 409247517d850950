package view

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"strata/pkg/address"
	"strata/pkg/cli"
	"strata/pkg/images"
	"strata/pkg/view"
	"strata/pkg/zarr"
	"strata/pkg/zarr/store"
)

// list returns the image that the argument names, the images of a collection, or the contents of a folder. note is
// a warning about what is left out, or "".
func list(ctx context.Context, r *cli.Run) (entries []view.Entry, note string, err error) {
	in := r.Arg("IN")
	single := []view.Entry{{Path: in, Name: shown(in)}}
	local := strings.TrimPrefix(in, "file://")
	if info, err := os.Stat(local); err == nil && info.IsDir() && !store.IsNode(local) {
		folder, err := view.OpenLocal(local)
		if err != nil {
			return nil, "", cli.BadInput(err)
		}
		entries, err = search(ctx, r, &view.Folder{Store: folder, Place: func(key string) string { return filepath.Join(local, key) }, Pages: true,
			IsImage: func(key string) bool { return images.Is(filepath.Join(local, key)) }})
		if out := folder.Outside(); len(out) > 0 {
			note = fmt.Sprintf("%s: is a link that leads out of %s: not listed%s; name it to see it", out[0], in, others(len(out)-1))
		}
		return entries, note, err
	}
	if _, err := r.Input(in); err != nil {
		return nil, "", err
	}
	st, key, err := images.Open(ctx, in, store.Settings(r.Options.HTTP))
	if err != nil {
		return single, "", nil // the reason is told when it is opened to be shown
	}
	defer st.Close()
	if _, err := zarr.Open(ctx, st, key); errors.Is(err, fs.ErrNotExist) && cli.InBucket(in) && key == "" {
		entries, err = search(ctx, r, &view.Folder{Store: st, Place: func(key string) string { return below(in, key) }, IsImage: isImageName})
		return entries, "", err
	}
	entries, err = collection(ctx, in, st, key, single)
	return entries, "", err
}

// collection returns the images of a collection, or single if there is none.
func collection(ctx context.Context, in string, st store.Store, key string, single []view.Entry) ([]view.Entry, error) {
	names := view.Collection(ctx, st, key)
	if len(names) == 0 {
		return single, nil
	}
	var folder *view.Local
	if f, ok := st.(*store.FolderStore); ok {
		var err error
		if folder, err = view.OpenLocal(f.Location("")); err != nil {
			return nil, cli.BadInput(err)
		}
	}
	var entries []view.Entry
	for _, k := range names {
		e := view.Entry{Path: below(in, k), Name: shown(in) + "/" + k}
		if folder != nil {
			e.In, e.Key = folder, store.Join(key, k)
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// others returns ", nor are N others", or "" for none.
func others(n int) string {
	switch n {
	case 0:
		return ""
	case 1:
		return ", nor is another one"
	}
	return ", nor are " + strconv.Itoa(n) + " others"
}

// search returns the images and pages in a folder.
func search(ctx context.Context, r *cli.Run, f *view.Folder) ([]view.Entry, error) {
	in := address.Address(r.Arg("IN"))
	entries, more, err := f.Find(ctx, folderDepth, mostEntries)
	if err != nil {
		return nil, cli.BadInput(err)
	}
	if !slices.ContainsFunc(entries, func(e view.Entry) bool { return !e.Page }) {
		return nil, cli.BadInputf("%s: holds no OME-Zarr image, TIFF or CZI file, down to %d folders below it", in, folderDepth)
	}
	if more {
		r.Warn("%s: holds more than %d images: the first are listed", in, mostEntries)
	}
	return entries, nil
}

// below returns the path or address of a key below another path or address.
func below(in, key string) string {
	if !strings.Contains(in, "://") {
		return filepath.Join(in, key)
	}
	place, query, has := strings.Cut(in, "?")
	place = strings.TrimRight(place, "/") + "/" + key
	if has {
		place += "?" + query
	}
	return place
}

// isImageName reports whether an object in a bucket is an image file, judging by its name, because reading the
// beginning of each object would take a request.
func isImageName(key string) bool {
	return slices.Contains([]string{".tif", ".tiff", ".btf", ".tf8", ".svs", ".scn", ".ndpi", ".czi"}, strings.ToLower(path.Ext(key)))
}
