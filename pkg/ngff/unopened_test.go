package ngff

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"strata/pkg/dtype"
	"strata/pkg/zarr"
	"strata/pkg/zarr/store"
)

// unreadable is a store of which one key cannot be read.
type unreadable struct {
	store.Writer
	key string
	err error
}

func (f *unreadable) Get(ctx context.Context, key string, dst []byte, limit int64) ([]byte, error) {
	if key == f.key {
		return nil, fmt.Errorf("%s: %w", f.Location(key), f.err)
	}
	return f.Writer.Get(ctx, key, dst, limit)
}

// A level that cannot be read is the store's failure, not that of the image's metadata; one whose own
// metadata is wrong is the image's.
func TestUnopenedLevels(t *testing.T) {
	ctx := t.Context()
	st := store.Memory()
	w, err := Create(ctx, st, "", ImageSpec{Shape: []int{4, 4}, Chunks: []int{2, 2}, DType: dtype.Uint8, Axes: SpaceAxes("yx", "micrometer"), Scale: []float64{1, 1}, Levels: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.WriteTile(ctx, []int{0, 0}, []int{4, 4}, make([]byte, 16)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(ctx); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"0/zarr.json", "1/zarr.json"} {
		f := &unreadable{st, key, syscall.EIO}
		var format *zarr.FormatError
		if _, err := OpenPresent(ctx, f, ""); !errors.Is(err, syscall.EIO) || errors.As(err, &format) || !strings.Contains(err.Error(), key) {
			t.Errorf("Open: %v", err)
		}
		var found error
		for _, p := range Validate(ctx, f, "") {
			found = errors.Join(found, p.Err)
		}
		if !errors.Is(found, syscall.EIO) {
			t.Errorf("Validate: %v", found)
		}
		if key == "0/zarr.json" {
			if _, err := RebuildPyramid(ctx, f, "", PyramidOptions{Levels: 1}); !errors.Is(err, syscall.EIO) || errors.As(err, &format) {
				t.Errorf("RebuildPyramid: %v", err)
			}
		}
	}
	if err := st.Put(ctx, "1/zarr.json", []byte("{}")); err != nil {
		t.Fatal(err)
	}
	var format *zarr.FormatError
	if _, err := Open(ctx, st, ""); !errors.As(err, &format) {
		t.Errorf("Open of a wrong level: %v", err)
	}
	if err := st.Put(ctx, "1/zarr.json", []byte(`{"zarr_format": 3, "node_type": "group"}`)); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(ctx, st, ""); !errors.As(err, &format) || !strings.Contains(err.Error(), "is a group (must be an array)") {
		t.Errorf("Open of a group: %v", err)
	}
}
