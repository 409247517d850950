package view

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"strata/pkg/dtype"
	"strata/pkg/ngff"
	"strata/pkg/zarr/codec"
	"strata/pkg/zarr/store"
)

var ctx = context.Background()

// spec is an image for tests: axes by their letters, µm.
type spec struct {
	axes          string
	shape, chunks []int
	scale         []float64
	shift         []float64
	codec         string
	levels        int
}

// create writes an image whose voxels are f(index in C order).
func create[T dtype.Element](t testing.TB, s spec, f func(i int) T) store.Writer {
	t.Helper()
	st := store.Memory()
	chain, err := codec.FromFlag(s.codec, dtype.Of[T](), 3)
	if err != nil {
		t.Fatal(err)
	}
	if s.scale == nil {
		s.scale = slices.Repeat([]float64{1}, len(s.shape))
	}
	w, err := ngff.Create(ctx, st, "", ngff.ImageSpec{Shape: s.shape, Chunks: s.chunks, DType: dtype.Of[T](), Codecs: chain,
		Axes: ngff.SpaceAxes(s.axes, "micrometer"), Scale: s.scale, Translation: s.shift, Levels: s.levels})
	if err != nil {
		t.Fatal(err)
	}
	n := 1
	for _, k := range s.shape {
		n *= k
	}
	v := make([]T, n)
	for i := range v {
		v[i] = f(i)
	}
	if err := w.WriteTile(ctx, make([]int, len(s.shape)), s.shape, dtype.Bytes(v)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(ctx); err != nil {
		t.Fatal(err)
	}
	return st
}

const token = "0123456789abcdef"

// viewer shows the images of some stores.
func viewer(t testing.TB, memory int64, stores ...store.Store) *Viewer {
	t.Helper()
	o := Options{Overlay: -1, Mem: memory, Workers: 2, Token: token, Title: "test", Origins: []string{"https://example.org"}}
	for i := range stores {
		o.Entries = append(o.Entries, Entry{Path: fmt.Sprint(i), Name: fmt.Sprint("image ", i)})
	}
	o.Open = func(ctx context.Context, path string) (*ngff.Image, error) {
		var i int
		_, _ = fmt.Sscan(path, &i)
		return ngff.OpenPresent(ctx, stores[i], "")
	}
	v := New(o)
	t.Cleanup(v.Close)
	return v
}

// get asks for an address behind the token.
func get(t testing.TB, v http.Handler, address string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, "http://127.0.0.1:1/"+token+address, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	v.ServeHTTP(w, r)
	return w
}

// body is the answer to a request that must succeed.
func body(t testing.TB, v http.Handler, address string) []byte {
	t.Helper()
	w := get(t, v, address)
	if w.Code != http.StatusOK {
		t.Fatalf("%s: %d %s", address, w.Code, w.Body)
	}
	return w.Body.Bytes()
}

// elements are those of a tile, of which a single one stands for all.
func elements[T dtype.Element](t testing.TB, v http.Handler, address string, n int) []T {
	t.Helper()
	list := dtype.Slice[T](bytes.Clone(body(t, v, address)))
	if len(list) == 1 {
		list = slices.Repeat(list, n)
	}
	if len(list) != n {
		t.Fatalf("%s: %d elements, want %d", address, len(list), n)
	}
	return list
}

// Every voxel of tiles of the three cuts is the one of the image, whatever the order of its axes, its chunks and the
// memory that there is: chunks that are too large to be kept are read in part.
func TestTiles(t *testing.T) {
	const nz, ny, nx = 9, 300, 270
	value := func(c, z, y, x int) uint16 { return uint16(c*30000 + z*3001 + y*7 + x*13) }
	for _, s := range []spec{
		{axes: "zyx", shape: []int{nz, ny, nx}, chunks: []int{4, 64, 100}, codec: "zstd:1"},
		{axes: "zyx", shape: []int{nz, ny, nx}, chunks: []int{2, 300, 64}, codec: "raw"},
		{axes: "zyx", shape: []int{nz, ny, nx}, chunks: []int{nz, ny, nx}, codec: "zstd:1"},
		{axes: "xyz", shape: []int{nx, ny, nz}, chunks: []int{70, 33, 9}, codec: "zstd:1"},
		{axes: "tczyx", shape: []int{1, 2, nz, ny, nx}, chunks: []int{1, 2, 3, 128, 128}, codec: "blosc-zstd:1"},
		{axes: "tczyx", shape: []int{1, 2, nz, ny, nx}, chunks: []int{1, 1, 3, 128, 128}, codec: "zstd:1"},
	} {
		st := create(t, s, func(i int) uint16 {
			if s.axes == "xyz" {
				return value(0, i%nz, i/nz%ny, i/nz/ny)
			}
			return value(i/nx/ny/nz, i/ny/nx%nz, i/nx%ny, i%nx)
		})
		for _, memory := range []int64{64 << 20, 16 << 20} {
			v := viewer(t, memory, st)
			for _, c := range []int{0, 1} {
				other := ""
				if len(s.axes) == 5 {
					other = fmt.Sprintf("&other=0,%d", c)
				} else if c > 0 {
					continue
				}
				at := map[string]int{"xy": 5, "xz": 299, "yz": 101}
				rows := map[string]int{"xy": ny, "xz": nz, "yz": ny}
				cols := map[string]int{"xy": nx, "xz": nx, "yz": nz}
				for plane, k := range at {
					for row := range (rows[plane] + tileSide - 1) / tileSide {
						for col := range (cols[plane] + tileSide - 1) / tileSide {
							h, w := min(tileSide, rows[plane]-row*tileSide), min(tileSide, cols[plane]-col*tileSide)
							got := elements[uint16](t, v, fmt.Sprintf("/api/images/0/tile?level=0&plane=%s&at=%d&row=%d&col=%d%s", plane, k, row, col, other), h*w)
							for i := range got {
								a, b := row*tileSide+i/w, col*tileSide+i%w
								want := map[string]uint16{"xy": value(c, k, a, b), "xz": value(c, a, k, b), "yz": value(c, b, a, k)}[plane]
								if got[i] != want {
									t.Fatalf("%s %v, %d bytes, channel %d: %s at %d, (%d, %d): %d, want %d", s.axes, s.chunks, memory, c, plane, k, a, b, got[i], want)
								}
							}
						}
					}
				}
			}
		}
	}
}

// Chunks that are not stored have the fill value, and a tile without any stored voxel is one element. Levels are
// those of the image.
func TestMissingAndLevels(t *testing.T) {
	st := create(t, spec{axes: "zyx", shape: []int{8, 64, 64}, chunks: []int{8, 32, 32}, codec: "zstd:1", levels: 2}, func(i int) uint8 { return uint8(1 + i%7) })
	for _, key := range []string{"0/c/0/0/1", "1/c/0/0/0"} {
		if err := st.Delete(ctx, key); err != nil {
			t.Fatal(err)
		}
	}
	v := viewer(t, 16<<20, st)
	got := elements[uint8](t, v, "/api/images/0/tile?level=0&plane=xy&at=3&row=0&col=0", 64*64)
	for i, g := range got {
		want := uint8(1 + (3*64*64+i)%7)
		if i/64 < 32 && i%64 >= 32 {
			want = 0
		}
		if g != want {
			t.Fatalf("voxel %d: %d, want %d", i, g, want)
		}
	}
	if b := body(t, v, "/api/images/0/tile?level=1&plane=xz&at=1&row=0&col=0"); !bytes.Equal(b, []byte{0}) {
		t.Errorf("an empty tile has %d bytes", len(b))
	}
	var d Description
	if err := json.Unmarshal(body(t, v, "/api/images/0"), &d); err != nil {
		t.Fatal(err)
	}
	if len(d.Levels) != 3 || d.Levels[1].Shape != [3]int{4, 32, 32} || d.Levels[1].Size != [3]float64{2, 2, 2} || d.Levels[1].Origin != [3]float64{0.5, 0.5, 0.5} {
		t.Errorf("levels: %+v", d.Levels)
	}
	var s Statistics
	if err := json.Unmarshal(body(t, v, "/api/images/0/statistics"), &s); err != nil {
		t.Fatal(err)
	}
	total := 0
	for _, n := range s.Histogram {
		total += n
	}
	if s.Voxels != 8*64*64 || total != s.Voxels || len(s.Quantiles) != 1001 || s.Quantiles[0] != 0 || s.Quantiles[1000] != 7 {
		t.Errorf("statistics of %d voxels, %d in the histogram, %v to %v", s.Voxels, total, s.Quantiles[0], s.Quantiles[1000])
	}
}

// Values are those of level 0 in full precision, where the metadata put them.
func TestValue(t *testing.T) {
	st := create(t, spec{axes: "zyx", shape: []int{2, 3, 4}, chunks: []int{2, 2, 2}, codec: "zstd:1", scale: []float64{10, 2, 0.5}, shift: []float64{5, 7, 9}},
		func(i int) int64 { return 1<<60 + int64(i) })
	got := string(body(t, viewer(t, 1<<20, st), "/api/images/0/value?z=1&y=2&x=3"))
	if want := fmt.Sprintf(`{"um":[15,11,10.5],"value":"%d"}`, 1<<60+23); strings.TrimSpace(got) != want {
		t.Errorf("%s, want %s", got, want)
	}
	for _, c := range []struct {
		b    []byte
		t    dtype.Type
		want string
	}{
		{dtype.Bytes([]float32{0.1}), dtype.Float32, "0.1"}, {dtype.Bytes([]float64{0.1}), dtype.Float64, "0.1"},
		{dtype.Bytes([]uint32{4294967295}), dtype.Uint32, "4294967295"}, {[]byte{1}, dtype.Bool, "1"},
	} {
		if got := format(c.b, c.t); got != c.want {
			t.Errorf("%v: %s, want %s", c.t, got, c.want)
		}
	}
}

// What is not there, and what no page asks for, is refused in one line.
func TestHostileRequests(t *testing.T) {
	st := create(t, spec{axes: "czyx", shape: []int{2, 4, 8, 8}, chunks: []int{1, 4, 8, 8}, codec: "zstd:1"}, func(i int) uint8 { return uint8(i) })
	v := viewer(t, 1<<20, st)
	for _, c := range []struct {
		address, says string
		code          int
	}{
		{"/api/images/0/tile?level=0&plane=xy&at=1&row=0&col=0&other=1", "", 200},
		{"/api/images/1", "image 1", 404},
		{"/api/images/-1", "image -1", 404},
		{"/api/images/x", "want a number", 400},
		{"/api/images/0/tile?level=9&plane=xy&at=1&row=0&col=0&other=1", "level 9: want 0 to 0", 400},
		{"/api/images/0/tile?level=-1&plane=xy&at=1&row=0&col=0&other=1", "level -1", 400},
		{"/api/images/0/tile?level=0&plane=zz&at=1&row=0&col=0&other=1", "want xy, xz or yz", 400},
		{"/api/images/0/tile?level=0&plane=xy&at=4&row=0&col=0&other=1", "at 4: want 0 to 3", 400},
		{"/api/images/0/tile?level=0&plane=xy&at=1&row=9223372036854775807&col=0&other=1", "want 0 to 0", 400},
		{"/api/images/0/tile?level=0&plane=xy&at=1&row=99999999999999999999&col=0&other=1", "want a whole number", 400},
		{"/api/images/0/tile?level=0&plane=xy&at=1&row=0&col=-1&other=1", "col of the tile -1", 400},
		{"/api/images/0/tile?level=0&plane=xy&at=1&row=0&col=0", "other has 0 indices", 400},
		{"/api/images/0/tile?level=0&plane=xy&at=1&row=0&col=0&other=2", "along c: want 0 to 1", 400},
		{"/api/images/0/tile?level=0&plane=xy&at=1&row=0&col=0&other=a", "whole numbers", 400},
		{"/api/images/0/value?z=0&y=8&x=0&other=0", "y = 8: want 0 to 7", 400},
		{"/api/images/0/value?z=0&y=0&other=0", "want a whole number", 400},
		{"/api/images/0/statistics?other=-1", "along c", 400},
		{"/zarr/0/zarr.json", "", 200},
		{"/zarr/0.ome.zarr/zarr.json", "", 200},
		{"/zarr/0.zarr/zarr.json", "", 400},
		{"/zarr/0/none.json", "", 404},
		{"/zarr/0/0", "", 404},
		{"/zarr/0/", "", 404},
		{"/zarr/0/..%2f..%2fetc/passwd", "", 404},
		{"/zarr/0//zarr.json", "", 404},
		{"/zarr/0/a%00b", "", 400},
		{"/pages/0", "no such page", 404},
		{"/nowhere", "", 404},
		{"", "", 301},
		{"/", "", 200},
	} {
		w := get(t, v, c.address)
		if w.Code != c.code || !strings.Contains(w.Body.String(), c.says) || c.code != 200 && strings.Count(w.Body.String(), "\n") > 3 {
			t.Errorf("%s: %d %q, want %d %q", c.address, w.Code, w.Body, c.code, c.says)
		}
	}
}

// Only who knows the token is answered, under a name of this machine, and no page from elsewhere; an origin that is
// allowed reads what is stored, and nothing else.
func TestWhoIsAnswered(t *testing.T) {
	st := create(t, spec{axes: "yx", shape: []int{8, 8}, chunks: []int{8, 8}, codec: "zstd:1"}, func(i int) uint8 { return uint8(i) })
	v := viewer(t, 1<<20, st)
	for _, c := range []struct {
		what, method, url, header string
		code                      int
	}{
		{"the page", "GET", "http://127.0.0.1:1/" + token + "/", "", 200},
		{"through a tunnel", "GET", "http://localhost:9/" + token + "/", "", 200},
		{"the page's own requests", "GET", "http://127.0.0.1:1/" + token + "/api/view", "Origin: http://127.0.0.1:1", 200},
		{"no token", "GET", "http://127.0.0.1:1/api/view", "", 404},
		{"half a token", "GET", "http://127.0.0.1:1/" + token[:8] + "/api/view", "", 404},
		{"another token", "GET", "http://127.0.0.1:1/" + strings.ToUpper(token) + "/api/view", "", 404},
		{"a name that was made up", "GET", "http://evil.example:1/" + token + "/", "", 403},
		{"another origin", "GET", "http://127.0.0.1:1/" + token + "/api/view", "Origin: https://evil.example", 403},
		{"another port", "GET", "http://127.0.0.1:1/" + token + "/zarr/0/zarr.json", "Origin: http://127.0.0.1:2", 403},
		{"no origin at all", "GET", "http://127.0.0.1:1/" + token + "/zarr/0/zarr.json", "Origin: null", 403},
		{"a picture in another page", "GET", "http://127.0.0.1:1/" + token + "/api/view", "Sec-Fetch-Site: cross-site", 403},
		{"a picture in a page at another port", "GET", "http://127.0.0.1:1/" + token + "/zarr/0/zarr.json", "Sec-Fetch-Site: same-site", 403},
		{"a link in another page", "GET", "http://127.0.0.1:1/" + token + "/", "Sec-Fetch-Site: none", 200},
		{"writing", "POST", "http://127.0.0.1:1/" + token + "/api/view", "", 405},
		{"an allowed origin", "GET", "http://127.0.0.1:1/" + token + "/zarr/0/zarr.json", "Origin: https://example.org", 200},
		{"its preflight", "OPTIONS", "http://127.0.0.1:1/" + token + "/zarr/0/zarr.json", "Origin: https://example.org", 204},
		{"its tiles", "GET", "http://127.0.0.1:1/" + token + "/api/view", "Origin: https://example.org", 403},
		{"its writing", "PUT", "http://127.0.0.1:1/" + token + "/zarr/0/zarr.json", "Origin: https://example.org", 405},
	} {
		r := httptest.NewRequest(c.method, c.url, nil)
		if name, value, ok := strings.Cut(c.header, ": "); ok {
			r.Header.Set(name, value)
		}
		w := httptest.NewRecorder()
		v.ServeHTTP(w, r)
		if w.Code != c.code {
			t.Errorf("%s: %d, want %d", c.what, w.Code, c.code)
		}
		got, want := w.Header().Get("Access-Control-Allow-Origin"), ""
		if strings.Contains(c.header, "example.org") && !strings.Contains(c.url, "/api/") {
			want = "https://example.org"
		}
		if got != want {
			t.Errorf("%s: allowed to %q, want %q", c.what, got, want)
		}
	}
}

// Objects come byte by byte as they are stored, whole and in ranges.
func TestStored(t *testing.T) {
	st := create(t, spec{axes: "yx", shape: []int{64, 64}, chunks: []int{64, 64}, codec: "raw"}, func(i int) uint8 { return uint8(i / 3) })
	v := viewer(t, 1<<20, st)
	want, err := st.Get(ctx, "0/c/0/0", nil, -1)
	if err != nil {
		t.Fatal(err)
	}
	if got := body(t, v, "/zarr/0/0/c/0/0"); !bytes.Equal(got, want) {
		t.Error("the chunk is another one")
	}
	for value, part := range map[string][]byte{"bytes=10-19": want[10:20], "bytes=-5": want[len(want)-5:], "bytes=4000-9999": want[4000:]} {
		if w := get(t, v, "/zarr/0/0/c/0/0", "Range", value); w.Code != http.StatusPartialContent || !bytes.Equal(w.Body.Bytes(), part) {
			t.Errorf("%s: %d, %d bytes", value, w.Code, w.Body.Len())
		}
	}
	if w := get(t, v, "/zarr/0/0/c/0/0", "Range", "bytes=5000-"); w.Code != http.StatusRequestedRangeNotSatisfiable {
		t.Errorf("behind the end: %d", w.Code)
	}
}

// slow is a store whose chunks come when they may, or never.
type slow struct {
	store.Store
	asked chan string
	may   chan struct{}
}

func (s *slow) Open(ctx context.Context, key string) (store.Object, error) {
	return s.Store.Open(ctx, key)
}

func (s *slow) Get(ctx context.Context, key string, dst []byte, limit int64) ([]byte, error) {
	if strings.Contains(key, "/c/") {
		s.asked <- key
		select {
		case <-s.may:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	return s.Store.Get(ctx, key, dst, limit)
}

// A request that the browser gives up ends, and so does the work for it; one for the same chunk goes on. Both decode
// it once.
func TestGivenUp(t *testing.T) {
	st := &slow{create(t, spec{axes: "yx", shape: []int{64, 64}, chunks: []int{64, 64}, codec: "zstd:1"}, func(i int) uint8 { return uint8(i) }), make(chan string, 10), make(chan struct{})}
	v := viewer(t, 1<<20, st)
	ask := func(ctx context.Context) chan int {
		code := make(chan int, 1)
		go func() {
			r := httptest.NewRequest(http.MethodGet, "http://127.0.0.1:1/"+token+"/api/images/0/tile?level=0&plane=xy&at=0&row=0&col=0", nil).WithContext(ctx)
			w := httptest.NewRecorder()
			v.ServeHTTP(w, r)
			code <- w.Code*10000 + w.Body.Len()
		}()
		return code
	}
	first, cancel := context.WithCancel(ctx)
	a := ask(first)
	<-st.asked
	b := ask(ctx)
	for v.users() != 2 {
		time.Sleep(time.Millisecond)
	}
	cancel()
	if got := <-a; got != 200*10000 { // nothing is written
		t.Errorf("the one that was given up: %d", got)
	}
	close(st.may)
	if got := <-b; got != 200*10000+64*64 {
		t.Errorf("the other: %d", got)
	}
	if len(st.asked) != 0 {
		t.Error("the chunk was read twice")
	}
	// Nobody waits any more: the read ends without the store's help.
	st.may = make(chan struct{})
	v.blocks.mu.Lock()
	v.blocks.forget(v.blocks.idle.Back().Value.(*block))
	v.blocks.mu.Unlock()
	second, cancel := context.WithCancel(ctx)
	c := ask(second)
	<-st.asked
	cancel()
	<-c
	v.blocks.running.Wait()
}

// users counts the requests that use a block.
func (v *Viewer) users() (n int) {
	v.blocks.mu.Lock()
	defer v.blocks.mu.Unlock()
	for _, b := range v.blocks.all {
		n += b.users
	}
	return n
}

// The memory for decoded chunks stays within the budget, and all of it is given back.
func TestMemory(t *testing.T) {
	const n = 512
	st := create(t, spec{axes: "zyx", shape: []int{16, n, n}, chunks: []int{4, 64, 64}, codec: "zstd:1"}, func(i int) uint16 { return uint16(i * 31) })
	v := viewer(t, 4<<20, st)
	for z := range 16 {
		for i := range 4 {
			body(t, v, fmt.Sprintf("/api/images/0/tile?level=0&plane=xy&at=%d&row=%d&col=%d", z, i/2, i%2))
		}
	}
	if peak := v.blocks.pool.Peak(); peak > 2<<20 || peak < 1<<20 {
		t.Errorf("decoded chunks took %d bytes, 2 MiB are granted", peak)
	}
	if n := v.users(); n != 0 {
		t.Errorf("%d blocks are still in use", n)
	}
}

// Serve ends when its context does, also while a request works.
func TestServeEnds(t *testing.T) {
	st := &slow{create(t, spec{axes: "yx", shape: []int{64, 64}, chunks: []int{64, 64}, codec: "zstd:1"}, func(i int) uint8 { return uint8(i) }), make(chan string, 1), make(chan struct{})}
	o := Options{Entries: []Entry{{Path: "0", Name: "0"}}, Overlay: -1, Mem: 1 << 20, Workers: 1, Token: token,
		Open: func(ctx context.Context, _ string) (*ngff.Image, error) { return ngff.Open(ctx, st, "") }}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	running, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- New(o).Serve(running, l) }()
	go func() {
		r, err := http.Get("http://" + l.Addr().String() + "/" + token + "/api/images/0/tile?level=0&plane=xy&at=0&row=0&col=0")
		if err == nil {
			_, _ = io.Copy(io.Discard, r.Body)
			r.Body.Close()
		}
	}()
	<-st.asked
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// A folder is searched for images and reports, its hidden folders and the insides of images are not.
func TestFind(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"slices/b.ome.zarr/zarr.json", "slices/a.ome.zarr/0/zarr.json", "slices/a.ome.zarr/.zattrs", "slices/a.ome.zarr/.zgroup",
		"volume/v.zarr.zip", "report.html", ".work/c.ome.zarr/zarr.json", "notes.txt", "x/y/z/deep.ome.zarr/zarr.json"} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte("{}"), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "scan.tif"), []byte("II*\x00\x08\x00\x00\x00"), 0o644); err != nil {
		t.Fatal(err)
	}
	collection := `{"zarr_format":3,"node_type":"group","attributes":{"ome":{"version":"0.5","bioformats2raw.layout":3}}}`
	series := `{"zarr_format":3,"node_type":"group","attributes":{"ome":{"version":"0.5","series":["0","10","2"]}}}`
	for name, text := range map[string]string{"scenes.zarr/zarr.json": collection, "scenes.zarr/OME/zarr.json": series, "plain.zarr/zarr.json": collection,
		"plain.zarr/10/zarr.json": series, "plain.zarr/9/zarr.json": series} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	local, err := OpenLocal(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer local.Close()
	folder := &Folder{Store: local, Place: func(key string) string { return "at " + key }, IsImage: func(key string) bool { return key == "scan.tif" }, Pages: true}
	list, more, err := folder.Find(ctx, 2, 100)
	if err != nil || more {
		t.Fatal(list, more, err)
	}
	var names []string
	for _, e := range list {
		names = append(names, e.Name)
		if e.Path != "at "+e.Name || e.Page != (e.Name == "report.html") || e.In != local || e.Key != e.Name {
			t.Errorf("%+v", e)
		}
	}
	if want := []string{"plain.zarr/9", "plain.zarr/10", "report.html", "scan.tif", "scenes.zarr/0", "scenes.zarr/10", "scenes.zarr/2", "slices/a.ome.zarr", "slices/b.ome.zarr", "volume/v.zarr.zip"}; !slices.Equal(names, want) {
		t.Errorf("%q, want %q", names, want)
	}
	folder.Pages = false
	if list, more, err := folder.Find(ctx, 2, 3); err != nil || !more || len(list) != 3 {
		t.Error(list, more, err)
	}
}
