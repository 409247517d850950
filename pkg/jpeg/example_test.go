package jpeg_test

import (
	"context"
	"fmt"
	"log"

	"strata/pkg/jpeg"
)

// A tile of a TIFF image: its tables are in the tag JPEGTables, the stream has none.
func ExampleDecoder_Decode() {
	const size = 64
	tile := make([]byte, size*size*3)
	for i := range tile {
		tile[i] = byte(i / 3 % size * 4) // a grey slope
	}
	o := jpeg.Options{Quality: 90, Color: jpeg.ToRGB, Subsampling: [2]int{2, 2}, Abbreviated: true}
	var encoder jpeg.Encoder
	stream, err := encoder.Encode(nil, tile, size, size, 3, o)
	if err != nil {
		log.Fatal(err)
	}

	var decoder jpeg.Decoder // one for each worker
	dst := make([]byte, len(tile))
	rows, err := decoder.Decode(context.Background(), dst, jpeg.Tables(o, 3), stream, jpeg.Config{Width: size, Height: size, Components: 3, Color: jpeg.ToRGB})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(rows, "rows; the pixel in the middle of the first is", dst[3*size/2:][:3])
	// Output: 64 rows; the pixel in the middle of the first is [128 128 128]
}

// What a stream holds, before there is memory for it.
func ExampleReadHeader() {
	var encoder jpeg.Encoder
	stream, err := encoder.Encode(nil, make([]byte, 40*30*3), 40, 30, 3, jpeg.Options{Color: jpeg.ToRGB, Subsampling: [2]int{2, 1}})
	if err != nil {
		log.Fatal(err)
	}
	h, err := jpeg.ReadHeader(stream)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%d×%d, %d components, sampling factors %v\n", h.Width, h.Height, h.Components, h.Sampling)
	// Output: 40×30, 3 components, sampling factors [[2 1] [1 1] [1 1]]
}
