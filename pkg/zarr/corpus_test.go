package zarr_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"strata/pkg/zarr"
	"strata/pkg/zarr/store"
	"strata/tests/corpus"
)

func TestMain(m *testing.M) { corpus.Main(m) }

// what one case may cost: the largest arrays of the corpus have 264 KiB. Time is
// the processor's, so that a busy machine fails nothing.
const (
	caseTime  = time.Second
	caseBytes = 32 << 20
)

// TestCorpus reads all cases of the corpus as far as Zarr goes; the rules of
// OME-Zarr are package ngff's.
func TestCorpus(t *testing.T) {
	for _, c := range corpus.Cases(t) {
		t.Run(c.ID, func(t *testing.T) {
			dir := c.Dir(t)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			start := processorTime(t)
			switch c.Kind {
			case "array":
				testArrayCase(t, c, dir)
			case "group":
				testGroupCase(t, c, dir)
			case "ome-image", "ome-plate":
				testOMECase(t, c, dir)
			default:
				t.Fatalf("unknown kind %q", c.Kind)
			}
			if d := processorTime(t) - start; d > caseTime {
				t.Errorf("took %v", d)
			}
			runtime.ReadMemStats(&after)
			if n := after.TotalAlloc - before.TotalAlloc; n > caseBytes {
				t.Errorf("allocated %d bytes", n)
			}
		})
	}
}

// processorTime is what the process has used so far.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// readAll opens and reads an array, or the region of it that the case asks for.
// stage says how far it got.
func readAll(t *testing.T, c corpus.Case, st store.Store) (data []byte, stage string, err error) {
	ctx := t.Context()
	a, err := zarr.OpenArray(ctx, st, "")
	if err != nil {
		return nil, "open", err
	}
	defer a.Close()
	r := a.Bounds()
	for d, x := range c.ExpectedRegion {
		r.Start[d], r.Shape[d] = x[0], x[1]-x[0]
	}
	n := a.DType().Size()
	for _, s := range r.Shape {
		if n *= s; n > 1<<24 {
			n = 1 << 24 // not what the array says: Read has to refuse it
			break
		}
	}
	data = make([]byte, n)
	return data, "read", a.Read(ctx, r, data)
}

func testArrayCase(t *testing.T, c corpus.Case, dir string) {
	st := store.Folder(dir)
	data, stage, err := readAll(t, c, st)
	switch c.Must {
	case "read", "accept":
		if err != nil {
			t.Fatalf("%s: %v", stage, err)
		}
		a, err := zarr.OpenArray(t.Context(), st, "")
		if err != nil {
			t.Fatal(err)
		}
		want := corpus.Npy(t, c.Expected)
		if c.Shape != nil && !slices.Equal(a.Shape(), c.Shape) {
			t.Errorf("shape %v, want %v", a.Shape(), c.Shape)
		}
		if a.DType() != want.DType {
			t.Errorf("data type %v, want %v", a.DType(), want.DType)
		}
		if d := want.Diff(data); d != "" {
			t.Error(d)
		}
		testParts(t, a, want)
	case "reject":
		if err == nil {
			t.Fatalf("was accepted: %s", c.Behaviour)
		}
		if c.Stage == "open" && stage != "open" {
			t.Errorf("failed at %s, want open: %v", stage, err)
		}
		if c.Stage == "read" && stage == "open" {
			t.Errorf("failed at open, want read: %v", err)
		}
		if !strings.Contains(err.Error(), dir) {
			t.Errorf("error does not name the file: %v", err)
		}
		if stage == "read" && c.Stage == "read" && !strings.Contains(err.Error(), "/c/0/0") && !strings.Contains(err.Error(), "/c/1/0") &&
			!strings.Contains(err.Error(), "/0.0") && !strings.Contains(err.Error(), "/1.0") {
			t.Errorf("error does not name the chunk: %v", err)
		}
		if strings.ContainsAny(err.Error(), "\n\x00") {
			t.Errorf("error is not one line: %q", err)
		}
		var fe *zarr.FormatError
		if !errors.As(err, &fe) && c.ID != "neg/chunk_is_directory" {
			t.Errorf("not a FormatError: %v", err)
		}
	case "either":
		t.Logf("%s: %v", stage, err)
		if err == nil && c.Expected != "" {
			if d := corpus.Npy(t, c.Expected).Diff(data); d != "" {
				t.Errorf("read, but wrong: %s", d)
			}
		}
		if c.Stage == "read-full" && stage == "read" {
			if err == nil {
				t.Fatal("the full read was accepted")
			}
			a, err := zarr.OpenArray(t.Context(), st, "")
			if err != nil {
				t.Fatal(err)
			}
			r := a.Bounds()
			n := a.DType().Size()
			for d := range r.Shape {
				r.Shape[d] = min(r.Shape[d], 8)
				n *= r.Shape[d]
			}
			if err := a.Read(t.Context(), r, make([]byte, n)); err != nil {
				t.Errorf("small read: %v", err)
			}
		}
	}
}

// testParts reads some regions of an array and compares them with the whole.
func testParts(t *testing.T, a *zarr.Array, want corpus.Array) {
	size := want.DType.Size()
	for part := range 3 {
		r := a.Bounds()
		n := size
		for d, l := range r.Shape {
			switch {
			case l < 3:
			case part == 0:
				r.Start[d], r.Shape[d] = 1, l-2
			case part == 1:
				r.Start[d], r.Shape[d] = l/2, 1
			default:
				r.Start[d], r.Shape[d] = l-2, 2
			}
			n *= r.Shape[d]
		}
		got := make([]byte, n)
		if err := a.Read(t.Context(), r, got); err != nil {
			t.Fatalf("%v: %v", r, err)
		}
		sub := corpus.Array{DType: want.DType, Shape: r.Shape, Data: cut(want.Data, want.Shape, r, size)}
		if d := sub.Diff(got); d != "" {
			t.Errorf("%v: %s", r, d)
		}
	}
}

// cut returns a region of C-ordered elements.
func cut(data []byte, shape []int, r zarr.Region, size int) []byte {
	var out []byte
	at := make([]int, len(shape))
	for {
		off := 0
		for d := range shape {
			if r.Shape[d] == 0 {
				return nil
			}
			off = off*shape[d] + r.Start[d] + at[d]
		}
		out = append(out, data[off*size:(off+1)*size]...)
		d := len(shape) - 1
		for ; d >= 0; d-- {
			if at[d]++; at[d] < r.Shape[d] {
				break
			}
			at[d] = 0
		}
		if d < 0 {
			return out
		}
	}
}

func testGroupCase(t *testing.T, c corpus.Case, dir string) {
	ctx := t.Context()
	g, err := zarr.OpenGroup(ctx, store.Folder(dir), "")
	if err != nil {
		if c.Must == "read" {
			t.Fatal(err)
		}
		if !strings.Contains(err.Error(), dir) {
			t.Errorf("error does not name the file: %v", err)
		}
		return
	}
	if c.Must == "reject" {
		t.Fatalf("was accepted: %s", c.Behaviour)
	}
	var members []string
	if err := walkGroup(ctx, g, "", func(path string, n zarr.Node) { members = append(members, path) }); err != nil {
		if c.Must == "read" {
			t.Fatal(err)
		}
		return
	}
	if c.Must != "read" {
		return
	}
	slices.Sort(members)
	if want := slices.Sorted(slices.Values(c.Members)); !slices.Equal(members, want) {
		t.Errorf("members %v, want %v", members, want)
	}
	for path, npy := range c.Arrays {
		checkArrayAt(t, g, path, npy)
	}
	for path, want := range c.Attributes {
		n := zarr.Node(g)
		if path != "" {
			if n, err = g.Open(ctx, path); err != nil {
				t.Fatal(err)
			}
		}
		for k, w := range want {
			var x, y any
			if json.Unmarshal(w, &x) != nil || json.Unmarshal(n.Attributes()[k], &y) != nil || !reflect.DeepEqual(x, y) {
				t.Errorf("%q: attribute %s is %s, want %s", path, k, n.Attributes()[k], w)
			}
		}
	}
}

func checkArrayAt(t *testing.T, g *zarr.Group, path, npy string) {
	t.Helper()
	a, err := g.Array(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	want := corpus.Npy(t, npy)
	if !slices.Equal(a.Shape(), want.Shape) {
		t.Fatalf("%s: shape %v, want %v", path, a.Shape(), want.Shape)
	}
	got := make([]byte, len(want.Data))
	if err := a.Read(t.Context(), a.Bounds(), got); err != nil {
		t.Fatal(err)
	}
	if d := want.Diff(got); d != "" {
		t.Errorf("%s: %s", path, d)
	}
}

func walkGroup(ctx context.Context, g *zarr.Group, rel string, visit func(string, zarr.Node)) error {
	names, err := g.Children(ctx)
	if err != nil {
		return err
	}
	for _, name := range names {
		n, err := g.Open(ctx, name)
		if err != nil {
			return err
		}
		visit(store.Join(rel, name), n)
		if sub, ok := n.(*zarr.Group); ok {
			if err := walkGroup(ctx, sub, store.Join(rel, name), visit); err != nil {
				return err
			}
		}
	}
	return nil
}

func testOMECase(t *testing.T, c corpus.Case, dir string) {
	g, err := zarr.OpenGroup(t.Context(), store.Folder(dir), "")
	if err != nil {
		t.Fatal(err) // also broken OME metadata is plain attributes
	}
	if c.Must != "read" {
		if len(g.Attributes()) == 0 {
			t.Error("no attributes")
		}
		return
	}
	for _, d := range c.Datasets {
		checkArrayAt(t, g, d.Path, d.Expected)
	}
	for _, path := range slices.Sorted(maps.Keys(c.Images)) {
		checkArrayAt(t, g, path, c.Images[path])
	}
}

// An array of 2^80 bytes in one chunk costs nothing to look at.
func TestHugeChunkIsNotAllocated(t *testing.T) {
	dir := t.TempDir()
	for _, codecs := range []string{
		`{"name":"bytes","configuration":{"endian":"little"}}`,
		`{"name":"bytes","configuration":{"endian":"little"}},{"name":"zstd","configuration":{"level":1,"checksum":false}}`,
		`{"name":"bytes","configuration":{"endian":"little"}},{"name":"blosc","configuration":{"typesize":4,"cname":"lz4","clevel":5,"shuffle":"shuffle","blocksize":0}},{"name":"crc32c"}`,
		`{"name":"sharding_indexed","configuration":{"chunk_shape":[1048576],"codecs":[{"name":"bytes","configuration":{"endian":"little"}}],"index_codecs":[{"name":"bytes","configuration":{"endian":"little"}}]}},{"name":"crc32c"}`,
	} {
		for _, size := range []string{"1073741824", "1099511627776", "1152921504606846976"} {
			doc := `{"zarr_format":3,"node_type":"array","shape":[8],"data_type":"int32","chunk_grid":{"name":"regular","configuration":{"chunk_shape":[` + size +
				`]}},"chunk_key_encoding":"default","fill_value":0,"codecs":[` + codecs + `]}`
			if err := os.WriteFile(dir+"/zarr.json", []byte(doc), 0o666); err != nil {
				t.Fatal(err)
			}
			if err := os.MkdirAll(dir+"/c", 0o777); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(dir+"/c/0", make([]byte, 100), 0o666); err != nil {
				t.Fatal(err)
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			a, err := zarr.OpenArray(t.Context(), store.Folder(dir), "")
			if err == nil {
				err = a.Read(t.Context(), a.Bounds(), make([]byte, 32))
				a.Close()
			}
			runtime.ReadMemStats(&after)
			if err == nil {
				t.Errorf("chunk of %s elements, %s: read from 100 bytes", size, codecs)
			}
			if n := after.TotalAlloc - before.TotalAlloc; n > 4<<20 {
				t.Errorf("chunk of %s elements, %s: allocated %d bytes: %v", size, codecs, n, err)
			}
		}
	}
}
