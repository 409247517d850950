package view

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"path"
	"strconv"
	"time"

	"strata/pkg/webpage"
	"strata/pkg/zarr/store"
)

// mostPage is the largest page, in bytes, in which places become links. A quality report has a few megabytes.
const mostPage = 64 << 20

// page serves an entry's HTML page with a policy that forbids scripts and external resources. Places in images that
// are in the list become links to them.
func (v *Viewer) page(w http.ResponseWriter, r *http.Request) {
	i, err := strconv.Atoi(r.PathValue("id"))
	if err != nil || i < 0 || i >= len(v.o.Entries) || !v.o.Entries[i].Page || v.o.Entries[i].In == nil {
		http.Error(w, "there is no such page", http.StatusNotFound)
		return
	}
	e := v.o.Entries[i]
	f, size, err := e.In.file(r.Context(), e.Key)
	if err != nil {
		v.fail(w, r, err)
		return
	}
	defer f.Close()
	w.Header().Set("Content-Security-Policy", "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:")
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	var content io.ReadSeeker = f
	if size <= mostPage {
		text, err := io.ReadAll(io.LimitReader(f, mostPage))
		if err != nil {
			v.fail(w, r, err)
			return
		}
		content = bytes.NewReader(v.linked(text, e))
	}
	http.ServeContent(w, r, "", time.Time{}, content)
}

// linked returns a page with links to places in images that were found in the same folder as the page.
func (v *Viewer) linked(text []byte, page Entry) []byte {
	images := map[string]int{}
	for i, e := range v.o.Entries {
		if !e.Page && e.In == page.In {
			images[e.Key] = i
		}
	}
	return webpage.LinkSpots(text, func(s *webpage.Spot) string {
		image, ok := nearest(images, page.Key, s.Image)
		if !ok {
			return ""
		}
		address := fmt.Sprintf("../#image=%d", image)
		if s.Overlay != "" {
			overlay, ok := nearest(images, page.Key, s.Overlay)
			if !ok {
				return ""
			}
			address += fmt.Sprintf("&overlay=%d", overlay)
		}
		return address + s.Query()
	})
}

// nearest returns the image at a path below the folder of a page, or below one of the folders above that, or else the
// one with the path's last part beside the page.
func nearest(images map[string]int, page, name string) (image int, ok bool) {
	beside := path.Dir("/" + page)
	for folder := beside; ; folder = path.Dir(folder) {
		if image, ok = images[store.Join(folder[1:], name)]; ok {
			return image, true
		}
		if folder == "/" {
			image, ok = images[store.Join(beside[1:], path.Base(name))]
			return image, ok
		}
	}
}
