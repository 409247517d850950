package tilecodec

import (
	"fmt"

	"strata/pkg/jpeg2000"
)

func (f *Format) checkJPEG2000() error {
	if !f.Type.IsInteger() || f.Type.Size() > 4 {
		return fmt.Errorf("JPEG 2000 with samples of %s is not supported (must be integers of at most 32 bits)", f.Type)
	}
	return nil
}

func (f *Format) decodeJPEG2000(dst, src []byte) (rows int, err error) {
	err = jpeg2000.Decode(dst, src, jpeg2000.Config{Width: f.Width, Height: f.rows(), Components: f.samples(), Size: f.Type.Size()})
	if err == nil && f.samples() == 3 && f.Type.Size() == 1 && (f.Compression == JPEG2000YCbCr || f.Photometric == photometricYCC) {
		rgb(dst)
	}
	return f.rows(), err
}
