package shifts

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"strata/pkg/oct"
	"strata/pkg/rawtiles"
	"strata/tests/golden"
	"strata/tests/octtest"
)

func TestEstimateGolden(t *testing.T) {
	for _, c := range golden.Cases(t, "mosaic_grid") {
		var of struct {
			Params struct{ Raw string }
			Shifts string `json:"shifts_xy"`
		}
		if err := json.Unmarshal(c.File, &of); err != nil {
			t.Fatal(err)
		}
		slices, err := rawtiles.Find(octtest.Ctx, golden.Unpack(t, of.Params.Raw))
		if err != nil {
			t.Fatal(err)
		}
		for _, workers := range []int{1, 3} {
			got, _, err := Estimate(octtest.Ctx, slices, EstimateOptions{Workers: workers})
			if err != nil {
				t.Fatal(err)
			}
			equal(t, c.Name, got, table(t, of.Shifts))
		}
		swapped, _, err := Estimate(octtest.Ctx, slices, EstimateOptions{SwapXY: true})
		if err != nil {
			t.Fatal(err)
		}
		for i := range swapped.Rows {
			r := &swapped.Rows[i]
			r.X, r.Y, r.PX[0], r.PX[1] = r.Y, r.X, r.PX[1], r.PX[0]
		}
		equal(t, c.Name+", swapped twice", swapped, table(t, of.Shifts))
	}
}

// raw makes folders of tiles with the given lines in their info.txt.
func raw(t *testing.T, tiles map[string]string) []rawtiles.Slice {
	t.Helper()
	dir := t.TempDir()
	for name, text := range tiles {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(path, 0o777), os.WriteFile(filepath.Join(path, "info.txt"),
			[]byte("nx: 10\nny: 20\nn_extra: 0\ntop_z: 0\nbottom_z: 3\nwidth: 20\nheight: 100\n"+text), 0o666)); err != nil {
			t.Fatal(err)
		}
	}
	slices, err := rawtiles.Find(octtest.Ctx, dir)
	if err != nil {
		t.Fatal(err)
	}
	return slices
}

func at(x, y float64) string { return fmt.Sprintf("stage_x_pos_mm: %v\nstage_y_pos_mm: %v\n", x, y) }

// A slice that grew to the right shows its shift at the left edge, and the other way round; ties take the left.
func TestEstimateEdges(t *testing.T) {
	s, warnings, err := Estimate(octtest.Ctx, raw(t, map[string]string{
		"tile_x00_y00_z01": at(1, 2),
		"tile_x00_y00_z02": at(0.99, 2), "tile_x01_y00_z02": at(1.01, 2.5),
		"tile_x00_y00_z10": at(0.99, 2.5),
	}), EstimateOptions{})
	if err != nil || len(warnings) != 0 || len(s.Rows) != 2 {
		t.Fatalf("%v, %q, %+v", err, warnings, s)
	}
	if r := s.Rows[0]; r.Fixed != 1 || r.Moving != 2 || !near(r.X, 0.01) || !near(r.Y, 0) || r.Reliable || !near(r.PX[0], 5) {
		t.Errorf("%+v", r)
	}
	if r := s.Rows[1]; r.Fixed != 2 || r.Moving != 10 || !near(r.X, 0) || !near(r.Y, 0) || r.Reliable {
		t.Errorf("%+v", r)
	}
}

func TestEstimateWithoutPositions(t *testing.T) {
	s, warnings, err := Estimate(octtest.Ctx, raw(t, map[string]string{"tile_x00_y03_z01": "", "tile_x01_y03_z01": "", "tile_x02_y02_z02": "", "tile_x03_y02_z02": ""}), EstimateOptions{})
	if err != nil || len(warnings) != 1 || len(s.Rows) != 1 || !near(s.Rows[0].X, -2*0.8*0.02) || !near(s.Rows[0].Y, 0.08) || !near(s.Rows[0].PX[1], 16) || !s.Rows[0].Reliable {
		t.Errorf("%v, %q, %+v", err, warnings, s)
	}
	for want, tiles := range map[string]map[string]string{
		"slice 02 has no stage_x_pos_mm and stage_y_pos_mm, slice 01 has": {"tile_x00_y00_z01": at(1, 1), "tile_x00_y00_z02": ""},
		"only some tiles of slice 01 have stage_x_pos_mm":                 {"tile_x00_y00_z01": at(1, 1), "tile_x01_y00_z01": "stage_x_pos_mm: 3\n"},
		"info.txt:8: stage_x_pos_mm":                                      {"tile_x00_y00_z01": "stage_x_pos_mm: left\n"},
		"are both the tile at x 0, y 0 of slice 01":                       {"a/tile_x00_y00_z01": "", "b/tile_x00_y00_z01": ""},
	} {
		if _, _, err := Estimate(octtest.Ctx, raw(t, tiles), EstimateOptions{}); !errors.Is(err, oct.ErrInput) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
