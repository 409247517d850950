package jpeg

import (
	"bytes"
	"testing"
)

// FuzzDecode: any stream is a picture or an error, the same for both forms of the kernels, and nothing outside the
// frame changes.
func FuzzDecode(f *testing.F) {
	for _, g := range goldens(f) {
		if len(g.data) < 1500 {
			f.Add([]byte(nil), g.data, byte(1))
			f.Add(tablesOf(f, g.data), cut(f, g.data, isTable), byte(0))
		}
	}
	f.Fuzz(func(t *testing.T, tables, data []byte, color byte) {
		h, err := ReadHeader(data)
		if err != nil || h.Width*h.Height > 1<<18 {
			return
		}
		c := Config{Width: h.Width, Height: h.Height, Components: h.Components, Color: Color(color & 1), Stride: h.Width*h.Components + 1}
		if len(tables) == 0 {
			tables = nil
		}
		var d Decoder
		dst := bytes.Repeat([]byte{0xA5}, c.Stride*c.Height+9)
		rows, err := d.Decode(background, dst, tables, data, c)
		if rows < 0 || rows > c.Height || err == nil && rows != c.Height {
			t.Fatalf("%d rows of %d, %v", rows, c.Height, err)
		}
		for y := range c.Height {
			if dst[(y+1)*c.Stride-1] != 0xA5 {
				t.Fatalf("a byte behind row %d changed", y)
			}
		}
		again := bytes.Repeat([]byte{0xA5}, len(dst))
		scalar(func() {
			rows2, err2 := d.Decode(background, again, tables, data, c)
			if rows2 != rows || (err == nil) != (err2 == nil) || err != nil && err.Error() != err2.Error() || !bytes.Equal(dst, again) {
				t.Fatalf("%d rows, %v; without assembly %d, %v", rows, err, rows2, err2)
			}
		})
	})
}

// FuzzEncode: what is encoded is decoded to nearly the same.
func FuzzEncode(f *testing.F) {
	f.Add([]byte("some bytes that are pixels"), byte(3), byte(1), byte(90))
	f.Add(picture(40, 9, 3), byte(40), byte(2), byte(100))
	f.Fuzz(func(t *testing.T, src []byte, width, kind, quality byte) {
		n := 3
		o := Options{Quality: int(quality)%100 + 1}
		switch kind % 4 {
		case 0:
			n = 1
		case 1:
			o.Color = ToRGB
		case 2:
			o.Color, o.Subsampling = ToRGB, [2]int{2, int(kind>>2)%2 + 1}
		}
		w := max(int(width), 1)
		h := len(src) / (w * n)
		if h == 0 {
			return
		}
		src = src[:w*h*n]
		var d Decoder
		got := decoded(t, &d, nil, encoded(t, src, w, h, n, o), Config{Width: w, Height: h, Components: n, Color: o.Color})
		if o.Quality == 100 && o.Color == AsStored {
			for i := range src {
				if diff := int(src[i]) - int(got[i]); diff < -3 || diff > 3 {
					t.Fatalf("byte %d is %d, was %d", i, got[i], src[i])
				}
			}
		}
	})
}
