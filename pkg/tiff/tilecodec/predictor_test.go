package tilecodec

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// slowSums is what sumRow does, byte by byte.
func slowSums(row []byte, size, stride int, swap bool) []byte {
	out := bytes.Clone(row)
	for at := 0; at < len(out); at += size {
		if swap {
			slices.Reverse(out[at : at+size])
		}
		carry := 0
		for i := at; i < at+size && at >= stride; i++ {
			carry += int(out[i]) + int(out[i-stride])
			out[i] = byte(carry)
			carry >>= 8
		}
	}
	return out
}

// Sums are right for every width, number of samples and length of a row, in place and not, and differences are their
// reverse.
func TestSums(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 3))
	bothWays(t, func(t *testing.T) {
		var masks sumMasks
		for _, size := range []int{1, 2, 4, 8} {
			for samples := 1; samples <= 20; samples++ {
				for _, swap := range []bool{false, true} {
					for _, pixels := range []int{1, 2, 3, 5, 8, 16, 17, 67} {
						masks.set(size, size*samples, swap && size > 1)
						row := make([]byte, pixels*samples*size)
						for i := range row {
							row[i] = byte(r.Uint32())
						}
						name := fmt.Sprintf("%d bytes, %d samples, %d pixels, swap %v", size, samples, pixels, swap)
						want := slowSums(row, size, size*samples, masks.swap)
						got, back := make([]byte, len(row)), make([]byte, len(row))
						if sumRow(got, row, &masks); !bytes.Equal(got, want) {
							t.Fatalf("%s: % x, want % x", name, got, want)
						}
						if differRow(back, got, &masks); !bytes.Equal(back, row) {
							t.Fatalf("%s: differences are % x, want % x", name, back, row)
						}
						if sumRow(row, row, &masks); !bytes.Equal(row, want) {
							t.Fatalf("%s, in place: % x, want % x", name, row, want)
						}
					}
				}
			}
		}
	})
}
