package tilecodec

import (
	"context"
	"fmt"

	"strata/pkg/dtype"
	"strata/pkg/jpeg"
)

type (
	jpegDecoder = jpeg.Decoder
	jpegEncoder struct{}
)

func (f *Format) checkJPEG() error {
	switch {
	case f.Type != dtype.Uint8 || f.packed():
		return fmt.Errorf("JPEG with samples of %d bits, %s, is not supported (must be 8, uint8)", f.bits(), f.Type)
	case f.samples() > 4:
		return fmt.Errorf("JPEG with %d samples per pixel (must be 1 to 4)", f.samples())
	case f.Width > maxJPEGSide || f.rows() > maxJPEGSide:
		return fmt.Errorf("JPEG tiles of %d×%d pixels (at most %d each way)", f.Width, f.rows(), maxJPEGSide)
	}
	return nil
}

// jpegColor says what becomes of the components. In TIFF that follows from the photometric interpretation.
func (f *Format) jpegColor() jpeg.Color {
	if f.Photometric == photometricYCC && f.samples() == 3 {
		return jpeg.ToRGB
	}
	return jpeg.AsStored
}

func (f *Format) decodeJPEG(ctx context.Context, s *Scratch, dst, src []byte) (rows int, err error) {
	return s.dec.jpeg.Decode(ctx, dst, f.Tables, src, jpeg.Config{Width: f.Width, Height: f.rows(), Components: f.samples(), Color: f.jpegColor()})
}

func (f *Format) encodeJPEG(s *Scratch, dst, src []byte) ([]byte, error) {
	return nil, fmt.Errorf("not yet")
}
