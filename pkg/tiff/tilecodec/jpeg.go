package tilecodec

import (
	"bytes"
	"context"
	"fmt"

	"strata/pkg/dtype"
	"strata/pkg/jpeg"
)

type (
	jpegDecoder = jpeg.Decoder
	jpegEncoder = jpeg.Encoder
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

// jpegColor returns the colour conversion of the components, which in TIFF follows from the photometric
// interpretation.
func (f *Format) jpegColor() jpeg.Color {
	if f.Photometric == photometricYCC && f.samples() == 3 {
		return jpeg.ToRGB
	}
	return jpeg.AsStored
}

func (f *Format) decodeJPEG(ctx context.Context, s *Scratch, dst, src []byte) (rows int, err error) {
	return s.dec.jpeg.Decode(ctx, dst, f.Tables, src, jpeg.Config{Width: f.Width, Height: f.rows(), Components: f.samples(), Color: f.jpegColor()})
}

// jpegOptions returns the options of the encoder.
func (f *Format) jpegOptions() jpeg.Options {
	o := jpeg.Options{Quality: f.Quality, Color: f.jpegColor(), Abbreviated: len(f.Tables) > 0}
	if o.Color == jpeg.ToRGB {
		o.Subsampling[0], o.Subsampling[1] = f.subsampling()
	}
	return o
}

// JPEGTables returns the content of tag 347 for an image whose tiles are encoded in the format. If it is also
// set as Tables, tiles omit the tables. It returns nil if the format cannot encode JPEG tiles.
func (f *Format) JPEGTables() []byte { return jpeg.Tables(f.jpegOptions(), f.samples()) }

func (f *Format) encodeJPEG(s *Scratch, dst, src []byte) ([]byte, error) {
	if len(f.Tables) > 0 && !bytes.Equal(f.Tables, f.JPEGTables()) {
		return nil, fmt.Errorf("JPEGTables (tag 347) are not those of quality %d", f.Quality)
	}
	return s.enc.jpeg.Encode(dst, src, f.Width, len(src)/f.row(), f.samples(), f.jpegOptions())
}
