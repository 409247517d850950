package czi_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"strata/pkg/czi"
	"strata/tests/tiffcorpus"
)

// noise fills memory with numbers that compress to about a half.
func noise(seed uint64, b []byte) {
	r := rand.New(rand.NewPCG(seed, 1))
	for i := range b {
		b[i] = byte(r.Uint32() & 15)
	}
}

// grid is a mosaic of tiles of 40 × 30 pixels, 36 and 27 apart, of two channels and scenes.
func grid(pixel czi.PixelType) (n int, fill func(i int, t *czi.Tile) error) {
	return 24, func(i int, t *czi.Tile) error {
		t.Scene, t.C, t.M = i/12, i/6%2, i%6
		t.X, t.Y = -20+1000*t.Scene+i%3*36, -7+i/3%2*27
		t.Width, t.Height, t.Pixels = 40, 30, pixel
		t.Stage = &czi.Stage{X: float64(t.X) / 2, Y: float64(t.Y) / 2, Z: 1.5, HasZ: i%2 == 0}
		t.Grow(40 * 30 * pixel.Bytes())
		noise(uint64(i), t.Data)
		return nil
	}
}

var metadata = czi.Metadata{Name: "a & b", Acquired: "2024-01-02T03:04:05", VoxelUM: [3]float64{1.5, .25, .22},
	Objective: czi.Objective{Name: "20x", Magnification: 20, NA: .8},
	Channels:  []czi.Channel{{Name: "DAPI <1>", Color: "0000FF", Fluor: "DAPI", ExcitationNM: 353, EmissionNM: 465}, {Name: "λ", Color: "00FF00"}},
	Scenes:    []czi.SceneInfo{{Index: 0, Name: "S1", CenterUM: [2]float64{-1.5, 2}, Centered: true}, {Index: 1, Name: "S2"}}}

// write makes a file of the grid.
func write(t testing.TB, s czi.Spec, pixel czi.PixelType, workers, pyramid int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "out.czi")
	out, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	w, err := czi.NewWriter(out, s)
	if err != nil {
		t.Fatal(err)
	}
	n, fill := grid(pixel)
	if err := w.Add(t.Context(), workers, n, fill); err != nil {
		t.Fatal(err)
	}
	if pyramid > 0 {
		if err := w.AddPyramid(t.Context(), workers, pyramid); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func openBytes(t testing.TB, b []byte) *czi.File {
	t.Helper()
	f, err := czi.Open(t.Context(), tiffcorpus.Memory(b), "w.czi")
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestWrite reads what was written: tiles, positions, metadata, whatever the workers.
func TestWrite(t *testing.T) {
	for _, pixel := range []czi.PixelType{czi.Gray8, czi.Gray16, czi.Gray32Float, czi.Bgr24, czi.Bgr48, czi.Bgr96Float, czi.Gray32, czi.Gray64Float} {
		for _, c := range []czi.Compression{czi.None, czi.Zstd1} {
			b, err := os.ReadFile(write(t, czi.Spec{Metadata: metadata, Compression: c}, pixel, 1, 0))
			if err != nil {
				t.Fatal(err)
			}
			if again, err := os.ReadFile(write(t, czi.Spec{Metadata: metadata, Compression: c}, pixel, 4, 0)); err != nil || !bytes.Equal(b, again) {
				t.Errorf("%s, %s: another file with four workers, %v", pixel, c, err)
			}
			f := openBytes(t, b)
			n, fill := grid(pixel)
			if f.Len() != n {
				t.Fatalf("%d tiles, want %d", f.Len(), n)
			}
			for i := range n {
				var w czi.Tile
				_ = fill(i, &w)
				sb := f.SubBlock(i)
				if sb.Rect != image.Rect(w.X, w.Y, w.X+40, w.Y+30) || sb.S != w.Scene || sb.C != w.C || sb.M != w.M || sb.Compression != c || !sb.Level0() {
					t.Errorf("tile %d is %+v, want %+v", i, sb, w)
				}
				got := make([]byte, sb.Bytes())
				if err := f.ReadSubBlock(t.Context(), i, got); err != nil || !bytes.Equal(got, w.Data) {
					t.Errorf("%s, %s: other pixels of tile %d, %v", pixel, c, i, err)
				}
				if s, ok, err := f.Stage(t.Context(), i); !ok || err != nil || s.X != w.Stage.X || s.Y != w.Stage.Y || s.HasZ != w.Stage.HasZ {
					t.Errorf("stage %+v, %v, %v, want %+v", s, ok, err, *w.Stage)
				}
			}
			if got, err := f.Metadata(t.Context()); err != nil || fmt.Sprintf("%+v", *got) != fmt.Sprintf("%+v", metadata) {
				t.Errorf("metadata %+v, %v, want %+v", got, err, metadata)
			}
		}
	}
}

// TestPyramid compares levels with means of the level above.
func TestPyramid(t *testing.T) {
	b, err := os.ReadFile(write(t, czi.Spec{Compression: czi.Zstd1}, czi.Gray16, 2, 16))
	if err != nil {
		t.Fatal(err)
	}
	f := openBytes(t, b)
	if got := fmt.Sprint(f.Factors(0), f.Factors(czi.AllScenes)); got != "[2 4 8] [2 4 8]" {
		t.Fatalf("levels %s", got)
	}
	read := func(r czi.Region) []byte {
		w, h := r.Size()
		b := make([]byte, 2*w*h)
		if err := f.ReadRegion(t.Context(), r, b); err != nil {
			t.Fatal(err)
		}
		return b
	}
	for _, scene := range []int{0, 1} {
		box := f.Bounds(scene)
		for k := 2; k <= 8; k *= 2 {
			r := czi.Region{Plane: f.Plane(1, 0, 0), Scene: scene, Rect: image.Rectangle{box.Min, box.Min.Add(image.Pt(box.Dx()/k*k, box.Dy()/k*k))}}
			if !f.Covers(scene, r.Plane, k, box) {
				t.Errorf("level %d is not whole", k)
			}
			r.Zoom = 2 / float64(k)
			above := read(r)
			r.Zoom = 1 / float64(k)
			got := read(r)
			w, h := r.Size()
			at := func(x, y int) int { return int(binary.LittleEndian.Uint16(above[2*(y*2*w+x):])) }
			for y := range h {
				for x := range w {
					sum := at(2*x, 2*y) + at(2*x+1, 2*y) + at(2*x, 2*y+1) + at(2*x+1, 2*y+1)
					if v := int(binary.LittleEndian.Uint16(got[2*(y*w+x):])); 4*v > sum+2 || 4*v < sum-2 {
						t.Fatalf("level %d: pixel %d, %d is %d, four of them %d", k, x, y, v, sum)
					}
				}
			}
		}
	}
	if b := f.Bounds(czi.AllScenes); f.Covers(czi.AllScenes, f.Plane(2, 0, 0), 2, b) != true || f.Covers(0, f.Plane(0, 0, 0), 16, f.Bounds(0)) {
		t.Error("a plane without tiles is not covered, or a level that there is not is whole")
	}
}

// broken is an output that fails at a byte.
type broken struct {
	at  int64
	err error
}

func (b broken) WriteAt(p []byte, off int64) (int, error) {
	if off+int64(len(p)) > b.at {
		return 0, b.err
	}
	return len(p), nil
}

// TestWriteFails hands errors of outputs and callers on, and refuses what has no place in a file.
func TestWriteFails(t *testing.T) {
	full := errors.New("no space")
	for _, at := range []int64{100, 2000, 60000} {
		w, err := czi.NewWriter(broken{at, full}, czi.Spec{})
		if err != nil {
			t.Fatal(err)
		}
		n, fill := grid(czi.Gray16)
		if err = w.Add(t.Context(), 3, n, fill); err == nil {
			err = w.Close()
		}
		if !errors.Is(err, full) {
			t.Errorf("an output of %d bytes: %v", at, err)
		}
	}
	if _, err := czi.NewWriter(broken{}, czi.Spec{Compression: czi.JPEGXR}); err == nil || !strings.Contains(err.Error(), "jpegxr") {
		t.Errorf("JPEG XR: %v", err)
	}
	w, err := czi.NewWriter(broken{1 << 40, nil}, czi.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	for _, tile := range []czi.Tile{{}, {Width: 2, Height: 2, Data: make([]byte, 3)}, {Width: 2, Height: 1, Data: make([]byte, 2), X: 1<<31 - 1}, {Width: 1, Height: 1, Pixels: 10, Data: make([]byte, 1)}} {
		if err := w.Add(t.Context(), 1, 1, func(_ int, t *czi.Tile) error { *t = tile; return nil }); err == nil {
			t.Errorf("%+v was written", tile)
		}
	}
	if err := w.AddPyramid(t.Context(), 1, 16); err == nil {
		t.Error("a pyramid was made of what cannot be read")
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := w.Add(ctx, 2, 5, func(int, *czi.Tile) error { return io.EOF }); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end of its context: %v", err)
	}
}
