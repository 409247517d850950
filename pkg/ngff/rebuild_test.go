package ngff

import (
	"errors"
	"io/fs"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"strata/pkg/dtype"
	"strata/pkg/zarr"
	"strata/pkg/zarr/store"
	"strata/tests/corpus"
)

// copyStore copies all objects below a prefix.
func copyStore(t *testing.T, dst store.Writer, src store.Store, prefix string) {
	t.Helper()
	entries, err := src.List(t.Context(), prefix)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		key := store.Join(prefix, e.Name)
		if e.Dir {
			copyStore(t, dst, src, key)
			continue
		}
		b, err := src.Get(t.Context(), key, nil, -1)
		if err == nil {
			err = dst.Put(t.Context(), key, b)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// objects counts what lies below a prefix; folders without anything do not.
func objects(t *testing.T, st store.Store, prefix string) (n int) {
	t.Helper()
	entries, err := st.List(t.Context(), prefix)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Dir {
			n += objects(t, st, store.Join(prefix, e.Name))
		} else {
			n++
		}
	}
	return n
}

func readAll(t *testing.T, a *zarr.Array) []byte {
	t.Helper()
	b := make([]byte, padded(a.Shape(), 1).volume()*a.DType().Size())
	if err := a.Read(t.Context(), a.Bounds(), b); err != nil {
		t.Fatal(err)
	}
	return b
}

// Images of other programs get the pyramid that the model makes of their level
// 0, under the names they had, and keep everything else.
func TestRebuildCorpus(t *testing.T) {
	rebuilt := 0
	for _, c := range corpus.Cases(t) {
		if c.Kind != "ome-image" || c.Must == "reject" || c.Must == "either" {
			continue
		}
		rebuilt++
		t.Run(strings.TrimPrefix(c.ID, "ome/"), func(t *testing.T) {
			st := store.Memory()
			copyStore(t, st, store.Folder(c.Dir(t)), "")
			before, err := Open(t.Context(), st, "")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := RebuildPyramid(t.Context(), st, "", PyramidOptions{Levels: 3, Workers: 2}); err != nil {
				t.Fatal(err)
			}
			after, err := Open(t.Context(), st, "")
			if err != nil {
				t.Fatal(err)
			}
			spec := likeArray(before.Levels[0].Array)
			spec.Axes, spec.Levels = before.Axes, 3
			compareLevels(t, st, "", model(t, &spec, readAll(t, before.Levels[0].Array)))
			if len(after.Levels) < 2 && slices.Min(spec.Shape[1:]) > 3 {
				t.Errorf("%d levels", len(after.Levels))
			}
			for k, l := range after.Levels {
				if k < len(before.Levels) && l.Path != before.Levels[k].Path {
					t.Errorf("level %d is %q, was %q", k, l.Path, before.Levels[k].Path)
				}
				x := len(l.Scale) - 1
				if want := before.Levels[0].Scale[x] * (float64(spec.Shape[x]) / float64(l.Array.Shape()[x])); l.Scale[x] != want {
					t.Errorf("level %d has scale %v, want %v along x", k, l.Scale, want)
				}
				if reflect.TypeOf(l.Array.Codecs()) != reflect.TypeOf(before.Levels[0].Array.Codecs()) || len(l.Array.Codecs()) != len(before.Levels[0].Array.Codecs()) {
					t.Errorf("level %d has codecs %v", k, l.Array.Codecs())
				}
			}
			if !reflect.DeepEqual(before.Axes, after.Axes) || !reflect.DeepEqual(before.Omero, after.Omero) || !reflect.DeepEqual(before.Labels, after.Labels) || before.Name != after.Name {
				t.Error("other metadata changed")
			}
			for _, p := range Validate(t.Context(), st, "") {
				if p.Severity == Error {
					t.Error(p)
				}
			}
		})
	}
	if rebuilt != 16 {
		t.Errorf("%d images", rebuilt)
	}
}

func TestRebuildAgain(t *testing.T) {
	for _, budget := range []int64{0, 64 << 10} {
		st := store.Memory()
		spec := smallSpec()
		spec.Format, spec.Levels, spec.Shard = 3, 3, []int{8, 16, 16}
		level0 := bytesOf(spec.DType, 9*20*30, rand.New(rand.NewPCG(1, 1)))
		w, err := Create(t.Context(), st, "a/im", spec)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.WriteTile(t.Context(), []int{0, 0, 0}, spec.Shape, level0); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, levels := range []int{1, 0, 9} {
			warnings, err := RebuildPyramid(t.Context(), st, "a/im", PyramidOptions{Levels: levels, Workers: 2, Budget: budget})
			if err != nil {
				t.Fatal(err)
			}
			if (len(warnings) > 0) != (levels == 9) {
				t.Errorf("warnings %q", warnings)
			}
			spec.Levels = levels
			compareLevels(t, st, "a/im", model(t, &spec, level0))
			have := len(LevelShapes(spec.Shape, spec.Axes, levels))
			for k, path := range []string{"a/im/0", "a/im/1", "a/im/2", "a/im/3"} {
				if n := objects(t, st, path); (n > 0) != (k < have) {
					t.Errorf("%d levels left %d objects of level %d", levels, n, k)
				}
			}
		}
	}
}

// An array that has gone wrong or away is no reason not to make it anew.
func TestRebuildWithoutLevels(t *testing.T) {
	st := store.Memory()
	spec := smallSpec()
	level0 := bytesOf(spec.DType, 9*20*30, rand.New(rand.NewPCG(1, 1)))
	tr := trial{spec: spec, tile: spec.Chunks, callers: 1, order: "near"}
	tr.run(t, st, level0, rand.New(rand.NewPCG(1, 1)))
	if err := store.RemoveAll(t.Context(), st, "im/1"); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), st, "im"); err == nil {
		t.Fatal("an image with a missing level was opened")
	}
	im, err := OpenPresent(t.Context(), st, "im")
	if err != nil || len(im.Levels) != 2 || im.Levels[1].Path != "2" {
		t.Fatalf("levels without the missing one: %v, %v", im, err)
	}
	if n := len(im.Warnings); n != 1 || !strings.Contains(im.Warnings[0], `datasets[1].path: "1": there is no such array`) {
		t.Errorf("warnings: %q", im.Warnings)
	}
	if _, err := RebuildPyramid(t.Context(), st, "im", PyramidOptions{Levels: 2}); err != nil {
		t.Fatal(err)
	}
	compareLevels(t, st, "im", model(t, &spec, level0))
	if err := store.RemoveAll(t.Context(), st, "im/0"); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenPresent(t.Context(), st, "im"); err == nil || !strings.Contains(err.Error(), "datasets[0].path") {
		t.Errorf("an image without level 0: %v", err)
	}
}

func TestLevelPath(t *testing.T) {
	for _, c := range []struct {
		have []string
		k    int
		want string
	}{
		{[]string{"0"}, 2, "2"}, {[]string{"s0"}, 1, "s1"}, {[]string{"scale0/image"}, 3, "scale3/image"},
		{[]string{"full", "half"}, 1, "half"}, {[]string{"full", "half"}, 2, "2"}, {[]string{"10"}, 1, "1"},
		{[]string{"a", "a/b"}, 1, ""}, {[]string{"1"}, 1, ""},
	} {
		ms := &Multiscale{}
		for _, p := range c.have {
			ms.Datasets = append(ms.Datasets, Dataset{Path: p})
		}
		if got, err := levelPath(ms, c.k); got != c.want || (err != nil) != (c.want == "") {
			t.Errorf("level %d after %q: %q, %v; want %q", c.k, c.have, got, err, c.want)
		}
	}
}

func bareArray(t *testing.T, st store.Writer, path string, format int) []byte {
	t.Helper()
	a, err := zarr.CreateArray(t.Context(), st, path, zarr.Spec{
		Format: format, Shape: []int{5, 12, 14}, Chunks: []int{4, 5, 6}, DType: dtype.Int16, Attributes: map[string]any{"made": "by hand"},
	})
	if err != nil {
		t.Fatal(err)
	}
	b := bytesOf(dtype.Int16, 5*12*14, rand.New(rand.NewPCG(9, 9)))
	if err := a.Write(t.Context(), a.Bounds(), b); err != nil {
		t.Fatal(err)
	}
	return b
}

func TestAdopt(t *testing.T) {
	for _, format := range []int{2, 3} {
		for _, group := range []bool{false, true} {
			st := store.Memory()
			if group {
				if _, err := zarr.CreateGroup(t.Context(), st, "x", format, map[string]any{"note": 1}); err != nil {
					t.Fatal(err)
				}
			}
			level0 := bareArray(t, st, "x/0", format)
			ad := Adoption{Name: "x", Scale: []float64{3, 2, 2}}
			if _, err := Adopt(t.Context(), st, "x", "0", ad, PyramidOptions{}); err != nil {
				t.Fatal(err)
			}
			im, err := Open(t.Context(), st, "x")
			if err != nil {
				t.Fatal(err)
			}
			if im.Version != VersionFor(format) || len(im.Levels) != 1 || im.Axes[0].Name != "z" {
				t.Errorf("%+v", im)
			}
			if _, ok := im.Attributes()["note"]; ok != group {
				t.Errorf("attributes %v", im.Attributes())
			}
			if _, err := RebuildPyramid(t.Context(), st, "x", PyramidOptions{Levels: 2}); err != nil {
				t.Fatal(err)
			}
			spec := likeArray(im.Levels[0].Array)
			spec.Axes, spec.Levels = im.Axes, 2
			compareLevels(t, st, "x", model(t, &spec, level0))
			if _, err := Adopt(t.Context(), st, "x", "0", ad, PyramidOptions{}); !errors.Is(err, fs.ErrExist) {
				t.Errorf("adopted twice: %v", err)
			}
		}
	}
}

func TestAdoptRefuses(t *testing.T) {
	st := store.Memory()
	bareArray(t, st, "x/0", 3)
	whole := content(t, st, "")
	for name, c := range map[string]struct {
		path, array string
		ad          Adoption
	}{
		"outside":  {"x", "../x/0", Adoption{Scale: []float64{1, 1, 1}}},
		"no array": {"x", "1", Adoption{Scale: []float64{1, 1, 1}}},
		"scale":    {"x", "0", Adoption{Scale: []float64{1, 1}}},
		"axes":     {"x", "0", Adoption{Scale: []float64{1, 1, 1}, Axes: SpaceAxes("yx", "")}},
		"array":    {"x/0", "0", Adoption{Scale: []float64{1, 1, 1}}},
	} {
		if _, err := Adopt(t.Context(), st, c.path, c.array, c.ad, PyramidOptions{Levels: 1}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if n := objects(t, st, ""); n != len(whole) {
		t.Errorf("%d objects, were %d", n, len(whole))
	}
}

func TestAxesOf(t *testing.T) {
	for _, c := range []struct {
		names []string
		n     int
		want  string
	}{
		{nil, 2, "yx"}, {nil, 3, "zyx"}, {nil, 5, "tczyx"}, {nil, 1, ""}, {nil, 6, ""},
		{[]string{"c", "y", "x"}, 3, "cyx"}, {[]string{"row", "column"}, 2, "yx"},
	} {
		shape := make([]int, c.n)
		for i := range shape {
			shape[i] = 4
		}
		a, err := zarr.CreateArray(t.Context(), store.Memory(), "", zarr.Spec{Shape: shape, Chunks: shape, DType: dtype.Uint8, DimensionNames: c.names})
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(axisNames(AxesOf(a, "")), ""); got != c.want {
			t.Errorf("%q, %d dimensions: %q, want %q", c.names, c.n, got, c.want)
		}
	}
}
