package jpegxr_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"log"
	"os"

	"strata/pkg/jpegxr"
)

// A tile as CZI files have it.
func ExampleDecoder_Decode() {
	src, err := os.ReadFile("testdata/tile.jxr")
	if err != nil {
		log.Fatal(err)
	}
	h, err := jpegxr.ReadHeader(src) // allocates nothing for the image
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%d×%d pixels of %v, %d bytes each\n", h.Width, h.Height, h.Format, h.Format.Size())

	var d jpegxr.Decoder // one for each worker
	stride := h.Width * h.Format.Size()
	pixels := make([]byte, h.Height*stride)
	if err := d.Decode(context.Background(), pixels, stride, src); err != nil {
		log.Fatal(err)
	}
	fmt.Println("the first is", binary.LittleEndian.Uint16(pixels))
	// Output:
	// 56×40 pixels of Gray16, 2 bytes each
	// the first is 2276
}
