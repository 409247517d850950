package view

import (
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"strata/pkg/dtype"
	"strata/pkg/ngff"
	"strata/pkg/webpage"
	"strata/pkg/zarr/codec"
	"strata/pkg/zarr/store"
	"strata/tests/race"
)

// run returns the list of a folder with images and a report that has a text.
func run(t *testing.T, report string, images map[string]func(z, y, x int) int) []Entry {
	t.Helper()
	dir := t.TempDir()
	chain, err := codec.FromFlag("zstd:1", dtype.Uint8, 3)
	must(t, err)
	for name, value := range images {
		w, err := ngff.Create(ctx, store.Folder(filepath.Join(dir, name)), "", ngff.ImageSpec{Shape: runShape[:], Chunks: []int{12, 64, 64}, DType: dtype.Uint8, Codecs: chain,
			Axes: ngff.SpaceAxes("zyx", "micrometer"), Scale: []float64{4, 1, 1}, Translation: []float64{100, 0, 0}})
		must(t, err)
		v := make([]byte, runShape[0]*runShape[1]*runShape[2])
		for i := range v {
			v[i] = byte(value(i/runShape[2]/runShape[1], i/runShape[2]%runShape[1], i%runShape[2]))
		}
		must(t, w.WriteTile(ctx, []int{0, 0, 0}, runShape[:], v), w.Close(ctx))
	}
	must(t, os.WriteFile(filepath.Join(dir, "qc-report.html"), []byte("<!doctype html><title>report</title><p>"+report), 0o600))
	local, err := OpenLocal(dir)
	must(t, err)
	f := &Folder{Store: local, Place: func(key string) string { return filepath.Join(dir, key) }, IsImage: func(string) bool { return false }, Pages: true}
	list, _, err := f.Find(ctx, 3, 100)
	must(t, err)
	return list
}

var runShape = [3]int{24, 101, 101}

// A report's places are links to the images that lie nearest to it in the list, and stay text where none does.
func TestReportLinks(t *testing.T) {
	spot := func(image, overlay string) *webpage.Spot { return &webpage.Spot{Image: image, Overlay: overlay} }
	flat := func(_, _, _ int) int { return 7 }
	report := string(spot("slices/a.ome.zarr", "slices/b.ome.zarr").Mark("both")) + string(spot("slices/a.ome.zarr", "slices/c.ome.zarr").Mark("one")) +
		string(spot("out/volume.ome.zarr", "").Mark("beside")) + string(spot("../slices/a.ome.zarr", "").Mark("above")) + string(spot("qc-report.html", "").Mark("page"))
	v, _ := folderViewer(t, run(t, report, map[string]func(z, y, x int) int{"aip/slices/a.ome.zarr": flat, "slices/a.ome.zarr": flat, "slices/b.ome.zarr": flat, "volume.ome.zarr": flat})...)
	want := "<!doctype html><title>report</title><p>" + `<a class="view" href="../#image=2&amp;overlay=3&amp;mode=checkerboard&amp;voxel=0,0,0">both</a>` +
		string(spot("slices/a.ome.zarr", "slices/c.ome.zarr").Mark("one")) + `<a class="view" href="../#image=4&amp;mode=checkerboard&amp;voxel=0,0,0">beside</a>` +
		string(spot("../slices/a.ome.zarr", "").Mark("above")) + string(spot("qc-report.html", "").Mark("page"))
	w := get(t, v, "/pages/1")
	if got := w.Body.String(); got != want {
		t.Errorf("the page is\n%s\nwant\n%s", got, want)
	}
	if policy := w.Header().Get("Content-Security-Policy"); policy != "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:" {
		t.Errorf("its policy is %q", policy)
	}
	images := map[string]int{"a/b/slices/x": 1, "slices/x": 2, "a/y": 3}
	for _, c := range []struct {
		page, name string
		want       int
	}{{"a/b/r.html", "slices/x", 1}, {"a/r.html", "slices/x", 2}, {"r.html", "slices/x", 2}, {"a/r.html", "elsewhere/y", 3}, {"a/b/r.html", "elsewhere/y", 0}} {
		if got, ok := nearest(images, c.page, c.name); got != c.want || ok != (got != 0) {
			t.Errorf("%s of %s is image %d, want %d", c.name, c.page, got, c.want)
		}
	}
}

// The volume of a run is shown first, wherever it stands in the list.
func TestVolumeFirst(t *testing.T) {
	for _, c := range []struct {
		names []string
		want  int
	}{
		{[]string{"aip/volume.ome.zarr", "slices/a", "volume/volume.ome.zarr"}, 2},
		{[]string{"a/b/volume/v", "b/stack/v", "volume"}, 1},
		{[]string{"slices/a", "slices/b"}, 0},
		{nil, 0},
	} {
		var list []Entry
		for _, n := range c.names {
			list = append(list, Entry{Name: n})
		}
		if got := Volume(list); got != c.want {
			t.Errorf("of %q, image %d is first, want %d", c.names, got, c.want)
		}
	}
	page := Entry{Page: true}
	if v := New(Options{Entries: []Entry{page, {}, {}}, First: 0}); v.First() != 1 {
		t.Errorf("image %d is first where a page was to be", v.First())
	}
}

// A click on a join of a report leads to the fixed slice at the plane of the join, with the moving slice where it was
// registered; a click on a seam shows its surroundings.
func TestReportClick(t *testing.T) {
	race.Leave(t)
	first := func(z, y, x int) int { return (7*z + y + 2*x) % 251 }
	join := &webpage.Spot{Image: "slices/a.ome.zarr", Overlay: "slices/b.ome.zarr", At: [3]float64{20, webpage.Middle, webpage.Middle}, Lay: []float64{0, 4, -5, 50, 50, 18, 3}}
	seam := &webpage.Spot{Image: "slices/b.ome.zarr", At: [3]float64{webpage.Middle, 30, 70}, Width: 40}
	v, _ := folderViewer(t, run(t, string(join.Mark("slices 0–1"))+`<p>`+string(seam.Mark("a seam")), map[string]func(z, y, x int) int{
		"slices/a.ome.zarr": first, "slices/b.ome.zarr": func(z, y, x int) int { return first(z+15, y+5, x+247) }, // b's plane 3 is a's 18, its (y, x) a's (y+5, x−4)
	})...)
	b, address := browse(t, v, "")
	open := func(text string) {
		t.Helper()
		if err := b.Open(address + "pages/0"); err != nil {
			t.Fatal(err)
		}
		p := value[[2]float64](b, `(() => { const r = [...document.querySelectorAll('a.view')].find(a => a.textContent === '`+text+`').getBoundingClientRect(); return [r.left + r.width / 2, r.top + r.height / 2]; })()`)
		b.mouse("mousePressed", p[0], p[1], nil)
		b.mouse("mouseReleased", p[0], p[1], nil)
		for range 500 {
			if value[string](b, "location.href") != address+"pages/0" {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		b.settle()
	}
	open("slices 0–1")
	if at := value[[3]float64](b, "viewer.state.at"); at != [3]float64{180, 50, 50} {
		t.Errorf("the cross-hair is at %v, want 180, 50, 50", at)
	}
	if names := value[[]string](b, "[viewer.main.d.name, viewer.overlay.d.name, viewer.state.mode]"); names[0] != "slices/a.ome.zarr" || names[1] != "slices/b.ome.zarr" || names[2] != "checkerboard" {
		t.Errorf("shown: %q", names)
	}
	if p := value[[3]float64](b, "viewer.state.place.by"); math.Hypot(math.Hypot(p[0]-60, p[1]-5), p[2]+4) > 1e-6 {
		t.Errorf("the overlay lies at %v, want 60, 5, -4", p)
	}
	b.hash("place=60,5,-4,0")
	b.shot("join")
	b.do("clearInterval(viewer.flicker), viewer.state.mode = 'flicker', viewer.state.cross = false, viewer.flick = true, viewer.overlay.window = () => [0, 255], viewer.redraw()")
	for _, d := range []int{-20, 0, 12} {
		want := first(20, 50+d, 50-d)
		if got := b.pixel("xy", [3]float64{180, 50 + float64(d), 50 - float64(d)}); got != [3]int{want, want, want} {
			t.Errorf("the overlay shows %v, want %d", got, want)
		}
	}
	open("a seam")
	at, scale := value[[3]float64](b, "viewer.state.at"), value[float64](b, "viewer.state.scale * viewer.panels[0].element.clientWidth")
	if at != [3]float64{148, 30, 70} || value[[3]float64](b, "viewer.state.centre") != at || math.Abs(scale-40) > 1e-6 {
		t.Errorf("a seam is shown at %v in %v µm, want 148, 30, 70 in 40", at, scale)
	}
	if value[bool](b, "Boolean(viewer.overlay)") {
		t.Error("a seam has an overlay")
	}
}
