package tilecodec

import (
	"context"
	"fmt"
	"image/color"

	"strata/pkg/dtype"
	"strata/pkg/mem"
)

// ycc reports whether tiles hold Y, Cb and Cr that are to become RGB here, rather than in a decoder of JPEG.
func (f *Format) ycc() bool {
	return f.Photometric == photometricYCC && f.samples() == 3 && f.family() != JPEG && f.family() != JPEG2000
}

// subsampling returns how many pixels share a Cb and a Cr, across and down.
func (f *Format) subsampling() (h, v int) {
	if f.Subsampling == [2]int{} {
		return 2, 2
	}
	return f.Subsampling[0], f.Subsampling[1]
}

func (f *Format) checkYCC() error {
	if f.Photometric != photometricYCC {
		return nil
	}
	h, v := f.subsampling()
	if !f.ycc() {
		if f.samples() == 1 && f.Subsampling != [2]int{} && (h > 1 || v > 1) {
			return fmt.Errorf("separate planes of YCbCr with subsampling %d×%d are not supported", h, v)
		}
		return nil
	}
	switch {
	case h != 1 && h != 2 && h != 4 || v != 1 && v != 2 && v != 4:
		return fmt.Errorf("YCbCr subsampling %d×%d (must be 1, 2 or 4 each)", h, v)
	case f.Type != dtype.Uint8 || f.packed():
		return fmt.Errorf("YCbCr of %d bits, %s, is not supported (must be 8, uint8)", f.bits(), f.Type)
	case f.predictor() != PredictorNone && (h > 1 || v > 1):
		return fmt.Errorf("YCbCr subsampling %d×%d with predictor %d is not supported", h, v, f.Predictor)
	case f.Depth > 1:
		return fmt.Errorf("YCbCr in tiles of depth %d is not supported", f.Depth)
	}
	return nil
}

// yccUnit returns the number of bytes of a row of data units, which stand for v rows of pixels (TIFF 6.0,
// section 21).
func (f *Format) yccUnit() int {
	h, v := f.subsampling()
	return mem.Product((f.Width+h-1)/h, h*v+2)
}

// yccBytes returns the number of bytes of a tile before it is compressed.
func (f *Format) yccBytes() int {
	_, v := f.subsampling()
	return mem.Product(f.yccUnit(), (f.Height+v-1)/v)
}

// decodeYCC converts the data units of src to rows of RGB and returns their number.
func (f *Format) decodeYCC(ctx context.Context, dst, src []byte) (rows int, err error) {
	h, v := f.subsampling()
	unit, row := f.yccUnit(), f.row()
	for ; rows < f.Height && len(src) >= unit; rows, src = rows+v, src[unit:] {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		for x, at := 0, 0; x < f.Width; x, at = x+h, at+h*v+2 {
			u := src[at : at+h*v+2]
			cb, cr := u[h*v], u[h*v+1]
			for i, y := range u[:h*v] {
				if x, y0 := x+i%h, rows+i/h; x < f.Width && y0 < f.Height {
					p := dst[y0*row+3*x:][:3]
					p[0], p[1], p[2] = color.YCbCrToRGB(y, cb, cr)
				}
			}
		}
	}
	return min(rows, f.Height), nil
}

// rgb converts pixels of Y, Cb and Cr in place.
func rgb(pixels []byte) {
	for ; len(pixels) >= 3; pixels = pixels[3:] {
		pixels[0], pixels[1], pixels[2] = color.YCbCrToRGB(pixels[0], pixels[1], pixels[2])
	}
}
