package aip

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/png"
	"io/fs"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"strata/pkg/dtype"
	"strata/pkg/meter"
	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/zarr/codec"
	"strata/pkg/zarr/store"
	"strata/tests/golden"
	"strata/tests/octtest"
)

func TestAIPGolden(t *testing.T) {
	for _, c := range golden.Cases(t, "aip") {
		t.Run(c.Name, func(t *testing.T) {
			var picture bytes.Buffer
			out, err := Run(octtest.Ctx, octtest.Open(t, store.Folder(golden.Input(t, c))), store.Memory(), oct.Layout{Levels: 5}, &Picture{To: &picture}, octtest.Small())
			if err != nil {
				t.Fatal(err)
			}
			if len(out.Levels) != len(c.VoxelSize) {
				t.Fatalf("%d levels, want %d", len(out.Levels), len(c.VoxelSize))
			}
			if got := out.Levels[0].Array.Chunks(); !slices.Equal(got, c.Chunks) {
				t.Errorf("chunks %v, want %v", got, c.Chunks)
			}
			for k, level := range out.Levels {
				want := c.Arrays[fmt.Sprintf("level%d", k)]
				if !slices.Equal(level.Array.Shape(), want.Shape) {
					t.Fatalf("level %d: shape %v, want %v", k, level.Array.Shape(), want.Shape)
				}
				got := octtest.Read(t, level.Array)
				for i, w := range dtype.Slice[float32](want.Data) {
					if d := math.Abs(float64(got[i]) - float64(w)); d > c.Tolerance.Abs+c.Tolerance.Rel*math.Abs(float64(w)) {
						t.Fatalf("level %d, pixel %d: %v, want %v", k, i, got[i], w)
					}
				}
			}
			octtest.CheckVoxels(t, out, c.VoxelSize[0])
			checkPNG(t, picture.Bytes(), c.Arrays["png16"], c.Tolerance.PNG16Abs)
		})
	}
}

func checkPNG(t *testing.T, file []byte, want golden.Array, tolerance float64) {
	t.Helper()
	im, err := png.Decode(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	grey, ok := im.(*image.Gray16)
	if !ok || grey.Rect.Dy() != want.Shape[0] || grey.Rect.Dx() != want.Shape[1] {
		t.Fatalf("PNG is %T of %v, want 16-bit grey of %v", im, im.Bounds(), want.Shape)
	}
	for i, w := range dtype.Slice[uint16](want.Data) {
		g := grey.Gray16At(i%want.Shape[1], i/want.Shape[1]).Y
		if math.Abs(float64(g)-float64(w)) > tolerance {
			t.Fatalf("PNG pixel %d: %d, want %d", i, g, w)
		}
	}
}

// The numbers depend on nothing but the voxels: not on chunks along z, shards,
// codecs, workers, memory, nor on how a large plane is cut into bands.
func TestAIPIsTheSameHoweverStored(t *testing.T) {
	zstd, err := codec.FromFlag("zstd:1", dtype.Float32, 3)
	if err != nil {
		t.Fatal(err)
	}
	shape := []int{23, 70, 90}
	value := func(i int) float32 {
		return float32(rand.New(rand.NewPCG(9, uint64(i))).NormFloat64() * math.Exp(float64(i%13)))
	}
	for _, s := range []struct {
		name          string
		chunks, shard []int
		chain         codec.Chain
	}{
		{"whole columns, raw", []int{23, 32, 32}, nil, nil},
		{"chunks along z, raw", []int{5, 32, 32}, nil, nil},
		{"chunks along z, zstd", []int{5, 32, 32}, nil, zstd},
		{"shards", []int{8, 16, 16}, []int{24, 32, 48}, zstd},
		{"one chunk", []int{64, 128, 128}, nil, zstd},
	} {
		t.Run(s.name, func(t *testing.T) {
			in, want := octtest.Made(t, shape, s.chunks, s.shard, s.chain, value)
			for _, workers := range []int{1, 3} {
				out, err := Run(octtest.Ctx, in, store.Memory(), oct.Layout{Levels: 2}, nil, oct.Resources{Workers: workers, Mem: 32 << 20})
				if err != nil {
					t.Fatal(err)
				}
				octtest.SameBits(t, octtest.Read(t, out.Levels[0].Array), want)
			}
		})
	}
}

// A raw plane larger than a piece is read in bands of rows.
func TestAIPOfLargePlanes(t *testing.T) {
	in, want := octtest.Made(t, []int{3, 1100, 700}, []int{3, 600, 700}, nil, nil, func(i int) uint16 { return uint16(i * 7919) })
	m := &meter.Meter{}
	done := int64(0)
	out, err := Run(octtest.Ctx, in, store.Memory(), oct.Layout{}, nil, oct.Resources{Workers: 1, Mem: 64 << 20, Meter: m, Progress: func(n int64) { done += n }})
	if err != nil {
		t.Fatal(err)
	}
	octtest.SameBits(t, octtest.Read(t, out.Levels[0].Array), want)
	if total := int64(3 * 1100 * 700 * 2); done != total || m.BytesRead() < total || m.BytesRead() > total+total/10 {
		t.Errorf("progress counted %d bytes, the meter %d, of %d", done, m.BytesRead(), total)
	}
}

// Planes larger than a piece whose rows no piece divides, and a row larger than
// a piece: what is read of a tile is all of it and nothing else.
func TestAIPOfPlanesThatPiecesDoNotDivide(t *testing.T) {
	for _, c := range []struct{ shape, chunks []int }{
		{[]int{3, 1018, 401}, []int{3, 509, 401}},
		{[]int{3, 1100, 401}, []int{2, 509, 401}},
		{[]int{2, 3, 140000}, []int{2, 2, 140000}},
	} {
		in, want := octtest.Made(t, c.shape, c.chunks, nil, nil, func(i int) float32 { return float32(i * 7919 % 10007) })
		out, err := Run(octtest.Ctx, in, store.Memory(), oct.Layout{}, nil, octtest.Small())
		if err != nil {
			t.Fatal(err)
		}
		octtest.SameBits(t, octtest.Read(t, out.Levels[0].Array), want)
	}
}

func TestAIPOfAllTypes(t *testing.T) {
	shape, chunks := []int{7, 20, 30}, []int{7, 16, 16}
	t.Run("uint8", func(t *testing.T) { testType(t, shape, chunks, func(i int) uint8 { return uint8(i * 31) }) })
	t.Run("int8", func(t *testing.T) { testType(t, shape, chunks, func(i int) int8 { return int8(i * 31) }) })
	t.Run("int16", func(t *testing.T) { testType(t, shape, chunks, func(i int) int16 { return int16(i * 7919) }) })
	t.Run("uint32", func(t *testing.T) { testType(t, shape, chunks, func(i int) uint32 { return uint32(i) * 2654435761 }) })
	t.Run("int32", func(t *testing.T) {
		testType(t, shape, chunks, func(i int) int32 { return int32(uint32(i) * 2654435761) })
	})
	t.Run("uint64", func(t *testing.T) { testType(t, shape, chunks, func(i int) uint64 { return uint64(i) << 40 }) })
	t.Run("int64", func(t *testing.T) { testType(t, shape, chunks, func(i int) int64 { return -int64(i) << 40 }) })
	t.Run("float64", func(t *testing.T) { testType(t, shape, chunks, func(i int) float64 { return math.Sqrt(float64(i)) }) })
}

func testType[T dtype.Element](t *testing.T, shape, chunks []int, value func(int) T) {
	in, want := octtest.Made(t, shape, chunks, nil, nil, value)
	out, err := Run(octtest.Ctx, in, store.Memory(), oct.Layout{}, nil, octtest.Small())
	if err != nil {
		t.Fatal(err)
	}
	octtest.SameBits(t, octtest.Read(t, out.Levels[0].Array), want)
}

// NaN and infinities stay where they are, are counted, and the picture leaves
// them out.
func TestAIPOfNonFiniteVoxels(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	in, want := octtest.Made(t, []int{4, 16, 16}, []int{4, 8, 8}, nil, nil, func(i int) float32 {
		switch i {
		case 5, 256 + 5, 300:
			return nan
		case 700:
			return inf
		}
		return float32(i % 256)
	})
	m := &meter.Meter{}
	var picture bytes.Buffer
	out, err := Run(octtest.Ctx, in, store.Memory(), oct.Layout{}, &Picture{To: &picture}, oct.Resources{Workers: 1, Mem: 64 << 20, Meter: m})
	if err != nil {
		t.Fatal(err)
	}
	got := octtest.Read(t, out.Levels[0].Array)
	octtest.SameBits(t, got, want)
	if got[5] == got[5] || got[300-256] == got[300-256] || !math.IsInf(float64(got[700-512]), 1) {
		t.Errorf("pixels %v, %v, %v; want NaN, NaN, +Inf", got[5], got[44], got[188])
	}
	if m.NonFinite() != 4 {
		t.Errorf("%d voxels counted, want 4", m.NonFinite())
	}
	im, err := png.Decode(&picture)
	if err != nil {
		t.Fatal(err)
	}
	if g := im.(*image.Gray16).Gray16At(5, 0).Y; g != 0 {
		t.Errorf("a NaN pixel is %d in the picture, want 0", g)
	}
}

// The percentiles of the picture are those of the numbers: NaN is left out.
func TestPictureLeavesNaNOut(t *testing.T) {
	nan := func(k int) bool { return k%5 == 0 }
	in, want := octtest.Made(t, []int{2, 40, 50}, []int{2, 16, 20}, nil, nil, func(i int) float32 {
		if k := i % 2000; nan(k) {
			return float32(math.NaN())
		}
		return float32(i%2000*7919%2003)*0.5 - 100
	})
	var picture bytes.Buffer
	if _, err := Run(octtest.Ctx, in, store.Memory(), oct.Layout{}, &Picture{To: &picture}, octtest.Small()); err != nil {
		t.Fatal(err)
	}
	var all []float64
	for _, v := range want {
		if v == v {
			all = append(all, float64(v))
		}
	}
	slices.Sort(all)
	at := func(p float64) float64 {
		pos := float64(len(all)-1) * p / 100
		k := int(pos)
		return all[k] + (all[k+1]-all[k])*(pos-float64(k))
	}
	lo, hi := at(0.1), at(99.9)
	im, err := png.Decode(&picture)
	if err != nil {
		t.Fatal(err)
	}
	for k, v := range want {
		w := uint16(0)
		if !nan(k) {
			w = uint16(math.RoundToEven((min(max(float64(v), lo), hi) - lo) / (hi - lo) * 65535))
		}
		if g := im.(*image.Gray16).Gray16At(k%50, k/50).Y; g != w {
			t.Fatalf("pixel %d, %v between %v and %v: %d, want %d", k, v, lo, hi, g, w)
		}
	}
}

func TestAIPOfConstantImage(t *testing.T) {
	in, _ := octtest.Made(t, []int{4, 16, 16}, []int{4, 16, 16}, nil, nil, func(int) uint8 { return 7 })
	var picture bytes.Buffer
	if _, err := Run(octtest.Ctx, in, store.Memory(), oct.Layout{}, &Picture{To: &picture}, octtest.Small()); err != nil {
		t.Fatal(err)
	}
	im, err := png.Decode(&picture)
	if err != nil {
		t.Fatal(err)
	}
	if g := im.(*image.Gray16).Gray16At(3, 3).Y; g != 0 {
		t.Errorf("a constant image is %d in the picture, want 0", g)
	}
}

func TestAIPRefuses(t *testing.T) {
	st := store.Memory()
	w, err := ngff.Create(octtest.Ctx, st, "", ngff.ImageSpec{Format: 2, Shape: []int{8, 8}, Chunks: []int{8, 8}, DType: dtype.Uint8,
		Axes: ngff.SpaceAxes("yx", "micrometer"), Scale: []float64{1, 1}})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.WriteTile(octtest.Ctx, []int{0, 0}, []int{8, 8}, make([]byte, 64)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(octtest.Ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := Run(octtest.Ctx, octtest.Open(t, st), store.Memory(), oct.Layout{}, nil, octtest.Small()); !errors.Is(err, oct.ErrInput) || !strings.Contains(err.Error(), "2 axes") {
		t.Errorf("a 2-D image: %v", err)
	}
	in, _ := octtest.Made(t, []int{64, 64, 64}, []int{64, 64, 64}, nil, codec.Chain{codec.CRC32C()}, func(int) float32 { return 1 })
	if _, err := Run(octtest.Ctx, in, store.Memory(), oct.Layout{}, nil, oct.Resources{Workers: 1, Mem: 1 << 20}); err == nil || !strings.Contains(err.Error(), "--mem") {
		t.Errorf("a chunk larger than the memory: %v", err)
	}
}

func TestAIPStopsWithItsContext(t *testing.T) {
	in, _ := octtest.Made(t, []int{4, 64, 64}, []int{4, 8, 8}, nil, nil, func(int) float32 { return 1 })
	c, cancel := context.WithCancel(octtest.Ctx)
	_, err := Run(c, in, store.Memory(), oct.Layout{}, nil, oct.Resources{Workers: 2, Mem: 64 << 20, Progress: func(int64) { cancel() }})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the cancellation", err)
	}
}

// A chunk that may not be read is the input's fault, an output that may not be
// written is not.
func TestAIPWithoutPermission(t *testing.T) {
	in, _ := octtest.Made(t, []int{4, 16, 16}, []int{4, 8, 8}, nil, nil, func(int) uint8 { return 7 })
	unreadable := octtest.Open(t, octtest.Locked{Store: in.Group.Store()})
	if _, err := Run(octtest.Ctx, unreadable, store.Memory(), oct.Layout{}, nil, octtest.Small()); !errors.Is(err, oct.ErrInput) || !errors.Is(err, fs.ErrPermission) {
		t.Errorf("chunks that may not be read: %v, want ErrInput and ErrPermission", err)
	}
	if _, err := Run(octtest.Ctx, in, octtest.Unwritable{Writer: store.Memory()}, oct.Layout{}, nil, octtest.Small()); errors.Is(err, oct.ErrInput) || !errors.Is(err, fs.ErrPermission) {
		t.Errorf("an output that may not be written: %v, want ErrPermission without ErrInput", err)
	}
}

// The picture of a wide mosaic is made of as many rows at a time as fit, and is
// the same picture.
func TestPictureInBands(t *testing.T) {
	in, _ := octtest.Made(t, []int{2, 64, 7200}, []int{2, 32, 32}, nil, nil, func(i int) uint16 { return uint16(i * 7919) })
	var narrow, whole bytes.Buffer
	out, err := Run(octtest.Ctx, in, store.Memory(), oct.Layout{}, &Picture{To: &narrow, ScaleBar: true}, oct.Resources{Workers: 1, Mem: 2 << 20})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Run(octtest.Ctx, in, store.Memory(), oct.Layout{}, &Picture{To: &whole, ScaleBar: true}, octtest.Small()); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(narrow.Bytes(), whole.Bytes()) {
		t.Error("the picture depends on the memory")
	}
	a := out.Levels[0].Array
	for mem, want := range map[int64]int{1 << 30: 32, 2 << 20: 7, 1 << 10: 1} {
		if got := oct.BandRows(a, mem); got != want {
			t.Errorf("%d bytes of memory: %d rows at a time, want %d", mem, got, want)
		}
	}
}

// The scale bar stands below the picture, whose own pixels stay as they are, and is as long as it says. A picture
// that is too narrow has none.
func TestScaleBar(t *testing.T) {
	for _, c := range []struct {
		width, bar int // px; of voxels of 2 µm (see octtest.Made)
	}{{640, 250}, {95, 0}, {96, 25}} {
		in, _ := octtest.Made(t, []int{2, 64, c.width}, []int{2, 32, 32}, nil, nil, func(i int) uint16 { return uint16(i * 7919) })
		var pictures [2]image.Image
		for i, scaleBar := range []bool{false, true} {
			var b bytes.Buffer
			if _, err := Run(octtest.Ctx, in, store.Memory(), oct.Layout{}, &Picture{To: &b, ScaleBar: scaleBar}, octtest.Small()); err != nil {
				t.Fatal(err)
			}
			var err error
			if pictures[i], err = png.Decode(&b); err != nil {
				t.Fatal(err)
			}
		}
		plain, barred := pictures[0].(*image.Gray16), pictures[1].(*image.Gray16)
		if plain.Rect != image.Rect(0, 0, c.width, 64) || (barred.Rect.Dy() > 64) != (c.bar > 0) || !bytes.Equal(plain.Pix, barred.Pix[:len(plain.Pix)]) {
			t.Fatalf("%v without a bar, %v with one: want the same rows and more below", plain.Rect, barred.Rect)
		}
		most := 0
		text := false
		for y := 64; y < barred.Rect.Dy(); y++ {
			run := 0
			for x := range c.width {
				g := barred.Gray16At(x, y).Y
				if text = text || g > 0 && x > c.bar+12; g == math.MaxUint16 {
					if run++; run > most {
						most = run
					}
				} else {
					run = 0
				}
			}
		}
		if most != c.bar || text != (c.bar > 0) {
			t.Errorf("%d px wide: a bar of %d px, want %d, text beside it: %v", c.width, most, c.bar, text)
		}
	}
}
