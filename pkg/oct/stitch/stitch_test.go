package stitch

import (
	"bytes"
	"fmt"
	"testing"

	"strata/pkg/dtype"
	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/oct/stitch/affine"
	"strata/pkg/oct/stitch/canvas"
	"strata/pkg/phantom"
	"strata/pkg/zarr"
	"strata/pkg/zarr/codec"
	"strata/pkg/zarr/store"
	"strata/tests/octtest"
	"strata/tests/race"
)

// stitchSpecimen makes a phantom and the mosaic of its first slice, in memory.
func stitchSpecimen(t *testing.T, c phantom.Config, st phantom.Storage) (*phantom.Specimen, *ngff.Image) {
	t.Helper()
	s, err := phantom.New(c)
	if err != nil {
		t.Fatal(err)
	}
	if st.Format == 0 {
		st.Format = 3
	}
	st.Unit, st.Workers, st.Mem = "micrometer", 2, 256<<20
	mem := store.Memory()
	if err := s.WriteMosaic(octtest.Ctx, mem, 0, st); err != nil {
		t.Fatal(err)
	}
	return s, octtest.Open(t, mem)
}

// stitchBytesOf reads an array as it is.
func stitchBytesOf(t *testing.T, a *zarr.Array) []byte {
	t.Helper()
	n := a.DType().Size()
	for _, s := range a.Shape() {
		n *= s
	}
	b := make([]byte, n)
	if err := a.Read(octtest.Ctx, a.Bounds(), b); err != nil {
		t.Fatal(err)
	}
	return b
}

// stitchTruth renders what an ideal microscope would see on the canvas of a stitching.
func stitchTruth(t *testing.T, s *phantom.Specimen, st *Result) []byte {
	t.Helper()
	c := s.Config()
	b := make([]byte, c.Tile[0]*st.Size[0]*st.Size[1]*c.DType.Size())
	if err := s.RenderTruth(b, 0, [2]float64{float64(st.Origin[0]), float64(st.Origin[1])}, st.Size[0], st.Size[1]); err != nil {
		t.Fatal(err)
	}
	return b
}

func stitchIdeal() phantom.Config {
	c := phantom.Default().Ideal()
	c.Tiles, c.Tile, c.Overlap = [2]int{3, 4}, [3]int{13, 32, 40}, 0.25 // steps of 24 and 30
	return c
}

func stitchChain(t *testing.T, flag string, d dtype.Type, format int) codec.Chain {
	t.Helper()
	c, err := codec.FromFlag(flag, d, format)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestStitchedPhantomIsItsTruth(t *testing.T) {
	race.Leave(t)
	for _, d := range []dtype.Type{dtype.Uint8, dtype.Uint16, dtype.Int16, dtype.Float32, dtype.Float64} {
		for _, blending := range canvas.Blendings {
			for _, crop := range [][2]int{{}, {7, 11}} {
				c := stitchIdeal()
				c.DType, c.Crop = d, crop
				s, in := stitchSpecimen(t, c, phantom.Storage{Codecs: stitchChain(t, "zstd:1", d, 3)})
				out, st, err := Run(octtest.Ctx, in, store.Memory(), oct.Layout{Levels: 2, Chunks: []int{5, 16, 50}}, Options{Overlap: 0.25, Blending: canvas.Blending(blending), Seams: true}, octtest.Small())
				if err != nil {
					t.Fatal(err)
				}
				if got, want := stitchBytesOf(t, out.Levels[0].Array), stitchTruth(t, s, st); !bytes.Equal(got, want) {
					t.Errorf("%v, %s, crop %v: not the truth", d, blending, crop)
				}
				if st.Holes != 0 || len(st.Seams) == 0 {
					t.Errorf("%d holes, %d seams", st.Holes, len(st.Seams))
				}
				for _, e := range st.Seams {
					if e.Difference != 0 || (e.Correlation < 0.999999 && e.Voxels > 1000) {
						t.Errorf("seam %+v of identical tiles", e)
					}
				}
			}
		}
	}
}

// The numbers do not depend on how the mosaic is stored, on the workers, the
// memory, or the way the output is cut.
func TestStitchIsTheSameHoweverDone(t *testing.T) {
	c := phantom.Default()
	c.Tiles, c.Tile, c.Crop = [2]int{4, 5}, [3]int{21, 40, 48}, [2]int{9, 3}
	for _, d := range []dtype.Type{dtype.Float32, dtype.Uint16} {
		mosaics := map[int]*ngff.Image{}
		c.DType = d
		for _, interpolate := range []bool{false, true} {
			opt := Options{Overlap: 0.23, Transform: affine.Matrix{{1, 0.03}, {-0.02, 1.01}}, Interpolate: interpolate, Seams: true}
			var want []byte
			var report string
			for k, v := range []struct {
				codec   string
				format  int
				chunks  []int
				shard   []int
				workers int
				mem     int64
				layout  oct.Layout
			}{
				{"raw", 3, nil, nil, 1, 64 << 20, oct.Layout{}},
				{"raw", 2, []int{5, 40, 48}, nil, 3, 64 << 20, oct.Layout{Chunks: []int{4, 16, 16}}},
				{"zstd:1", 3, []int{21, 40, 48}, []int{21, 80, 96}, 4, 64 << 20, oct.Layout{Chunks: []int{3, 32, 64}, Codec: "raw"}},
				{"blosc-zstd:1", 3, []int{7, 40, 48}, nil, 2, 3 << 20, oct.Layout{Chunks: []int{2, 16, 32}, Shard: []int{4, 32, 64}}},
				{"gzip:1", 2, nil, nil, 8, 2500 << 10, oct.Layout{Chunks: []int{5, 24, 16}}},
				{"raw", 3, nil, nil, 2, 900 << 10, oct.Layout{Chunks: []int{2, 16, 16}}},
			} {
				in := mosaics[k]
				if in == nil {
					_, in = stitchSpecimen(t, c, phantom.Storage{Format: v.format, Codecs: stitchChain(t, v.codec, d, v.format), Chunks: v.chunks, Shard: v.shard})
					mosaics[k] = in
				}
				var done int64
				res := oct.Resources{Workers: v.workers, Mem: v.mem}
				if v.workers == 1 {
					res.Progress = func(n int64) { done += n }
				}
				out, st, err := Run(octtest.Ctx, in, store.Memory(), v.layout, opt, res)
				if err != nil {
					t.Fatalf("%d: %v", k, err)
				}
				got := stitchBytesOf(t, out.Levels[0].Array)
				if k == 0 {
					want, report = got, fmt.Sprintf("%+v", st)
					shape := in.Levels[0].Array.Shape()
					if n := int64(shape[0] * shape[1] * shape[2] * d.Size()); done != n {
						t.Errorf("progress of %d bytes, the input has %d", done, n)
					}
					continue
				}
				if !bytes.Equal(got, want) {
					t.Errorf("%v, interpolate %v, variant %d: other voxels", d, interpolate, k)
				}
				if r := fmt.Sprintf("%+v", st); r != report {
					t.Errorf("%v, interpolate %v, variant %d: other report:\n%s\n%s", d, interpolate, k, r, report)
				}
			}
		}
	}
}
