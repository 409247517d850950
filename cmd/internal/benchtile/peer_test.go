package benchtile

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"strata/pkg/dtype"
	"strata/pkg/zarr"
	"strata/pkg/zarr/store"
)

// falsePeer answers as docs/bench-tile.md says, of images of two-byte elements: it reads all tiles and sums what each
// view shows of them. What it is told to do wrong stands in the variable PEER.
func falsePeer() {
	var shape, tile, radius [2]int
	var op string
	var image [][]uint16
	number := 0
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		text := in.Text()
		key, rest, _ := strings.Cut(text, " ")
		switch key {
		case "shape":
			scan(rest, &shape[0], &shape[1])
			for range shape[0] {
				image = append(image, make([]uint16, shape[1]))
			}
		case "tile":
			scan(rest, &tile[0], &tile[1])
		case "radius":
			scan(rest, &radius[0], &radius[1])
		case "op":
			op = rest
		case "file":
			offset, path := 0, ""
			o, p, _ := strings.Cut(rest, " ")
			scan(o, &offset)
			path = p
			b, err := os.ReadFile(path)
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			pixels := dtype.Slice[uint16](slices.Clone(b[offset : offset+tile[0]*tile[1]*2]))
			across := (shape[1] + tile[1] - 1) / tile[1]
			for k, v := range pixels {
				y, x := number/across*tile[0]+k/tile[1], number%across*tile[1]+k%tile[1]
				if y < shape[0] && x < shape[1] {
					image[y][x] = v
				}
			}
			number++
		}
	}
	switch os.Getenv("PEER") {
	case "broken":
		fmt.Fprintln(os.Stderr, "no memory left\nof any kind")
		os.Exit(1)
	case "silent":
		return
	}
	sum, views := uint64(0), 0
	for y := 0; y < shape[0]; y += tile[0] {
		for x := 0; x < shape[1]; x += tile[1] {
			views++
			for j := max(0, y-radius[0]); j < min(shape[0], y+tile[0]+radius[0]); j++ {
				for i := max(0, x-radius[1]); i < min(shape[1], x+tile[1]+radius[1]); i++ {
					sum += uint64(image[j][i])
				}
			}
		}
	}
	if op != "check" {
		sum = 0
	}
	if os.Getenv("PEER") == "wrong" {
		sum++
	}
	fmt.Printf(`{"seconds": 0.5, "cpu": 0.25, "resident": 1048576, "views": %d, "check": "%d"}`, views, sum)
}

func scan(text string, to ...any) {
	if _, err := fmt.Sscan(text, to...); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// What a program in C++ finds is what ours does, for tiles that are no whole number of the image.
func TestOperators(t *testing.T) {
	a, err := zarr.CreateArray(t.Context(), store.Folder(t.TempDir()), "", zarr.Spec{Format: 3, Shape: []int{20, 30}, Chunks: []int{8, 16}, DType: dtype.Uint8})
	if err != nil {
		t.Fatal(err)
	}
	pixels := make([]byte, 600)
	for k := range pixels {
		pixels[k] = byte(k * k / 7)
	}
	if err := a.Write(t.Context(), a.Bounds(), pixels); err != nil {
		t.Fatal(err)
	}
	at := func(y, x int) float64 {
		if y < 0 || x < 0 || y >= 20 || x >= 30 {
			return 0
		}
		return float64(pixels[y*30+x])
	}
	for name, want := range map[string]func(y, x int) float64{
		opMean: func(y, x int) (sum float64) {
			for j := -2; j <= 2; j++ {
				for i := -2; i <= 2; i++ {
					sum += at(y+j, x+i) / 25
				}
			}
			return sum
		},
		opSobel: func(y, x int) float64 {
			dx := at(y-1, x+1) - at(y-1, x-1) + 2*(at(y, x+1)-at(y, x-1)) + at(y+1, x+1) - at(y+1, x-1)
			dy := at(y+1, x-1) - at(y-1, x-1) + 2*(at(y+1, x)-at(y-1, x)) + at(y+1, x+1) - at(y-1, x+1)
			return dx*dx + dy*dy
		},
	} {
		checkOperator(t, a, name, want)
	}
}

func checkOperator(t *testing.T, a *zarr.Array, name string, want func(y, x int) float64) {
	im := &image{levels: []*zarr.Array{a}, down: []float64{1}}
	src, err := im.newSource()
	if err != nil {
		t.Fatal(err)
	}
	p := plan{src: newCounting(src, 0), tile: []int{8, 16}, radii: []int{2, 2}, cache: 1 << 20, threads: 1, views: 2, order: "naive", border: "zero", op: name, mem: 1 << 20}
	s, err := viewerOf(p)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	v := s.(*viewer[uint8])
	for x, err := range v.loader.AllViews(context.Background(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		v.op.apply(x)
		for k, got := range v.op.out {
			y, x := x.Index[0]*8+k/16, x.Index[1]*16+k%16
			w := want(y, x)
			if name == opSobel {
				got *= got
			}
			if d := float64(got) - w; d > 1e-3*w+1e-3 || d < -1e-3*w-1e-3 {
				t.Fatalf("%s at %d, %d: %v, want %v", name, y, x, got, w)
			}
		}
		x.Release()
	}
}
