package jpegxr

import (
	"bytes"
	"testing"
)

// FuzzDecode: any bytes are an image or an error, the same with and without assembly and in a decoder that was used
// before, and nothing outside the image changes.
func FuzzDecode(f *testing.F) {
	for _, g := range goldens(f) {
		f.Add(g.Data)
	}
	for seed := range uint64(40) {
		_, src, _, _, _ := wild(seed)
		f.Add(src)
	}
	var used Decoder
	f.Fuzz(func(t *testing.T, src []byte) {
		h, err := ReadHeader(src)
		if err != nil || h.Width > 1<<14 || h.Height > 1<<14 || h.Width*h.Height > 1<<18 {
			return
		}
		row := h.Width * h.Format.Size()
		stride := row + 3
		decode := func(d *Decoder) ([]byte, error) {
			dst := bytes.Repeat([]byte{0xA5}, stride*h.Height+9)
			err := d.Decode(t.Context(), dst, stride, src)
			for y := range h.Height {
				if !bytes.Equal(dst[y*stride+row:][:3], []byte{0xA5, 0xA5, 0xA5}) {
					t.Fatalf("bytes behind row %d changed", y)
				}
			}
			return dst, err
		}
		got, err := decode(&used)
		scalar(func() {
			again, err2 := decode(new(Decoder))
			if (err == nil) != (err2 == nil) || err != nil && err.Error() != err2.Error() || !bytes.Equal(got, again) {
				t.Fatalf("%v; without assembly %v", err, err2)
			}
		})
	})
}
