package czi

import (
	"context"
	"errors"
)

var errNoJPEGXR = errors.New("JPEG XR is not supported yet")

// decodeJPEGXR fills dst with the pixels of a JPEG XR file, in the order of CZI, and returns how many bytes it has: a picture of another
// size is cut off or continued with zeros on the right and below.
func decodeJPEGXR(_ context.Context, _ PixelType, _, _ int, _, _ []byte) (int, error) {
	return 0, errNoJPEGXR
}
