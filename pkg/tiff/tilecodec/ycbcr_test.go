package tilecodec

import (
	"bytes"
	"image/color"
	"math/rand/v2"
	"testing"

	"strata/pkg/dtype"
)

// Data units of every subsampling become the pixels that they stand for, also where the image ends within one.
func TestYCbCr(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 7))
	for _, subsampling := range [][2]int{{1, 1}, {2, 1}, {1, 2}, {2, 2}, {4, 1}, {4, 2}, {4, 4}} {
		h, v := subsampling[0], subsampling[1]
		for _, size := range [][2]int{{16, 16}, {13, 7}, {1, 1}, {3, 9}} {
			f := Format{Compression: None, Type: dtype.Uint8, Samples: 3, Width: size[0], Height: size[1], Photometric: 6, Subsampling: subsampling}
			across, down := (f.Width+h-1)/h, (f.Height+v-1)/v
			stored := make([]byte, across*down*(h*v+2))
			for i := range stored {
				stored[i] = byte(r.Uint32())
			}
			want := make([]byte, 0, f.Bytes())
			for y := range f.Height {
				for x := range f.Width {
					u := stored[(y/v*across+x/h)*(h*v+2):][:h*v+2]
					red, green, blue := color.YCbCrToRGB(u[y%v*h+x%h], u[h*v], u[h*v+1])
					want = append(want, red, green, blue)
				}
			}
			for _, compression := range []int{None, LZW} {
				if f.Compression = compression; compression == LZW {
					stored = new(lzwEncoder).encode(nil, stored)
				}
				got := make([]byte, f.Bytes())
				if err := f.Decode(t.Context(), new(Scratch), got, stored, f.Height); err != nil || !bytes.Equal(got, want) {
					t.Errorf("%v, %v, compression %d: %v", subsampling, size, compression, err)
				}
			}
		}
	}
}
