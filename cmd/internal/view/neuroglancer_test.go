package view

import (
	"encoding/json"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
)

// The address of --neuroglancer names the image, which that page may read.
func TestNeuroglancer(t *testing.T) {
	image := filepath.Join(t.TempDir(), "a b.ome.zarr")
	program(t, nil, "phantom", filepath.Join(filepath.Dir(image), "p"), "--slices", "1", "--tiles", "1,1", "--tile", "4,32,32")
	program(t, nil, "zarr-tool", "reencode", filepath.Join(filepath.Dir(image), "p", "mosaic_grid_3d_z00.ome.zarr"), image)
	printed, _, _ := serveProcess(t, nil, image, "--neuroglancer")
	page, there, _ := strings.Cut(printed, "\n")
	fragment, ours := strings.CutPrefix(there, neuroglancer+"/#!")
	text, err := url.PathUnescape(fragment)
	if err != nil || !ours {
		t.Fatalf("%s, %v", there, err)
	}
	var state struct {
		Layers []struct{ Type, Source, Name string }
	}
	if err := json.Unmarshal([]byte(text), &state); err != nil || len(state.Layers) != 1 {
		t.Fatalf("%s: %v", text, err)
	}
	l := state.Layers[0]
	source, zarr := strings.CutPrefix(l.Source, "zarr://")
	if !zarr || source != page+"zarr/0.ome.zarr/" || l.Type != "image" || l.Name != "a b.ome.zarr" {
		t.Fatalf("%s: %+v", page, l)
	}
	if status, _ := get(t, source+"zarr.json", "Origin", neuroglancer); status != http.StatusOK {
		t.Errorf("zarr.json: %d", status)
	}
	if status, _ := get(t, source+"zarr.json", "Origin", "https://example.org"); status != http.StatusForbidden {
		t.Errorf("zarr.json for another page: %d", status)
	}
}
