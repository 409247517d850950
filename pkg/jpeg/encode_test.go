package jpeg

import (
	"bytes"
	"os"
	"testing"
)

// TestEncodeAsCjpeg: a stream is that of libjpeg-turbo's cjpeg, from the frame header on and in its quantization tables.
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
	} {
		want, err := os.ReadFile("testdata/cjpeg_" + name + ".jpg")
		if err != nil {
			t.Fatal(err)
		}
		pixels, n := rgb, 3
		if name == "grey" {
			pixels, n = green, 1
		}
		got, err := e.Encode(nil, pixels, 61, 45, n, o)
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
