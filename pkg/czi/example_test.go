package czi_test

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"log"

	"strata/pkg/czi"
)

// memory is a file in memory.
type memory struct{ bytes.Buffer }

func (m *memory) WriteAt(p []byte, off int64) (int, error) {
	for int64(m.Len()) < off+int64(len(p)) {
		m.WriteByte(0)
	}
	return copy(m.Bytes()[off:], p), nil
}

func (m *memory) ReadAt(_ context.Context, p []byte, off int64) (int, error) {
	return bytes.NewReader(m.Bytes()).ReadAt(p, off)
}

func (m *memory) Size() int64 { return int64(m.Len()) }

// Two tiles are written, the second of which lies over the first, and read one by one and put together.
func Example() {
	ctx := context.Background()
	file := new(memory)
	w, err := czi.NewWriter(file, czi.Spec{Compression: czi.Zstd1})
	if err != nil {
		log.Fatal(err)
	}
	err = w.Add(ctx, 2, 2, func(i int, t *czi.Tile) error {
		t.M, t.X, t.Width, t.Height, t.Pixels = i, 3*i, 5, 1, czi.Gray8
		t.Grow(5)
		copy(t.Data, []string{"aaaaa", "bbbbb"}[i])
		return nil
	})
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		log.Fatal(err)
	}

	f, err := czi.Open(ctx, file, "scan.czi")
	if err != nil {
		log.Fatal(err)
	}
	i, ok := f.Tile(0, f.Plane(0, 0, 0), 0)
	tile := make([]byte, f.SubBlock(i).Bytes())
	if err := f.ReadSubBlock(ctx, i, tile); err != nil || !ok {
		log.Fatal(ok, err)
	}
	r := czi.Region{Plane: f.Plane(0, 0, 0), Scene: czi.AllScenes, Rect: image.Rect(-1, 0, 9, 1), Background: []byte(".")}
	plane := make([]byte, 10)
	if err := f.ReadRegion(ctx, r, plane); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%d sub-blocks in %v: %s, %s\n", f.Len(), f.Bounds(czi.AllScenes), tile, plane)
	// Output: 2 sub-blocks in (0,0)-(8,1): aaaaa, .aaabbbbb.
}
