package jpeg

import (
	"bytes"
	"image"
	stdjpeg "image/jpeg"
	"os"
	"strings"
	"testing"
)

// TestEncodeAsCjpeg: a stream is that of libjpeg-turbo's cjpeg, from the frame header on and in its quantization
// tables.
func TestEncodeAsCjpeg(t *testing.T) {
	rgb, err := os.ReadFile("testdata/picture.rgb")
	if err != nil {
		t.Fatal(err)
	}
	green := make([]byte, len(rgb)/3)
	every(green, rgb[1:], 3)
	var e Encoder
	for name, o := range map[string]Options{
		"1x1": {Color: ToRGB}, "2x1": {Color: ToRGB, Subsampling: [2]int{2, 1}}, "2x2": {Color: ToRGB, Subsampling: [2]int{2, 2}},
		"q1": {Color: ToRGB, Subsampling: [2]int{2, 2}, Quality: 1}, "q30": {Color: ToRGB, Subsampling: [2]int{2, 2}, Quality: 30},
		"q95": {Color: ToRGB, Subsampling: [2]int{2, 2}, Quality: 95}, "q100": {Color: ToRGB, Quality: 100}, "grey": {}, "rgb": {},
		"part": {Color: ToRGB, Subsampling: [2]int{2, 2}},
	} {
		want, err := os.ReadFile("testdata/cjpeg_" + name + ".jpg")
		if err != nil {
			t.Fatal(err)
		}
		pixels, w, h, n := rgb, 61, 45, 3
		switch name {
		case "grey":
			pixels, n = green, 1
		case "part":
			pixels, w, h = nil, 37, 19
			for y := range h {
				pixels = append(pixels, rgb[y*61*3:][:w*3]...)
			}
		}
		got, err := e.Encode(nil, pixels, w, h, n, o)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		data := func(stream []byte) []byte { // behind the scan header
			return stream[bytes.Index(stream, []byte{0xFF, markSOS}):][6+2*n:]
		}
		if !bytes.Equal(data(got), data(want)) {
			t.Errorf("%s: other data than cjpeg's", name)
		}
	}
}

// TestQuality: what is encoded is decoded to nearly the same, the better the higher the quality, and image/jpeg can
// read it.
func TestQuality(t *testing.T) {
	const w, h = 150, 90
	src := picture(w, h, 3)
	var d Decoder
	for _, o := range []Options{{Color: ToRGB}, {Color: ToRGB, Subsampling: [2]int{2, 1}}, {Color: ToRGB, Subsampling: [2]int{2, 2}}, {}} {
		best := 15.0
		for _, o.Quality = range []int{10, 50, 75, 90, 100} {
			stream := encoded(t, src, w, h, 3, o)
			got := psnr(src, decoded(t, &d, nil, stream, Config{Width: w, Height: h, Components: 3, Color: o.Color}))
			if got <= best {
				t.Errorf("%+v: %.1f dB, with lower quality %.1f", o, got, best)
			}
			best = got
			m, err := stdjpeg.Decode(bytes.NewReader(stream))
			if err != nil {
				t.Errorf("%+v: image/jpeg: %v", o, err)
			} else if m.Bounds() != image.Rect(0, 0, w, h) {
				t.Errorf("%+v: image/jpeg: %v", o, m.Bounds())
			}
		}
		if o.Subsampling == [2]int{} && best < 38 || best < 28 {
			t.Errorf("%+v: %.1f dB", o, best)
		}
	}
	four := picture(w, h, 4)
	if got := psnr(four, decoded(t, &d, nil, encoded(t, four, w, h, 4, Options{Quality: 95}), Config{Width: w, Height: h, Components: 4, Color: ToRGB})); got < 35 {
		t.Errorf("four components: %.1f dB", got)
	}
}

func TestEncodeRefused(t *testing.T) {
	src := make([]byte, 64*64*4)
	for want, c := range map[string]struct {
		w, h, n int
		o       Options
	}{
		"2 components":              {8, 8, 2, Options{}},
		"quality 101":               {8, 8, 3, Options{Quality: 101}},
		"quality -1":                {8, 8, 3, Options{Quality: -1}},
		"subsampling by 4, 1":       {8, 8, 3, Options{Color: ToRGB, Subsampling: [2]int{4, 1}}},
		"are not colour difference": {8, 8, 3, Options{Subsampling: [2]int{2, 2}}},
		"an image of 0×8 pixels":    {0, 8, 3, Options{}},
		"an image of 8×65536":       {8, 65536, 3, Options{}},
		"16384 bytes for an image":  {64, 65, 4, Options{}},
	} {
		var e Encoder
		if _, err := e.Encode(nil, src, c.w, c.h, c.n, c.o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; expected: %s", err, want)
		}
	}
	if Tables(Options{Quality: 101}, 3) != nil {
		t.Error("there are tables of options that are refused")
	}
}
