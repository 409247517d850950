package ngff

import (
	"archive/zip"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"strata/pkg/dtype"
	"strata/tests/corpus"
)

// goldenCase is what a case.json of the golden set says, as far as pyramids go.
type goldenCase struct {
	Tolerance struct {
		Rel, Abs       float64
		MaxFractionOff float64 `json:"max_fraction_off"`
	}
	Arrays map[string]struct {
		Shape []int
		DType string
	}
	VoxelSize [][]float64 `json:"voxel_size_um"`
	Chunks    []int
}

func readCase(t *testing.T, dir string) (c goldenCase, arrays map[string][]byte) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "case.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &c); err != nil {
		t.Fatal(err)
	}
	z, err := zip.OpenReader(filepath.Join(dir, "expected.npz"))
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	arrays = map[string][]byte{}
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(r)
		r.Close()
		if err != nil {
			t.Fatal(err)
		}
		a, err := corpus.ParseNpy(b)
		if err != nil {
			t.Fatal(err)
		}
		arrays[strings.TrimSuffix(f.Name, ".npy")] = a.Data
	}
	return c, arrays
}

func goldenCases(t *testing.T) []string {
	t.Helper()
	dirs, err := filepath.Glob("../../tests/golden/aip/*/case.json")
	if err != nil || len(dirs) == 0 {
		t.Fatal("no golden cases", err)
	}
	own, err := filepath.Glob("testdata/*/case.json")
	if err != nil || len(own) == 0 {
		t.Fatal("no golden cases", err)
	}
	return append(dirs, own...)
}

func values(typ dtype.Type, b []byte) []float64 {
	var out []float64
	switch typ {
	case dtype.Float32:
		for _, v := range dtype.Slice[float32](b) {
			out = append(out, float64(v))
		}
	case dtype.Uint16:
		for _, v := range dtype.Slice[uint16](b) {
			out = append(out, float64(v))
		}
	default:
		panic(fmt.Sprint("golden arrays of type ", typ))
	}
	return out
}

// Each level is made from the golden level above it, with the oracle's
// tolerance; u16_odd has odd axes in several chunks.
func TestDownsampleAgainstGolden(t *testing.T) {
	for _, path := range goldenCases(t) {
		dir := filepath.Dir(path)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			c, arrays := readCase(t, dir)
			levels := 0
			for k := 1; ; k++ {
				name := fmt.Sprintf("level%d", k)
				want, ok := c.Arrays[name]
				if !ok {
					break
				}
				levels++
				above := c.Arrays[fmt.Sprintf("level%d", k-1)]
				typ, err := dtype.Parse(want.DType)
				if err != nil {
					t.Fatal(err)
				}
				axes := SpaceAxes("zyx"[3-len(want.Shape):], "")
				got, shape, err := Downsample(typ, arrays[fmt.Sprintf("level%d", k-1)], above.Shape, axes)
				if err != nil {
					t.Fatal(err)
				}
				if fmt.Sprint(shape) != fmt.Sprint(want.Shape) {
					t.Fatalf("%s has shape %v, want %v", name, shape, want.Shape)
				}
				compareGolden(t, name, &c, values(typ, got), values(typ, arrays[name]))
			}
			if levels == 0 {
				t.Fatal("no level but 0")
			}
			if got := len(LevelShapes(c.Arrays["level0"].Shape, SpaceAxes("zyx"[3-len(c.Arrays["level0"].Shape):], ""), levels)); got != levels+1 {
				t.Errorf("%d levels, the golden case has %d", got, levels+1)
			}
		})
	}
}

func compareGolden(t *testing.T, name string, c *goldenCase, got, want []float64) {
	t.Helper()
	off := 0
	for i := range want {
		d := math.Abs(got[i] - want[i])
		if c.Tolerance.MaxFractionOff > 0 && d > 0 {
			off++
		}
		if !(d <= c.Tolerance.Abs+c.Tolerance.Rel*math.Abs(want[i])) {
			t.Fatalf("%s: element %d is %v, want %v", name, i, got[i], want[i])
		}
	}
	if float64(off) > c.Tolerance.MaxFractionOff*float64(len(want)) {
		t.Errorf("%s: %d of %d elements differ", name, off, len(want))
	}
}
