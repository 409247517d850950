package mosaic

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"testing"

	"strata/pkg/dtype"
	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/rawtiles"
	"strata/pkg/zarr/store"
	"strata/tests/golden"
	"strata/tests/octtest"
)

// made is a mosaic grid that a golden case expects.
type made struct {
	Scale  []float64
	Chunks []int
	Shape  []int
}

// arguments reads the flags of a case.
func arguments(t *testing.T, args []string) (how Options) {
	how = Options{Resolution: 10, Galvo: true, GalvoThreshold: 0.6, Legacy: true, Corner: true}
	for i := 0; i < len(args); i++ {
		value := func() float64 {
			i++
			v, err := strconv.ParseFloat(args[i], 64)
			if err != nil {
				t.Fatal(err)
			}
			return v
		}
		switch args[i] {
		case "-r":
			how.Resolution = max(0, value())
		case "--axial_resolution":
			how.Axial = value()
		case "--sharding_factor":
			how.Sharding = int(value())
		case "--no-preprocess":
			how.Legacy = false
		case "--no-fix_galvo_shift":
			how.Galvo = false
		case "--keep_galvo_return":
			how.KeepReturn = true
		case "--preprocess", "--no-use_gpu":
		default:
			t.Fatal(args[i])
		}
	}
	return how
}

// The voxels are those of linumpy, or the truth where it is wrong, whatever workers and memory.
func TestGolden(t *testing.T) {
	for _, c := range golden.Cases(t, "mosaic_grid") {
		t.Run(c.Name, func(t *testing.T) {
			var file struct {
				Params struct {
					Raw  string
					Args []string
				}
				Tolerance struct{ Volume struct{ Rel, Abs float64 } }
				Mosaics   map[string]made
				Shift     int `json:"galvo_shift_put_in"`
			}
			if err := json.Unmarshal(c.File, &file); err != nil {
				t.Fatal(err)
			}
			how := arguments(t, file.Params.Args)
			found, err := rawtiles.Find(octtest.Ctx, golden.Unpack(t, file.Params.Raw))
			if err != nil {
				t.Fatal(err)
			}
			if len(found) != len(file.Mosaics) {
				t.Fatalf("%d slices, want %d", len(found), len(file.Mosaics))
			}
			for _, s := range found {
				name := fmt.Sprintf("z%02d", s.ID)
				want, ok := c.Arrays[name+"_truth"]
				if !ok {
					want = c.Arrays[name]
				}
				m, err := Open(octtest.Ctx, s, how)
				if err != nil {
					t.Fatal(err)
				}
				var first []float32
				for _, res := range []oct.Resources{{Workers: 3, Mem: 64 << 20}, {Workers: 1, Mem: 1 << 20}} {
					r, err := m.Write(octtest.Ctx, store.Memory(), oct.Layout{}, res)
					if err != nil {
						t.Fatal(err)
					}
					if r.Shift != file.Shift {
						t.Errorf("%s: shift %d, want %d", name, r.Shift, file.Shift)
					}
					got := octtest.Read(t, r.Image.Levels[0].Array)
					if first == nil {
						first = got
						check(t, r.Image, m, got, want, file.Mosaics[name], how, file.Tolerance.Volume.Rel, file.Tolerance.Volume.Abs)
					}
					octtest.SameBits(t, got, first)
				}
			}
		})
	}
}

// check compares a mosaic grid with the expected one; of legacy data, tile by tile.
func check(t *testing.T, im *ngff.Image, m *Mosaic, got []float32, want golden.Array, info made, how Options, rel, abs float64) {
	t.Helper()
	a := im.Levels[0].Array
	shape, chunks := slices.Clone(info.Shape), slices.Clone(info.Chunks)
	if how.Legacy { // their grid is not exchanged
		ty, tx := chunks[1], chunks[2]
		shape[1], shape[2] = shape[2]/tx*ty, shape[1]/ty*tx
	}
	if !slices.Equal(a.Shape(), shape) || !slices.Equal(a.Chunks(), chunks) || a.DType() != dtype.Float32 || len(im.Levels) != 1 {
		t.Fatalf("%v of %v in chunks of %v, want %v in %v", a.DType(), a.Shape(), a.Chunks(), shape, chunks)
	}
	for d, v := range info.Scale {
		if s := im.Levels[0].Scale[d]; math.Abs(s-v) > 1e-12 || im.Unit[d] != "millimeter" {
			t.Errorf("voxel size %v %s, want %v mm", s, im.Unit[d], v)
		}
	}
	w := dtype.Slice[float32](want.Data)
	off := 0
	for i, g := range got {
		z, y, x := i/(shape[1]*shape[2]), i/shape[2]%shape[1], i%shape[2]
		if how.Legacy {
			gy, gx := y/chunks[1], x/chunks[2]
			y, x = gx*chunks[1]+y%chunks[1], gy*chunks[2]+x%chunks[2]
		}
		v := float64(w[(z*info.Shape[1]+y)*info.Shape[2]+x])
		if d := math.Abs(float64(g) - v); !(d <= abs+rel*math.Abs(v)) || m.how.Resolution == 0 && d != 0 {
			off++
		}
	}
	if off > 0 {
		t.Errorf("%d of %d voxels differ", off, len(got))
	}
}
