package tiffstore_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"strata/pkg/dtype"
	"strata/pkg/images"
	"strata/pkg/ngff"
	"strata/pkg/tiff"
	"strata/pkg/tiff/tiffwriter"
	"strata/pkg/tiff/tilecodec"
	"strata/pkg/zarr"
)

// slide writes a slide scan of 1000 × 600 pixels, whose red is its column.
func slide() string {
	path := filepath.Join(os.TempDir(), fmt.Sprintf("slide-%d.tif", os.Getpid()))
	f, err := os.Create(path)
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	w, err := tiffwriter.New(f, tiffwriter.Spec{Image: tiff.Image{Name: "slide", VoxelUM: [3]float64{0, 0.5, 0.5}}, Width: 1000, Height: 600, Samples: 3,
		Type: dtype.Uint8, Tile: 256, Compression: tilecodec.LZW, Predictor: tilecodec.PredictorHorizontal, Levels: 2})
	if err != nil {
		log.Fatal(err)
	}
	for w.Next() {
		for i := range w.Band().Data {
			w.Band().Data[i] = 0
			if i%3 == 0 {
				w.Band().Data[i] = byte(i / 3 % 1000 / 4)
			}
		}
		if err := w.Write(context.Background()); err != nil {
			log.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		log.Fatal(err)
	}
	return path
}

// An image in a file of any format opens by one call.
func Example() {
	ctx := context.Background()
	path := slide()
	defer os.Remove(path)

	st, key, err := images.Open(ctx, path)
	if err != nil {
		log.Fatal(err)
	}
	defer st.Close()
	im, err := ngff.Open(ctx, st, key)
	if err != nil {
		log.Fatal(err)
	}
	for _, l := range im.Levels {
		fmt.Println(l.Array.Shape(), l.Scale)
	}
	red := make([]byte, 5)
	err = im.Levels[0].Array.Read(ctx, zarr.Region{Start: []int{0, 300, 500}, Shape: []int{1, 1, 5}}, red)
	fmt.Println(red, err)
	// Output:
	// [3 600 1000] [1 0.5 0.5]
	// [3 300 500] [1 1 1]
	// [3 150 250] [1 2 2]
	// [125 125 125 125 126] <nil>
}

// Many patches in one call: tiles that several of them touch are decoded once.
func Example_patches() {
	ctx := context.Background()
	path := slide()
	defer os.Remove(path)
	st, _, err := images.Open(ctx, path)
	if err != nil {
		log.Fatal(err)
	}
	defer st.Close()
	page, err := zarr.OpenArray(ctx, st, "pages/0") // (y, x, sample), as it is stored
	if err != nil {
		log.Fatal(err)
	}
	var patches []zarr.Region
	var pixels [][]byte
	for x := 0; x < 900; x += 50 {
		patches = append(patches, zarr.Region{Start: []int{100, x, 0}, Shape: []int{64, 64, 3}})
		pixels = append(pixels, make([]byte, 64*64*3))
	}
	err = page.ReadRegions(ctx, patches, pixels)
	fmt.Println(len(patches), pixels[2][:6], err)
	// Output: 18 [25 0 0 25 0 0] <nil>
}
