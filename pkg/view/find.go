package view

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"strata/pkg/images"
	"strata/pkg/zarr/store"
)

// Entry is something that the viewer lists.
type Entry struct {
	Path string // of an image, as typed; of a page: the file
	Name string // as it is listed
	Page bool   // an HTML page, such as the quality report of a run
}

// Find returns the images in a folder and the folders below it, and the HTML pages of reports, by path. more says
// that there are more than limit of them.
func Find(ctx context.Context, folder string, depth, limit int) (list []Entry, more bool, err error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, false, err
	}
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return nil, false, err
		}
		path := filepath.Join(folder, e.Name())
		info, err := os.Stat(path) // links are followed
		switch {
		case err != nil || strings.HasPrefix(e.Name(), "."):
		case info.IsDir() && store.IsNode(path), info.Mode().IsRegular() && isImage(path):
			list = append(list, Entry{Path: path, Name: e.Name()})
		case info.Mode().IsRegular() && strings.EqualFold(filepath.Ext(path), ".html"):
			list = append(list, Entry{Path: path, Name: e.Name(), Page: true})
		case info.IsDir() && depth > 0:
			below, m, err := Find(ctx, path, depth-1, limit-len(list))
			if err != nil {
				continue // a folder that may not be read hides nothing else
			}
			more = more || m
			for _, b := range below {
				b.Name = e.Name() + "/" + b.Name
				list = append(list, b)
			}
		}
		if len(list) > limit {
			return list[:limit], true, nil
		}
	}
	return list, more, ctx.Err()
}

// isImage reports whether a file is an image: by its name if it is a zip file, else by its first bytes.
func isImage(path string) bool {
	name := strings.ToLower(path)
	if strings.HasSuffix(name, ".zarr.zip") || strings.HasSuffix(name, ".ozx") {
		return true
	}
	return images.Is(path)
}
