package tiffwriter_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"strata/pkg/dtype"
	"strata/pkg/mem"
	"strata/pkg/tiff"
	"strata/pkg/tiff/tiffstore"
	"strata/pkg/tiff/tiffwriter"
	"strata/pkg/tiff/tilecodec"
	"strata/pkg/zarr"
	"strata/tests/tiffcorpus"
)

// memory is a file in memory. Writes fail from number fail on, unless that is negative.
type memory struct {
	mu   sync.Mutex
	b    []byte
	fail int
}

var errFull = errors.New("no space left")

func (m *memory) WriteAt(p []byte, off int64) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fail == 0 {
		return 0, errFull
	}
	m.fail--
	if need := int(off) + len(p); need > len(m.b) {
		m.b = append(m.b, make([]byte, need-len(m.b))...)
	}
	return copy(m.b[off:], p), nil
}

// samples are random elements of a spec's image: planes, rows, pixels, samples.
func samples(s tiffwriter.Spec, seed uint64) []byte {
	r := rand.New(rand.NewPCG(seed, 0))
	n := s.Image.Times * s.Image.Channels * s.Image.Depths * s.Height * s.Width * s.Samples
	b := make([]byte, n*s.Type.Size())
	for i := range n {
		switch at := b[i*s.Type.Size():]; s.Type {
		case dtype.Float32:
			dtype.Slice[float32](at[:4])[0] = r.Float32()
		case dtype.Float64:
			dtype.Slice[float64](at[:8])[0] = r.Float64()
		default:
			for k := range s.Type.Size() {
				at[k] = byte(r.Uint32())
			}
		}
	}
	return b
}

// write writes an image and returns the file.
func write(ctx context.Context, s tiffwriter.Spec, all []byte, fail int) ([]byte, error) {
	m := &memory{fail: fail}
	w, err := tiffwriter.New(m, s)
	if err != nil {
		return nil, err
	}
	defer w.Abort()
	row := s.Width * s.Samples * s.Type.Size()
	for w.Next() {
		b := w.Band()
		plane := (b.Time*s.Image.Channels+b.Channel)*s.Image.Depths + b.Depth
		for z := range b.Depths {
			copy(b.Data[z*b.Rows*row:(z+1)*b.Rows*row], all[((plane+z)*s.Height+b.Row)*row:])
		}
		if err := w.Write(ctx); err != nil {
			return nil, err
		}
	}
	return m.b, w.Close()
}

// page reads all samples of a page.
func page(t *testing.T, st *tiffstore.Store, key string) []byte {
	t.Helper()
	a, err := zarr.OpenArray(t.Context(), st, key)
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, mem.Product(append(a.Shape(), a.DType().Size())...))
	if err := a.Read(t.Context(), a.Bounds(), b); err != nil {
		t.Fatal(err)
	}
	return b
}

// means halves rows of pixels by the definition: the mean of 2 × 2, rounded half to even.
func means(b []byte, w, h, samples int, t dtype.Type) []byte {
	n := t.Size()
	var out []byte
	get := func(y, x, s int) (v float64) {
		at := ((y*w+x)*samples + s) * n
		dtype.Each(b[at:at+n], t, func(x float64) { v = x })
		return v
	}
	for y := range h / 2 {
		for x := range w / 2 {
			for s := range samples {
				sum := 0.0
				if t == dtype.Float32 {
					f := func(y, x int) float32 { return float32(get(y, x, s)) }
					sum = float64((f(2*y, 2*x)+f(2*y, 2*x+1)+f(2*y+1, 2*x)+f(2*y+1, 2*x+1))/4) * 4
				} else {
					sum = get(2*y, 2*x, s) + get(2*y, 2*x+1, s) + get(2*y+1, 2*x, s) + get(2*y+1, 2*x+1, s)
				}
				v := sum / 4
				if t.IsInteger() {
					v = math.RoundToEven(v)
				}
				e := make([]byte, n)
				if err := dtype.Convert(e, t, dtype.Bytes([]float64{v}), dtype.Float64); err != nil {
					panic(err)
				}
				out = append(out, e...)
			}
		}
	}
	return out
}

// TestWriter reads back what was written, with its levels.
func TestWriter(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	types := []dtype.Type{dtype.Uint8, dtype.Int8, dtype.Uint16, dtype.Int16, dtype.Uint32, dtype.Int32, dtype.Float32, dtype.Float64}
	for i := range 60 {
		s := tiffwriter.Spec{Width: 1 + r.IntN(150), Height: 1 + r.IntN(120), Samples: 1, Type: types[i%len(types)], Tile: 16 << r.IntN(3),
			Image: tiff.Image{Times: 1 + r.IntN(2), Channels: 1 + r.IntN(3), Depths: 1 + r.IntN(4)}, Workers: 1 + r.IntN(3), Planes: 1 + r.IntN(5),
			Compression: []int{tilecodec.None, tilecodec.LZW, tilecodec.Zstd, tilecodec.Deflate, tilecodec.PackBits}[i%5], Predictor: 1 + i/5%2}
		if s.Type.IsFloat() && s.Predictor == 2 {
			s.Predictor = 3
		}
		if s.Type == dtype.Uint8 && i%2 == 0 {
			s.Samples, s.Image.Channels = 3+i/8%2, 1
		}
		s.Levels = r.IntN(min(4, tiffwriter.MaxLevels(s.Width, s.Height)+1))
		all := samples(s, uint64(i))
		b, err := write(t.Context(), s, all, -1)
		if err != nil {
			t.Fatalf("%+v: %v", s, err)
		}
		st, err := tiffstore.Open(t.Context(), tiffcorpus.Memory(b), "x.tif")
		if err != nil {
			t.Fatal(err)
		}
		im := st.Image("")
		if len(st.File().Warnings) > 0 || im.Kind != "ome" || im.Times != s.Image.Times || im.Channels != s.Image.Channels || im.Depths != s.Image.Depths || len(im.Levels) != s.Levels+1 {
			t.Fatalf("%+v: %q, %+v", s, st.File().Warnings, im)
		}
		plane := s.Height * s.Width * s.Samples * s.Type.Size()
		for p := range len(all) / plane {
			want, w, h := all[p*plane:(p+1)*plane], s.Width, s.Height
			for k := 0; k <= s.Levels; k++ {
				key := fmt.Sprintf("pages/%d.%d", p, k-1)
				if k == 0 {
					key = fmt.Sprintf("pages/%d", p)
				}
				if !bytes.Equal(page(t, st, key), want) {
					t.Fatalf("%+v: %s differs", s, key)
				}
				want = means(want, w, h, s.Samples, s.Type)
				w, h = w/2, h/2
			}
		}
	}
}

// TestJPEG writes tiles that share their tables, of grey, RGB and four samples.
func TestJPEG(t *testing.T) {
	for _, n := range []int{1, 3, 4} {
		s := tiffwriter.Spec{Width: 200, Height: 100, Samples: n, Type: dtype.Uint8, Tile: 64, Levels: 1, Compression: tilecodec.JPEG, Quality: 95,
			Image: tiff.Image{Times: 1, Channels: 1, Depths: 1}, Workers: 2}
		all := make([]byte, 200*100*n)
		for i := range all {
			all[i] = byte(40*(i%n) + i/n%200/4 + i/n/200/2)
		}
		b, err := write(t.Context(), s, all, -1)
		if err != nil {
			t.Fatal(err)
		}
		st, err := tiffstore.Open(t.Context(), tiffcorpus.Memory(b), "x.tif")
		if err != nil {
			t.Fatal(err)
		}
		if tables, err := st.File().Pages[0].Tables(t.Context()); len(tables) < 100 || err != nil {
			t.Errorf("%d bytes of tables, %v", len(tables), err)
		}
		sum := 0
		for i, v := range page(t, st, "pages/0") {
			d := int(v) - int(all[i])
			sum += d * d
		}
		if mse := float64(sum) / float64(len(all)); mse > 4 {
			t.Errorf("%d samples: mean square error %.1f", n, mse)
		}
	}
}

// TestSameBytes writes an image with other numbers of goroutines, and planes at a time.
func TestSameBytes(t *testing.T) {
	s := tiffwriter.Spec{Width: 300, Height: 200, Samples: 1, Type: dtype.Uint16, Tile: 32, Levels: 3, Compression: tilecodec.Zstd, Predictor: 2,
		Image: tiff.Image{Times: 1, Channels: 1, Depths: 5}, Workers: 1, Planes: 5}
	all := samples(s, 1)
	want, err := write(t.Context(), s, all, -1)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{2, 3, 7} {
		s.Workers = n
		if got, err := write(t.Context(), s, all, -1); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%d goroutines: other bytes, %v", n, err)
		}
	}
}

// TestFails has every write fail in turn, and the context end.
func TestFails(t *testing.T) {
	s := tiffwriter.Spec{Width: 100, Height: 60, Samples: 1, Type: dtype.Uint8, Tile: 32, Levels: 2, Compression: tilecodec.LZW,
		Image: tiff.Image{Times: 1, Channels: 1, Depths: 2}, Workers: 3}
	all := samples(s, 1)
	for fail := 0; ; fail++ {
		_, err := write(t.Context(), s, all, fail)
		if err == nil {
			if fail < 30 {
				t.Errorf("only %d writes", fail)
			}
			break
		}
		if !errors.Is(err, errFull) {
			t.Fatalf("write %d: %v", fail, err)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if _, err := write(ctx, s, all, -1); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// TestBudget takes fewer planes at a time where memory is short, and refuses what no memory is enough for.
func TestBudget(t *testing.T) {
	s := tiffwriter.Spec{Width: 1000, Height: 64, Samples: 1, Type: dtype.Uint8, Tile: 64, Image: tiff.Image{Times: 1, Channels: 1, Depths: 8}, Planes: 8, Workers: 1}
	s.Budget = s.Bytes() + 3*64000
	w, err := tiffwriter.New(&memory{fail: -1}, s)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	if w.Next(); w.Band().Depths != 4 {
		t.Errorf("%d planes at a time", w.Band().Depths)
	}
	s.Budget = s.Bytes() - 1
	if _, err := tiffwriter.New(&memory{}, s); !errors.Is(err, mem.ErrBudget) {
		t.Errorf("%v", err)
	}
}

func TestRefuses(t *testing.T) {
	good := tiffwriter.Spec{Width: 10, Height: 10, Samples: 1, Type: dtype.Uint8, Tile: 16}
	for text, change := range map[string]func(*tiffwriter.Spec){
		"multiple of 16":           func(s *tiffwriter.Spec) { s.Tile = 20 },
		"0 × 10 pixels":            func(s *tiffwriter.Spec) { s.Width = 0 },
		"at most 3":                func(s *tiffwriter.Spec) { s.Levels = 4 },
		"elements of type uint64":  func(s *tiffwriter.Spec) { s.Type = dtype.Uint64 },
		"compression 12345":        func(s *tiffwriter.Spec) { s.Compression = 12345 },
		"can be read, not written": func(s *tiffwriter.Spec) { s.Compression = tilecodec.LZMA },
	} {
		s := good
		change(&s)
		if _, err := tiffwriter.New(&memory{}, s); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%v, want %q", err, text)
		}
	}
}

func TestParseCompression(t *testing.T) {
	for text, want := range map[string]tiffwriter.Compression{
		"zstd": {Name: "zstd", Code: 50000}, "Zstd:7": {Name: "zstd", Code: 50000, Number: 7}, "jpeg:90": {Name: "jpeg", Code: 7, Number: 90}, "none": {Name: "none", Code: 1},
	} {
		if got, err := tiffwriter.ParseCompression(text); got != want || err != nil {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "zip", "lzw:3", "zstd:0", "zstd:23", "jpeg:101", "jpeg:x"} {
		if got, err := tiffwriter.ParseCompression(text); err == nil {
			t.Errorf("%q: %v", text, got)
		}
	}
	if got := []int{tiffwriter.Levels(26420, 19920, 512), tiffwriter.Levels(512, 512, 512), tiffwriter.Levels(100000, 1, 16)}; !slices.Equal(got, []int{6, 0, 0}) {
		t.Errorf("levels %v", got)
	}
}

// Levels of any size that the caller fills are pages of the file, or sub-IFDs.
func TestBelow(t *testing.T) {
	for _, chained := range []bool{true, false} {
		s := tiffwriter.Spec{Width: 100, Height: 90, Samples: 3, Type: dtype.Uint8, Tile: 32, Workers: 2, Plain: chained, Chained: chained, Compression: tilecodec.Zstd,
			Below: [][2]int{{50, 45}, {12, 11}}, Image: tiff.Image{Times: 1, Channels: 1, Depths: 1}}
		m := &memory{fail: -1}
		w, err := tiffwriter.New(m, s)
		if err != nil {
			t.Fatal(err)
		}
		var want [3][]byte
		r := rand.New(rand.NewPCG(5, 6))
		for w.Next() {
			b := w.Band()
			for i := range b.Data {
				b.Data[i] = byte(r.Uint32())
			}
			want[b.Level] = append(want[b.Level], b.Data...)
			if err := w.Write(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		st, err := tiffstore.Open(t.Context(), tiffcorpus.Memory(m.b), "x.tif")
		if err != nil {
			t.Fatal(err)
		}
		keys := map[bool][]string{true: {"pages/0", "pages/1", "pages/2"}, false: {"pages/0", "pages/0.0", "pages/0.1"}}[chained]
		if n := len(st.Image("").Levels); n != 3 {
			t.Errorf("chained %v: %d levels", chained, n)
		}
		for k, key := range keys {
			if !bytes.Equal(page(t, st, key), want[k]) {
				t.Errorf("chained %v: %s differs", chained, key)
			}
		}
	}
	for _, below := range [][][2]int{{{0, 5}}, {{101, 5}}, {{5, 91}}} {
		s := tiffwriter.Spec{Width: 100, Height: 90, Samples: 3, Type: dtype.Uint8, Tile: 32, Below: below}
		if _, err := tiffwriter.New(&memory{fail: -1}, s); err == nil {
			t.Errorf("levels of %v pixels were taken", below)
		}
	}
}
