package view

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// hash waits until the address has a part, and returns it.
func (b tab) hash(part string) string {
	b.t.Helper()
	for range 200 {
		if h := value[string](b, "location.hash"); strings.Contains(h, part) {
			return h
		}
		time.Sleep(20 * time.Millisecond)
	}
	b.t.Fatalf("the address ends in %s, want %s", value[string](b, "location.hash"), part)
	return ""
}

// slide moves a control of the page as a reader does, by its keys.
func (b tab) slide(id, key string) {
	b.t.Helper()
	b.do(fmt.Sprintf("document.getElementById('%s').focus()", id))
	codes := map[string]int{"ArrowLeft": 37, "ArrowRight": 39}
	for _, kind := range []string{"rawKeyDown", "keyUp"} {
		if err := b.Call("Input.dispatchKeyEvent", map[string]any{"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": codes[key]}, nil); err != nil {
			b.t.Fatal(err)
		}
	}
	b.settle()
}

// Slices of a run are gone through at the same place, laid over each other and side by side; the address holds it all.
func TestPageLists(t *testing.T) {
	const n = 64
	grey := func(v int) [3]int { return [3]int{v, v, v} }
	flat := func(v uint8) func(int) uint8 { return func(int) uint8 { return v } }
	s := spec{axes: "zyx", shape: []int{4, n, n}, chunks: []int{4, n, n}, codec: "zstd:1"}
	st := create(t, s, flat(40))
	v := viewer(t, 64<<20, st, create(t, s, flat(100)), create(t, s, func(i int) uint8 { return uint8(i % n) }))
	v.o.Entries = append(v.o.Entries, Entry{Path: "report.html", Name: "qc-report.html", Page: true})
	v.opened = append(v.opened, &opened{})
	b, address := browse(t, v, "#at=1,32,32&cross=off&panel=xy&percentiles=0,100")
	same := func(what string, at [3]float64, want [3]int) {
		t.Helper()
		if got := b.pixel("xy", at); got != want {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	window := func() {
		t.Helper()
		b.do("viewer.controls.setWindow([0, 255])")
	}
	window()
	at := [3]float64{1, 20, 20}
	same("the first image", at, grey(40))

	// The list: its slider, its buttons and its keys.
	b.slide("slide", "ArrowRight")
	window()
	same("the slider: the second image", at, grey(100))
	b.press("]")
	window()
	same("a key: the third image", at, grey(20))
	b.do("document.getElementById('previous').click()")
	window()
	same("a button: back", at, grey(100))
	b.press("[")
	window()
	if got := value[string](b, "document.getElementById('reports').textContent"); got != "qc-report.html " {
		t.Errorf("reports: %q", got)
	}
	links := value[string](b, "document.getElementById('elsewhere').textContent")
	for _, says := range []string{address + "zarr/0.ome.zarr/", "--allow_origin https://neuroglancer-demo.appspot.com", "napari --plugin napari-ome-zarr"} {
		if !strings.Contains(links, says) {
			t.Errorf("the links %q do not say %q", links, says)
		}
	}

	// Overlays. Of the second image all voxels are equal: its window begins with them.
	b.do("document.getElementById('overlay').value = 1, document.getElementById('overlay').dispatchEvent(new Event('change'))")
	b.do("viewer.overlay.window = () => [0, 255], viewer.redraw()")
	mode := func(name string) {
		t.Helper()
		b.do(fmt.Sprintf("document.getElementById('mode').value = '%s', document.getElementById('mode').dispatchEvent(new Event('change'))", name))
	}
	mode("blend")
	same("blend", at, grey(70))
	mode("difference")
	same("difference", at, grey(60))
	mode("flicker")
	for flick, want := range map[bool]int{true: 100, false: 40} {
		got := value[[3]int](b, fmt.Sprintf("(viewer.flick = %v, viewer.draw(), %s)", flick, pixelOf("xy", 0, at)))
		if got != grey(want) {
			t.Errorf("flicker, second image %v: %v, want %d", flick, got, want)
		}
	}
	first := value[bool](b, "viewer.flick")
	for i := 0; value[bool](b, "viewer.flick") == first; i++ {
		if i > 200 {
			t.Fatal("the images do not flicker")
		}
		time.Sleep(20 * time.Millisecond)
	}

	// Side by side, the next one of the list.
	b.do("document.getElementById('overlay').value = -2, document.getElementById('overlay').dispatchEvent(new Event('change'))")
	mode("side by side")
	b.do("viewer.fit()")
	halves := func(what string, left, right int) {
		t.Helper()
		b.do("viewer.overlay.window = () => [0, 255], viewer.redraw()")
		got := [2]int{}
		for i := range got {
			got[i] = value[[3]int](b, pixelOf("xy", i, at))[0]
		}
		if got != [2]int{left, right} {
			t.Errorf("%s: %v, want %d and %d", what, got, left, right)
		}
	}
	halves("side by side", 40, 100)
	b.shot("side-by-side")
	x, y := b.middle("xy")
	width := value[float64](b, "viewer.panels[0].canvas.clientWidth")
	b.mouse("mousePressed", x+width/4, y, nil) // the middle of the right half
	b.mouse("mouseReleased", x+width/4, y, nil)
	b.settle()
	if p := value[[3]float64](b, "viewer.state.at"); p[1] < 31 || p[1] > 32 || p[2] < 31 || p[2] > 32 {
		t.Errorf("a click in the middle of the right half is at %v, want 31.5, 31.5", p)
	}
	b.press("]")
	window()
	halves("and the next two", 100, 20)

	// The address shows the same again.
	hash := b.hash("image=1&")
	if !strings.Contains(hash, "overlay=-2&mode=side+by+side") || !strings.Contains(hash, "window0=0,255") {
		t.Errorf("the address ends in %s", hash)
	}
	if err := b.Open("about:blank"); err != nil {
		t.Fatal(err)
	}
	if err := b.Open(address + hash); err != nil {
		t.Fatal(err)
	}
	b.settle()
	halves("the address, opened again", 100, 20)
}

// The two lines of the histogram set the window.
func TestPageHistogram(t *testing.T) {
	const n = 64
	st := create(t, spec{axes: "yx", shape: []int{n, n}, chunks: []int{n, n}, codec: "zstd:1"}, func(i int) uint16 { return uint16(i % n * 100) })
	b, _ := browse(t, viewer(t, 16<<20, st), "#cross=off&percentiles=0,100")
	box := value[[4]float64](b, "(() => { const r = document.getElementById('histogram').getBoundingClientRect(), s = viewer.controls.histogram.statistics; return [r.left, r.width, r.top + r.height / 2, s.to - s.from]; })()")
	from := value[float64](b, "viewer.controls.histogram.statistics.from")
	place := func(v float64) float64 { return box[0] + (v-from)/box[3]*box[1] }
	drag := func(a, z float64) {
		t.Helper()
		b.mouse("mousePressed", place(a), box[2], nil)
		b.mouse("mouseMoved", place(z), box[2], map[string]any{"buttons": 1})
		b.mouse("mouseReleased", place(z), box[2], nil)
		b.settle()
	}
	drag(6200, 4000)
	drag(100, 2000)
	w := value[[2]float64](b, "viewer.main.window(viewer.state, 0, true)")
	if w[0] < 1900 || w[0] > 2100 || w[1] < 3900 || w[1] > 4100 {
		t.Errorf("the window is %v, want 2000 to 4000", w)
	}
	if got := b.pixel("xy", [3]float64{0, 32, 45}); got != [3]int{255, 255, 255} {
		t.Errorf("a voxel above the window: %v", got)
	}
	if got := b.pixel("xy", [3]float64{0, 32, 15}); got != [3]int{0, 0, 0} {
		t.Errorf("a voxel below the window: %v", got)
	}
	if said := value[string](b, "document.getElementById('percentiles').value"); said != "" {
		t.Errorf("percentiles %q of a window that was set by hand", said)
	}
	b.do("document.getElementById('reset').click()")
	if w := value[[2]float64](b, "viewer.main.window(viewer.state, 0, true)"); w[1] < 6200 {
		t.Errorf("after Reset the window is %v", w)
	}
	if value[bool](b, "document.getElementById('panels').classList.contains('flat')") != true {
		t.Error("a 2-D image has more than one cut")
	}
}
