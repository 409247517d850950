package slicefiles

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFindAny(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"mosaic_grid_3d_z10.ome.zarr", "mosaic_grid_3d_z02.ome.zarr", "z1_aip_z02.ome.zarr", ".slice_z03.ome.zarr", "slice_z04.ome.zarr.zip", "slice_z05.zarr", "shifts_z06.csv", "slice.ome.zarr"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	got, err := FindAny(context.Background(), dir, "mosaic*")
	if err != nil || len(got) != 2 || got[0].ID != 2 || got[1].ID != 10 {
		t.Errorf("%v: %v", err, got)
	}
	if got, err = FindAny(context.Background(), dir, "slice*"); err != nil || len(got) != 1 || got[0].ID != 4 {
		t.Errorf("%v: %v", err, got)
	}
	if _, err = FindAny(context.Background(), dir, "*"); err == nil || !strings.Contains(err.Error(), "are both slice 2") {
		t.Errorf("two mosaics of one slice: %v", err)
	}
	if _, err = FindAny(context.Background(), dir, "x*"); err == nil || !strings.Contains(err.Error(), "want x*") {
		t.Errorf("no mosaic: %v", err)
	}
}

func TestNumber(t *testing.T) {
	for name, want := range map[string]int{"a/z1/slice_z04_normalize.ome.zarr": 4, "slice_z012.ome.zarr/": 12, "z1_z07": 7, "s3://b/slice_z3.ome.zarr": 3, "slice": -1, "z99999999999999999999": -1, "z10/slice": -1} {
		id, ok := Number(name)
		if ok != (want >= 0) || ok && id != want {
			t.Errorf("%s: %d, %v, want %d", name, id, ok, want)
		}
	}
}
