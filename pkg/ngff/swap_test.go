package ngff

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"strata/pkg/zarr"
	"strata/pkg/zarr/store"
	"strata/tests/race"
)

// content is all objects below a prefix, by their keys.
func content(t *testing.T, st store.Store, prefix string) map[string]string {
	t.Helper()
	all := map[string]string{}
	entries, err := st.List(t.Context(), prefix)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	for _, e := range entries {
		key := store.Join(prefix, e.Name)
		if e.Dir {
			maps.Copy(all, content(t, st, key))
			continue
		}
		b, err := st.Get(t.Context(), key, nil, -1)
		if err != nil {
			t.Fatal(err)
		}
		all[key] = string(b)
	}
	return all
}

// faulty fails one change of a store, or from one on all: as a full disk and as a
// kill do. A change that fails may have been made all the same, as on a server.
type faulty struct {
	store.Writer
	mode   faultMode
	mu     sync.Mutex
	left   int
	failed bool
}

type faultMode string

const (
	once   faultMode = "once"
	silent faultMode = "once, but done" // what fails is done
	dead   faultMode = "from there on"
)

var errFaulty = errors.New("no space left")

func (f *faulty) fails() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.left--
	now := f.left == -1 || f.mode == dead && f.left < 0
	f.failed = f.failed || now
	return now
}

func (f *faulty) change(do func() error) error {
	if !f.fails() {
		return do()
	}
	if f.mode == silent {
		_ = do()
	}
	return errFaulty
}

func (f *faulty) Put(ctx context.Context, key string, parts ...[]byte) error {
	return f.change(func() error { return f.Writer.Put(ctx, key, parts...) })
}

func (f *faulty) Delete(ctx context.Context, key string) error {
	return f.change(func() error { return f.Writer.Delete(ctx, key) })
}

func (f *faulty) Create(ctx context.Context, key string) (store.PendingObject, error) {
	if f.fails() {
		return nil, errFaulty
	}
	o, err := f.Writer.Create(ctx, key)
	return &faultyObject{o, f}, err
}

type faultyObject struct {
	store.PendingObject
	f *faulty
}

func (o *faultyObject) Commit() error { return o.f.change(o.PendingObject.Commit) }

// swapImage is an image with two levels below level 0, in the store.
func swapImage(t *testing.T, st store.Writer, format int, shard []int) (ImageSpec, []byte) {
	t.Helper()
	spec := smallSpec()
	spec.Format, spec.Levels, spec.Shard = format, 2, shard
	level0 := bytesOf(spec.DType, 9*20*30, rand.New(rand.NewPCG(1, 1)))
	w, err := Create(t.Context(), st, "im", spec)
	if err == nil {
		err = w.WriteTile(t.Context(), []int{0, 0, 0}, spec.Shape, level0)
	}
	if err == nil {
		err = w.Close(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	return spec, level0
}

// levelsOf reads all levels of an image, and what its consolidated metadata says of them.
func levelsOf(st store.Store, path string) (levels [][]byte, err error) {
	im, err := Open(context.Background(), st, path)
	if err != nil {
		return nil, err
	}
	if raw, err := st.Get(context.Background(), path+"/.zmetadata", nil, -1); err == nil {
		// some readers look nowhere else
		var all struct {
			Metadata map[string]json.RawMessage `json:"metadata"`
		}
		var attrs map[string]json.RawMessage
		if err := cmp.Or(json.Unmarshal(raw, &all), json.Unmarshal(all.Metadata[".zattrs"], &attrs)); err != nil {
			return nil, err
		}
		var f findings
		for _, d := range parse(attrs, 2, &f).Multiscales[0].Datasets {
			if _, err := zarr.OpenArray(context.Background(), st, store.Join(path, d.Path)); err != nil || all.Metadata[d.Path+"/.zarray"] == nil {
				return nil, fmt.Errorf("level %q of .zmetadata: %v", d.Path, err)
			}
		}
	}
	for _, l := range im.Levels {
		if im.Group.Consolidated() {
			names, err := im.Group.Children(context.Background())
			if first, _, _ := strings.Cut(l.Path, "/"); err != nil || !slices.Contains(names, first) {
				return nil, fmt.Errorf("consolidated metadata names %q, not level %q: %v", names, l.Path, err)
			}
		}
		b := make([]byte, padded(l.Array.Shape(), 1).volume()*l.Array.DType().Size())
		if err := l.Array.Read(context.Background(), l.Array.Bounds(), b); err != nil {
			return nil, err
		}
		levels = append(levels, b)
	}
	return levels, nil
}

// Whichever change of the store fails, once or for good: the image has its old
// levels or its new ones, each of them whole, and the next run leaves what a run
// without a failure does.
func TestRebuildFailures(t *testing.T) {
	for _, c := range []struct {
		name         string
		format       int
		shard        []int
		consolidated bool
		levels       int
	}{
		{"v3", 3, nil, false, 3}, {"v2", 2, nil, false, 1}, {"shards", 3, []int{8, 16, 16}, false, 2}, {"none", 3, nil, false, 0},
		{"v2 consolidated", 2, nil, true, 3}, {"v3 consolidated", 3, nil, true, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.name != "shards" {
				race.Leave(t)
			}
			whole := store.Memory()
			spec, level0 := swapImage(t, whole, c.format, c.shard)
			// an old pyramid that differs from what is made of level 0
			spoil(t, whole, spec.Levels)
			if c.consolidated {
				if err := zarr.Consolidate(t.Context(), whole, "im"); err != nil {
					t.Fatal(err)
				}
			}
			old, err := levelsOf(whole, "im")
			if err != nil {
				t.Fatal(err)
			}
			spec.Levels = c.levels
			made := model(t, &spec, level0)
			clean := store.Memory()
			copyStore(t, clean, whole, "")
			options := PyramidOptions{Levels: c.levels, Workers: 2}
			if c.shard != nil {
				options.Workers = 1 // inner chunks lie in the order in which they came
			}
			if _, err := RebuildPyramid(t.Context(), clean, "im", options); err != nil {
				t.Fatal(err)
			}
			for _, mode := range []faultMode{once, silent, dead} {
				failures := 0
				for n := 0; ; n++ {
					st := store.Memory()
					copyStore(t, st, whole, "")
					f := &faulty{Writer: st, left: n, mode: mode}
					warnings, err := RebuildPyramid(t.Context(), f, "im", options)
					if !f.failed {
						break
					}
					failures++
					got, lerr := levelsOf(st, "im")
					isOld, isNew := slices.EqualFunc(got, old, bytes.Equal), slices.EqualFunc(got, made, bytes.Equal)
					switch {
					case lerr != nil:
						t.Fatalf("change %d failed (%s): %v", n, mode, lerr)
					case !isOld && !isNew:
						t.Fatalf("change %d failed (%s): the image has neither its old levels nor its new ones", n, mode)
					case err == nil && (!isNew || len(warnings) == 0):
						t.Fatalf("change %d failed (%s), and it is not said: %q", n, mode, warnings)
					}
					if _, err := RebuildPyramid(t.Context(), st, "im", options); err != nil {
						t.Fatal(err)
					}
					if !maps.Equal(content(t, st, ""), content(t, clean, "")) {
						t.Fatalf("change %d failed (%s): the next run leaves %q, want %q", n, mode,
							slices.Sorted(maps.Keys(content(t, st, ""))), slices.Sorted(maps.Keys(content(t, clean, ""))))
					}
				}
				if failures < 5 {
					t.Errorf("only %d changes", failures)
				}
			}
		})
	}
}

// spoil makes the levels below level 0 those of another program.
func spoil(t *testing.T, st store.Writer, levels int) {
	t.Helper()
	for k := range levels {
		a, err := zarr.OpenArray(t.Context(), st, fmt.Sprintf("im/%d", k+1))
		if err != nil {
			t.Fatal(err)
		}
		b := bytesOf(a.DType(), padded(a.Shape(), 1).volume(), rand.New(rand.NewPCG(7, uint64(k))))
		if err := a.Write(t.Context(), a.Bounds(), b); err != nil {
			t.Fatal(err)
		}
	}
}

// An array stays what it was until it is an image with all of its levels.
func TestAdoptFailures(t *testing.T) {
	for _, format := range []int{2, 3} {
		whole := store.Memory()
		level0 := bareArray(t, whole, "x/0", format)
		ad := Adoption{Name: "x", Scale: []float64{3, 2, 2}}
		for _, mode := range []faultMode{once, dead} {
			for n := 0; ; n++ {
				st := store.Memory()
				copyStore(t, st, whole, "")
				f := &faulty{Writer: st, left: n, mode: mode}
				_, err := Adopt(t.Context(), f, "x", "0", ad, PyramidOptions{Levels: 2})
				if !f.failed {
					break
				}
				im, oerr := Open(t.Context(), st, "x")
				if err != nil && oerr == nil && len(im.Levels) != 3 {
					t.Fatalf("v%d, change %d failed: an image of %d levels", format, n, len(im.Levels))
				}
				if oerr == nil {
					continue
				}
				if _, err := Adopt(t.Context(), st, "x", "0", ad, PyramidOptions{Levels: 2}); err != nil {
					t.Fatalf("v%d, change %d failed, then: %v", format, n, err)
				}
				if im, err = Open(t.Context(), st, "x"); err != nil {
					t.Fatal(err)
				}
				spec := likeArray(im.Levels[0].Array)
				spec.Axes, spec.Levels = im.Axes, 2
				compareLevels(t, st, "x", model(t, &spec, level0))
				if objects(t, st, "x/"+buildPath) > 0 {
					t.Errorf("change %d failed: %s was left", n, buildPath)
				}
			}
		}
	}
}

// In a folder the levels come by hard links, and folders go as a whole.
func TestRebuildFolder(t *testing.T) {
	dir := t.TempDir()
	st := store.Folder(dir)
	spec, level0 := swapImage(t, st, 3, nil)
	for _, levels := range []int{3, 1, 1} {
		if _, err := RebuildPyramid(t.Context(), st, "im", PyramidOptions{Levels: levels}); err != nil {
			t.Fatal(err)
		}
		spec.Levels = levels
		compareLevels(t, st, "im", model(t, &spec, level0))
		entries, err := st.List(t.Context(), "im")
		if err != nil || len(entries) != len(LevelShapes(spec.Shape, spec.Axes, levels))+1 {
			t.Errorf("with %d levels there are %+v: %v", levels, entries, err)
		}
	}
}

// What the image's metadata does not name is not removed.
func TestRebuildSparesOthers(t *testing.T) {
	t.Run("an array in the way", func(t *testing.T) {
		st := store.Memory()
		swapImage(t, st, 3, nil)
		bareArray(t, st, "im/3", 3)
		before := content(t, st, "")
		_, err := RebuildPyramid(t.Context(), st, "im", PyramidOptions{Levels: 3})
		if err == nil || !strings.Contains(err.Error(), "im/3: is in the way of a new level") {
			t.Errorf("error %v", err)
		}
		if !maps.Equal(before, content(t, st, "")) {
			t.Error("the image was changed")
		}
	})
	t.Run("a level that is no array", func(t *testing.T) {
		st := store.Memory()
		swapImage(t, st, 3, nil)
		if err := store.RemoveAll(t.Context(), st, "im/1"); err != nil {
			t.Fatal(err)
		}
		if _, err := zarr.CreateGroup(t.Context(), st, "im/1", 3, nil); err != nil {
			t.Fatal(err)
		}
		if _, err := RebuildPyramid(t.Context(), st, "im", PyramidOptions{Levels: 3}); err == nil || objects(t, st, "im/1") != 1 {
			t.Errorf("error %v", err)
		}
	})
	t.Run("what an interrupted run of an earlier version left", func(t *testing.T) {
		st := store.Memory()
		spec, level0 := swapImage(t, st, 3, nil)
		g, err := zarr.OpenGroup(t.Context(), st, "im")
		if err != nil {
			t.Fatal(err)
		}
		im, err := Open(t.Context(), st, "im")
		if err != nil {
			t.Fatal(err)
		}
		attrs, err := im.withDatasets(g.Attributes(), im.Metadata.Multiscales[0].Datasets[:1])
		if err == nil {
			err = g.SetAttributes(t.Context(), attrs)
		}
		if err == nil {
			_, err = RebuildPyramid(t.Context(), st, "im", PyramidOptions{Levels: 2})
		}
		if err != nil {
			t.Fatal(err)
		}
		compareLevels(t, st, "im", model(t, &spec, level0))
	})
}

func TestRebuildCancelled(t *testing.T) {
	st := store.Memory()
	swapImage(t, st, 3, nil)
	before := content(t, st, "")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := RebuildPyramid(ctx, st, "im", PyramidOptions{Levels: 2}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if !maps.Equal(before, content(t, st, "")) {
		t.Error("the image was changed")
	}
}
