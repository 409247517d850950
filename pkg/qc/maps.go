package qc

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"strata/pkg/dtype"
	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/preview"
	"strata/pkg/work"
	"strata/pkg/zarr"
	"strata/pkg/zarr/store"

	"strata/pkg/webpage"
)

// MapSet holds focal's maps of one slice.
type MapSet struct {
	Name string
	Maps []*Map
}

// Map is one map as a picture, with its numbers if it is an OME-Zarr image.
type Map struct {
	Kind           string // "flatfield"
	Title          string // "Flat-field"
	Picture        *Picture
	HasNumbers     bool
	Min, Mean, Max float64
	Unit           string
}

// titles lists the titles of the maps that focal saves, and whether their numbers are depths, which it stores in
// planes.
var titles = map[string]struct {
	name  string
	depth bool
}{"flatfield": {"Flat-field", false}, "z0": {"Tissue interface", true}, "correction": {"Curvature correction", true}}

// mapPixels is the size of the picture of a map in px.
const mapPixels = 560

// mapKinds are the maps of a slice, in the order in which they are shown.
var mapKinds = []string{"flatfield", "correction", "z0"}

// loadMaps reads folders of maps: each of one slice, or of one folder per slice.
func (r *Report) loadMaps(ctx context.Context, list []found, res oct.Resources) error {
	var folders []found // of slices
	for _, f := range list {
		below, err := mapFolders(f)
		if err != nil {
			if err := r.unusable(f, err); err != nil {
				return err
			}
			continue
		}
		folders = append(folders, below...)
	}
	sets, faults := make([]*MapSet, len(folders)), make([][]error, len(folders))
	each, depth := res, r.depth("focal")
	together := max(1, min(res.Workers, len(folders)))
	each.Workers, each.Mem = 1, res.Mem/int64(together)
	err := work.Each(ctx, together, len(folders), func(_, i int) error {
		sets[i], faults[i] = mapSet(ctx, folders[i].path, depth, each)
		return nil
	})
	if err != nil {
		return err
	}
	for i, f := range folders {
		for _, err := range faults[i] {
			if err := r.unusable(f, err); err != nil {
				return err
			}
		}
		if len(sets[i].Maps) > 0 {
			r.Maps = append(r.Maps, sets[i])
		}
	}
	return nil
}

// mapFolders returns the folders of slices in a folder, or the folder itself if it is one. A named one must have maps.
func mapFolders(f found) (folders []found, err error) {
	entries, err := os.ReadDir(f.path)
	if err != nil {
		return nil, err
	}
	if hasMaps(f.path) {
		return []found{f}, nil
	}
	for _, e := range entries {
		if path := filepath.Join(f.path, e.Name()); isFolder(path) && !strings.HasPrefix(e.Name(), ".") && hasMaps(path) {
			folders = append(folders, found{path, false})
		}
	}
	if len(folders) == 0 && f.named {
		return nil, badInput("%s: no maps: want a folder with flatfield.ome.zarr, correction.ome.zarr or z0.ome.zarr, or folders with them", f.path)
	}
	return folders, nil
}

// mapFiles returns the image and the picture of a map; it has either.
func mapFiles(folder, kind string) (image, picture string) {
	return filepath.Join(folder, kind+".ome.zarr"), filepath.Join(folder, kind+".png")
}

func hasMaps(folder string) bool {
	return slices.ContainsFunc(mapKinds, func(kind string) bool {
		image, picture := mapFiles(folder, kind)
		return isFolder(image) || exists(picture)
	})
}

// mapSet reads the maps of one slice, and says what is wrong with those that it leaves out.
func mapSet(ctx context.Context, folder string, planes depth, res oct.Resources) (set *MapSet, faults []error) {
	set = &MapSet{Name: filepath.Base(folder)}
	for _, kind := range mapKinds {
		m := &Map{Kind: kind, Title: titles[kind].name}
		image, picture := mapFiles(folder, kind)
		var err error
		switch {
		case isFolder(image):
			if err = m.draw(ctx, image, res); err == nil && titles[kind].depth {
				m.measured(planes)
			}
		case exists(picture):
			m.Picture, err = readPNG(ctx, picture, res.Mem)
		default:
			continue
		}
		if err != nil {
			faults = append(faults, err)
			continue
		}
		m.Picture.Name = set.Name + " " + kind
		m.Picture.Alt = m.Title + " of " + set.Name
		set.Maps = append(set.Maps, m)
	}
	return set, faults
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// draw makes the picture and the numbers of an OME-Zarr image.
func (m *Map) draw(ctx context.Context, path string, res oct.Resources) error {
	im, err := ngff.OpenPresent(ctx, store.Folder(path), "", zarr.Workers(res.Workers), zarr.Meter(res.Meter))
	if err != nil {
		return err
	}
	o := preview.Defaults()
	o.Colormap, o.MaxSize, o.Title, o.Percentiles = "viridis", mapPixels, m.Title, [2]float64{0, 100}
	p, err := preview.Render(ctx, im, o, oct.Resources{Workers: res.Workers, Mem: res.Mem, Meter: res.Meter})
	if err != nil {
		return err
	}
	if m.Picture, err = newPicture(p.Image); err != nil {
		return err
	}
	return m.measure(ctx, im.Levels[0].Array)
}

// measured turns the numbers of a map from planes into a depth.
func (m *Map) measured(d depth) {
	m.Unit = d.unit
	m.Min, m.Mean, m.Max = m.Min*d.um, m.Mean*d.um, m.Max*d.um
}

// measure finds the smallest, mean and largest number of an image, NaN and
// infinities left out.
func (m *Map) measure(ctx context.Context, a *zarr.Array) error {
	shape, rows := a.Shape(), a.Chunks()[0]
	line := a.DType().Size()
	for _, n := range shape[1:] {
		line *= n
	}
	if line == 0 || line > 1<<28 {
		return fmt.Errorf("%s: rows of %d bytes: want a map", a.Location(), line)
	}
	rows = max(1, min(rows, shape[0], 32<<20/line))
	m.Min, m.Max = math.Inf(1), math.Inf(-1)
	sum, n := 0.0, 0
	buf := make([]byte, rows*line)
	for y := 0; y < shape[0]; y += rows {
		r := a.Bounds()
		r.Start[0], r.Shape[0] = y, min(rows, shape[0]-y)
		b := buf[:r.Shape[0]*line]
		if err := a.Read(ctx, r, b); err != nil {
			return err
		}
		dtype.Each(b, a.DType(), func(v float64) {
			if v-v == 0 {
				m.Min, m.Max = min(m.Min, v), max(m.Max, v)
				sum, n = sum+v, n+1
			}
		})
	}
	if m.HasNumbers = n > 0; m.HasNumbers {
		m.Mean = sum / float64(n)
	}
	return nil
}

// fewMaps is the maximum number of slices whose maps are all shown at once; of more slices, only the maps of the first
// firstMaps are.
const fewMaps, firstMaps = 4, 2

// FirstMaps returns the maps that are shown at once.
func (r *Report) FirstMaps() []*MapSet {
	return inTheOpen(r.Maps, fewMaps, firstMaps)
}

// OtherMaps returns the maps that are shown on demand.
func (r *Report) OtherMaps() []*MapSet { return r.Maps[len(r.FirstMaps()):] }

// mapPlots compare the maps of slices.
func (r *Report) mapPlots() (plots []*webpage.Plot) {
	unit := r.depth("focal").unit
	for _, k := range []struct {
		kind, title, label, caption string
		value                       func(*Map) float64
	}{
		{"correction", "Curvature of the focal plane", "curvature, ", "Curvature of each slice: the largest correction minus the smallest.", func(m *Map) float64 { return m.Max - m.Min }},
		{"z0", "Depth of the tissue interface in the mosaic", "depth, ", "Mean depth of the tissue interface in each mosaic.", func(m *Map) float64 { return m.Mean }},
	} {
		var sets []*Facts
		for _, s := range r.Maps {
			for _, m := range s.Maps {
				if m.Kind == k.kind && m.HasNumbers {
					sets = append(sets, &Facts{Name: s.Name, plot: map[string]float64{k.kind: k.value(m)}})
				}
			}
		}
		if p := perSlice(sets, k.title, k.label+unit, unit, k.caption, k.kind); p != nil {
			plots = append(plots, p)
		}
	}
	return plots
}
