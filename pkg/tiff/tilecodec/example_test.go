package tilecodec_test

import (
	"context"
	"fmt"
	"log"

	"strata/pkg/dtype"
	"strata/pkg/tiff/tilecodec"
)

// A tile of 16-bit samples is stored as a big-endian file with LZW and a predictor has it, and read again.
func Example() {
	f := tilecodec.Format{Compression: tilecodec.LZW, Predictor: tilecodec.PredictorHorizontal, Type: dtype.Uint16, Width: 256, Height: 256, BigEndian: true}
	if err := f.CheckEncode(); err != nil {
		log.Fatal(err)
	}
	ramp := make([]uint16, 256*256)
	for i := range ramp {
		ramp[i] = uint16(i%256 + i/256)
	}
	var s tilecodec.Scratch // one for each goroutine
	stored, err := f.Encode(&s, nil, dtype.Bytes(ramp))
	if err != nil {
		log.Fatal(err)
	}
	tile := make([]byte, f.Bytes())
	if err := f.Decode(context.Background(), &s, tile, stored, f.Height); err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(tile), "bytes were stored as", len(stored))
	fmt.Println("row 3 begins", dtype.Slice[uint16](tile)[3*256:][:4])
	// Output:
	// 131072 bytes were stored as 1396
	// row 3 begins [3 4 5 6]
}

// What cannot be decoded is known before any tile is read.
func ExampleFormat_Check() {
	f := tilecodec.Format{Compression: 50001, Type: dtype.Uint8, Samples: 3, Width: 256, Height: 256}
	fmt.Println(f.Check())
	f.Compression, f.Predictor = tilecodec.Deflate, tilecodec.PredictorFloat
	fmt.Println(f.Check())
	// Output:
	// compression 50001 (WebP) is not supported
	// predictor 3, for floating point numbers, with samples of uint8
}
