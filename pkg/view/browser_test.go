package view

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"strata/tests/browser"
	"strata/tests/race"
)

// tab is the page in a browser.
type tab struct {
	*browser.Browser
	t *testing.T
}

// value evaluates an expression in the page.
func value[T any](t tab, expression string) (v T) {
	t.t.Helper()
	if err := t.Eval(expression, &v); err != nil {
		t.t.Fatalf("%s: %v", expression, err)
	}
	return v
}

// settle waits until the page shows all that it is to show.
func (b tab) settle() {
	b.t.Helper()
	for range 1000 {
		if value[bool](b, "globalThis.viewer?.settled?.() ?? false") {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	b.t.Fatalf("the page does not settle: %s", value[string](b, "document.getElementById('message').textContent + ' ' + [...viewer.tiles.wanted.keys()].slice(0, 3)"))
}

// do evaluates an expression for what it does, and waits for what follows.
func (b tab) do(expression string) {
	b.t.Helper()
	value[any](b, "("+expression+", null)")
	b.settle()
}

// pixel returns the colour that a cut shows at a position in µm.
func (b tab) pixel(panel string, at [3]float64) [3]int {
	b.t.Helper()
	return value[[3]int](b, pixelOf(panel, 0, at))
}

// pixelOf returns an expression for the colour that a part of a cut shows at a position in µm.
func pixelOf(panel string, part int, at [3]float64) string {
	return fmt.Sprintf(`(() => {
		const p = viewer.panels.find(k => k.plane.name === %q), v = p.view(%d), at = [%g, %g, %g];
		const one = new OffscreenCanvas(1, 1).getContext('2d', {willReadFrequently: true});
		one.drawImage(p.canvas, -Math.floor(v.x(at[p.plane.cols])), -Math.floor(v.y(at[p.plane.rows])));
		return [...one.getImageData(0, 0, 1, 1).data].slice(0, 3);
	})()`, panel, part, at[0], at[1], at[2])
}

// middle is where a cut lies in the window.
func (b tab) middle(panel string) (x, y float64) {
	p := value[[2]float64](b, fmt.Sprintf(`(() => { const r = document.querySelector('#%s canvas').getBoundingClientRect(); return [r.left + r.width / 2, r.top + r.height / 2]; })()`, panel))
	return p[0], p[1]
}

// mouse sends an event of the mouse.
func (b tab) mouse(kind string, x, y float64, more map[string]any) {
	b.t.Helper()
	e := map[string]any{"type": kind, "x": x, "y": y}
	if kind == "mousePressed" || kind == "mouseReleased" {
		e["button"], e["clickCount"] = "left", 1
	}
	if kind == "mouseMoved" && more != nil {
		e["button"] = "left"
	}
	for k, v := range more {
		e[k] = v
	}
	if err := b.Call("Input.dispatchMouseEvent", e, nil); err != nil {
		b.t.Fatal(err)
	}
}

// press sends a key.
func (b tab) press(key string) {
	b.t.Helper()
	for _, kind := range []string{"keyDown", "keyUp"} {
		e := map[string]any{"type": kind, "key": key}
		if len(key) == 1 && kind == "keyDown" {
			e["text"] = key
		}
		if err := b.Call("Input.dispatchKeyEvent", e, nil); err != nil {
			b.t.Fatal(err)
		}
	}
	b.settle()
}

// shade is the voxel of the test's image, z, y, x.
func shade(z, y, x int) int { return (5*z + y + 2*x) % 251 }

// browse opens the page of a viewer in a browser.
func browse(t *testing.T, v *Viewer, hash string) (tab, string) {
	t.Helper()
	race.Leave(t)
	if _, err := exec.LookPath("chromium"); err != nil {
		t.Skip("chromium is not installed")
	}
	server := httptest.NewServer(v)
	t.Cleanup(server.Close)
	b, err := browser.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Stop(); err != nil {
			t.Error(err)
		}
	})
	page := tab{b, t}
	address := server.URL + "/" + token + "/"
	if err := b.Window(1200, 800); err != nil {
		t.Fatal(err)
	}
	if err := b.Open(address + hash); err != nil {
		t.Fatal(err)
	}
	page.settle()
	t.Cleanup(func() {
		for _, n := range b.Noise(address) {
			t.Error(n)
		}
	})
	return page, address
}

// shot saves what the window shows where STRATA_TEST_SCREENSHOTS names a folder.
func (b tab) shot(name string) {
	b.t.Helper()
	if dir := os.Getenv("STRATA_TEST_SCREENSHOTS"); dir != "" {
		if err := b.Screenshot(filepath.Join(dir, name+".png")); err != nil {
			b.t.Fatal(err)
		}
	}
}

// The page shows the voxels of the image where they are, in three cuts, and every control does what it says.
func TestPage(t *testing.T) {
	const nz, ny, nx = 40, 300, 280
	st := create(t, spec{axes: "zyx", shape: []int{nz, ny, nx}, chunks: []int{16, 64, 64}, codec: "zstd:1", scale: []float64{4, 1, 1}, levels: 2},
		func(i int) uint8 { return uint8(shade(i/nx/ny, i/nx%ny, i%nx)) })
	other := create(t, spec{axes: "zyx", shape: []int{nz, ny, nx}, chunks: []int{16, 64, 64}, codec: "zstd:1", scale: []float64{4, 1, 1}, shift: []float64{0, 0, 20}},
		func(i int) uint8 { return uint8(255 - shade(i/nx/ny, i/nx%ny, i%nx)) })
	b, _ := browse(t, viewer(t, 64<<20, st, other), "#at=48,150,140&centre=48,150,140&scale=0.25&window0=0,255&cross=off")

	grey := func(v int) [3]int { return [3]int{v, v, v} }
	same := func(what, panel string, at [3]float64, want [3]int) {
		t.Helper()
		if got := b.pixel(panel, at); got != want {
			t.Errorf("%s: %s at %v: %v, want %v", what, panel, at, got, want)
		}
	}
	for _, d := range []int{-30, -7, 0, 12, 31} {
		same("level 0", "xy", [3]float64{48, 150 + float64(d), 140 - float64(d)}, grey(shade(12, 150+d, 140-d)))
		same("level 0", "yz", [3]float64{48 + 4*float64(d/8), 150 + float64(d), 140}, grey(shade(12+d/8, 150+d, 140)))
		same("level 0", "xz", [3]float64{48 + 4*float64(d/8), 150, 140 + float64(d)}, grey(shade(12+d/8, 150, 140+d)))
	}
	b.shot("cuts")
	if value[bool](b, "document.getElementById('place').offsetHeight > 0") {
		t.Error("without an overlay the page offers to move it")
	}

	// Brightness.
	b.do("viewer.state.gamma = 2, viewer.redraw()")
	v := shade(12, 150, 140)
	same("gamma 2", "xy", [3]float64{48, 150, 140}, grey(int(float64(v)*float64(v)/255+0.5)))
	b.do("viewer.state.gamma = 1, viewer.setWindow?.(), viewer.controls.setWindow([100, 200])")
	same("a window", "xy", [3]float64{48, 150, 140}, grey(min(255, max(0, int(float64(v-100)*2.55+0.5)))))
	b.do("viewer.controls.setWindow([0, 255])")
	b.press("m")
	if got := b.pixel("xy", [3]float64{48, 150, 140}); got[0] == got[1] && got[1] == got[2] {
		t.Errorf("other colours are grey: %v", got)
	}
	b.do("document.getElementById('map').value = 'gray', document.getElementById('map').dispatchEvent(new Event('change'))")

	// Mouse: a click places the cross-hair, a drag pans, the wheel goes through the planes and zooms.
	x, y := b.middle("xy")
	b.mouse("mousePressed", x+40, y+80, nil)
	b.mouse("mouseReleased", x+40, y+80, nil)
	b.settle()
	if at := value[[3]float64](b, "viewer.state.at"); at[0] != 48 || at[1] < 169.5 || at[1] > 170.5 || at[2] < 149.5 || at[2] > 150.5 {
		t.Errorf("the cross-hair is at %v, want 48, 170, 150", at)
	}
	b.mouse("mousePressed", x, y, nil)
	for i := range 5 {
		b.mouse("mouseMoved", x+float64(8*(i+1)), y, map[string]any{"buttons": 1})
	}
	b.mouse("mouseReleased", x+40, y, nil)
	b.settle()
	if c := value[[3]float64](b, "viewer.state.centre"); c[2] < 129 || c[2] > 131 || c[1] != 150 {
		t.Errorf("the middle is at %v, want 150, 130", c)
	}
	b.mouse("mouseWheel", x, y, map[string]any{"deltaX": 0, "deltaY": 100})
	for value[float64](b, "viewer.state.at[0]") == 48 {
		time.Sleep(10 * time.Millisecond)
	}
	b.settle()
	if z := value[float64](b, "viewer.state.at[0]"); z != 52 {
		t.Errorf("the wheel went to z = %v, want 52", z)
	}
	same("another plane", "xy", [3]float64{52, 160, 131}, grey(shade(13, 160, 131)))
	b.mouse("mouseWheel", x, y, map[string]any{"deltaX": 0, "deltaY": 100, "modifiers": 2})
	for value[float64](b, "viewer.state.scale") == 0.25 {
		time.Sleep(10 * time.Millisecond)
	}

	// Keys.
	b.press("0")
	if s := value[float64](b, "viewer.state.scale"); s < 0.3 {
		t.Errorf("all of the image is shown with %v µm a pixel", s)
	}
	b.press(",")
	if z := value[float64](b, "viewer.state.at[0]"); z != 48 {
		t.Errorf("the key went to z = %v, want 48", z)
	}
	b.press("1")
	if p := value[string](b, "document.getElementById('panels').dataset.panel"); p != "xy" {
		t.Errorf("panel %s", p)
	}
	b.press("4")

	// A coarser level: the mean of voxels, far out.
	b.do("viewer.state.scale = 2, viewer.state.centre = [48, 150, 140], viewer.redraw()")
	if !strings.Contains(value[string](b, "[...viewer.tiles.cache.keys()].join(' ')"), "level=1&plane=xy") {
		t.Error("level 1 is not asked for")
	}

	// The value below the cross-hair, and the address.
	b.do("viewer.placeAt([48, 150, 140])")
	want := fmt.Sprintf("voxel 12, 150, 140: %d", v)
	for i := 0; !strings.Contains(value[string](b, "document.getElementById('readout').textContent"), want); i++ {
		if i > 200 {
			t.Fatalf("the readout says %q, want %q", value[string](b, "document.getElementById('readout').textContent"), want)
		}
		time.Sleep(20 * time.Millisecond)
	}
	for z, want := range map[float64]int{49.9: 12, 50.1: 13} { // a voxel reaches half its size around its centre
		b.do(fmt.Sprintf("viewer.placeAt([%g, 150, 140])", z))
		b.do("viewer.state.scale = 0.25, viewer.redraw()")
		same("between two planes", "xy", [3]float64{z, 150, 140}, grey(shade(want, 150, 140)))
	}
	b.do("viewer.state.scale = 2, viewer.placeAt([48, 150, 140])")
	for i := 0; !strings.Contains(value[string](b, "location.hash"), "at=48,150,140&centre=48,150,140&scale=2"); i++ {
		if i > 200 {
			t.Fatalf("the address ends in %s", value[string](b, "location.hash"))
		}
		time.Sleep(20 * time.Millisecond)
	}

	// The second image is laid over the first where it lies: 20 µm to the right, so that it ends there.
	b.do("viewer.state.scale = 0.25, viewer.state.overlay = 1, viewer.state.mode = 'difference', viewer.load()")
	second := value[[2]float64](b, "viewer.overlay.window(viewer.state, 0, false)")
	shown := func(v int) int { return int(min(max((float64(v)-second[0])/(second[1]-second[0]), 0), 1)*255 + 0.5) }
	a, c := shade(12, 150, 140), shown(255-shade(12, 150, 120))
	same("difference", "xy", [3]float64{48, 150, 140}, grey(max(a-c, c-a)))
	b.do("viewer.state.mode = 'curtain', viewer.redraw()")
	same("left of the curtain", "xy", [3]float64{48, 150, 130}, grey(shade(12, 150, 130)))
	same("right of the curtain", "xy", [3]float64{48, 150, 150}, grey(shown(255-shade(12, 150, 130))))
	b.do("viewer.state.mode = 'checkerboard', viewer.redraw()")
	squares := map[bool]int{}
	for _, at := range [][2]int{{150, 140}, {150, 156}, {134, 140}, {134, 156}, {166, 124}, {150, 124}} {
		second := value[bool](b, fmt.Sprintf("(() => { const v = viewer.panels[0].view(); return (Math.floor(v.x(%d) / 64) + Math.floor(v.y(%d) / 64)) %% 2 === 1; })()", at[1], at[0]))
		want := shade(12, at[0], at[1])
		if squares[second]++; second {
			want = shown(255 - shade(12, at[0], at[1]-20))
		}
		same("checkerboard", "xy", [3]float64{48, float64(at[0]), float64(at[1])}, grey(want))
	}
	if squares[true] == 0 || squares[false] == 0 {
		t.Errorf("squares of the second image and the first: %v", squares)
	}
	b.shot("checkerboard")
	b.do("viewer.state.mode = 'flicker', viewer.flick = true, viewer.draw()")

	// A telephone.
	b.do("viewer.state.overlay = -1, viewer.load()")
	if err := b.Window(390, 780); err != nil {
		t.Fatal(err)
	}
	b.do("viewer.panel('xz')")
	if w := value[int](b, "document.documentElement.scrollWidth"); w > 390 {
		t.Errorf("at 390 pixels the page is %d wide", w)
	}
	if !value[bool](b, "viewer.panels.find(p => p.plane.name === 'xz').shows() && !viewer.panels[0].shows()") {
		t.Error("another cut is shown")
	}
	b.shot("narrow")
	x, y = b.middle("xz")
	before := value[float64](b, "viewer.state.scale")
	for i, d := range []float64{20, 30, 45, 60, 60} {
		kind := map[int]string{0: "touchStart", 4: "touchEnd"}[i]
		points := []map[string]any{{"x": x - d, "y": y, "id": 0}, {"x": x + d, "y": y, "id": 1}}
		if kind == "" {
			kind = "touchMove"
		} else if i == 4 {
			points = []map[string]any{}
		}
		if err := b.Call("Input.dispatchTouchEvent", map[string]any{"type": kind, "touchPoints": points}, nil); err != nil {
			t.Fatal(err)
		}
	}
	if after := value[float64](b, "viewer.state.scale"); after > before*0.6 {
		t.Errorf("a pinch zooms from %v to %v", before, after)
	}
	b.settle()
	touch := func(kind string, points ...map[string]any) {
		t.Helper()
		if err := b.Call("Input.dispatchTouchEvent", map[string]any{"type": kind, "touchPoints": append([]map[string]any{}, points...)}, nil); err != nil {
			t.Fatal(err)
		}
	}
	point := func(dx float64) map[string]any { return map[string]any{"x": x + dx, "y": y, "id": 0} }
	b.do("viewer.fit()")
	scale, centre := value[float64](b, "viewer.state.scale"), value[[3]float64](b, "viewer.state.centre")
	touch("touchStart", point(30))
	touch("touchEnd")
	b.settle()
	if at := value[[3]float64](b, "viewer.state.at"); at[2] < centre[2]+29*scale || at[2] > centre[2]+31*scale {
		t.Errorf("a tap 30 pixels right of %v is at %v", centre, at)
	}
	touch("touchStart", point(0))
	for d := range 4 {
		touch("touchMove", point(float64(10*(d+1))))
	}
	touch("touchEnd")
	b.settle()
	if now := value[[3]float64](b, "viewer.state.centre"); now[2] > centre[2]-35*scale || now[2] < centre[2]-45*scale {
		t.Errorf("a finger that moves by 40 pixels pans from %v to %v, of %v µm a pixel", centre, now, scale)
	}
	for _, id := range []string{"low", "gamma", "map", "overlay", "mode", "percentiles"} {
		r := value[[2]float64](b, fmt.Sprintf("(() => { const r = document.getElementById('%s').getBoundingClientRect(); return [r.left, r.right]; })()", id))
		if r[0] < 0 || r[1] > 390 || r[0] >= r[1] {
			t.Errorf("at 390 pixels %s reaches from %v to %v", id, r[0], r[1])
		}
	}
}

// Channels that have colours are added up; one that is not ticked is left out.
func TestPageChannels(t *testing.T) {
	const n = 64
	st := create(t, spec{axes: "cyx", shape: []int{2, n, n}, chunks: []int{1, n, n}, codec: "zstd:1"}, func(i int) uint16 { return uint16(i % (n * n) / n * 500 / (1 + i/n/n)) })
	b0, err := st.Get(ctx, "zarr.json", nil, -1)
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(b0, &m); err != nil {
		t.Fatal(err)
	}
	m["attributes"].(map[string]any)["ome"].(map[string]any)["omero"] = map[string]any{"channels": []any{
		map[string]any{"color": "FF0000", "active": true, "label": "one", "window": map[string]any{"min": 0, "max": 65535, "start": 0, "end": 51000}},
		map[string]any{"color": "00FF00", "active": true, "label": "two", "window": map[string]any{"min": 0, "max": 65535, "start": 0, "end": 65535}}}}
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Put(ctx, "zarr.json", text); err != nil {
		t.Fatal(err)
	}
	b, _ := browse(t, viewer(t, 16<<20, st), "#window1=0,25500&cross=off")
	want := func(y int) [3]int { return [3]int{(y*500*255 + 25500) / 51000, (y*250*255 + 12750) / 25500, 0} }
	if got := b.pixel("xy", [3]float64{0, 32, 10}); got != want(32) {
		t.Errorf("two channels: %v, want %v", got, want(32))
	}
	if names := value[string](b, "document.getElementById('channels').textContent"); names != "onetwo" {
		t.Errorf("channels %q", names)
	}
	if said := value[string](b, "document.getElementById('percentiles').value + viewer.main.stated(1)"); said != "statednull" { // the second one's window is the whole range
		t.Errorf("windows that the image states: %s", said)
	}
	b.do("document.querySelectorAll('#channels input')[1].click()")
	if got, g := b.pixel("xy", [3]float64{0, 32, 10}), want(32)[0]; got != [3]int{g, g, g} {
		t.Errorf("one channel: %v, want grey of %d", got, g)
	}
	b.shot("channels")
}
