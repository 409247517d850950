package zarr_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"strata/pkg/dtype"
	"strata/pkg/mem"
	"strata/pkg/zarr"
	"strata/pkg/zarr/codec"
	"strata/pkg/zarr/store"
)

// The benchmarks' array: 128 MiB of float32, 12 bits of noise.
var benchShape = []int{128, 512, 512}

const benchSize = 128 << 20

func noise12(b []byte) {
	v := dtype.Slice[float32](b)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range v {
		v[i] = float32(r.Uint32() & 0xfff)
	}
}

// benchData is made once: it takes longer than most benchmarks.
var benchData = sync.OnceValue(func() []byte {
	b, err := mem.Alloc(benchSize)
	if err != nil {
		panic(err)
	}
	noise12(b)
	return b
})

// benchArray writes the array under names that say how it is stored.
func benchArray(b *testing.B, flag string, chunks, shard []int, opts ...zarr.Option) *zarr.Array {
	b.Helper()
	codecs, err := codec.FromFlag(flag, dtype.Float32, 3)
	if err != nil {
		b.Fatal(err)
	}
	a, err := zarr.CreateArray(context.Background(), store.Folder(b.TempDir()), "", zarr.Spec{
		Shape: benchShape, Chunks: chunks, Shard: shard, DType: dtype.Float32, Codecs: codecs}, opts...)
	if err != nil {
		b.Fatal(err)
	}
	if err := a.Write(context.Background(), a.Bounds(), benchData()); err != nil {
		b.Fatal(err)
	}
	return a
}

var benchLayouts = []struct {
	name, flag    string
	chunks, shard []int
}{
	{"raw128", "raw", []int{128, 128, 128}, nil},
	{"raw64", "raw", []int{64, 64, 64}, nil},
	{"zstd128", "zstd:3", []int{128, 128, 128}, nil},
	{"zstd64", "zstd:3", []int{64, 64, 64}, nil},
	{"blosc-lz4-128", "blosc-lz4:5", []int{128, 128, 128}, nil},
	{"shard128of32zstd", "zstd:3", []int{32, 32, 32}, []int{128, 128, 128}},
	{"shard128of64raw", "raw", []int{64, 64, 64}, []int{128, 128, 128}},
}

// Streaming: each worker reads chunk after chunk into its own buffer.
func BenchmarkStream(b *testing.B) {
	for _, l := range benchLayouts {
		b.Run(l.name, func(b *testing.B) {
			a := benchArray(b, l.flag, l.chunks, l.shard, zarr.Workers(1))
			var regions []zarr.Region
			unit := a.Chunks()
			for z := 0; z < benchShape[0]; z += unit[0] {
				for y := 0; y < benchShape[1]; y += unit[1] {
					for x := 0; x < benchShape[2]; x += unit[2] {
						regions = append(regions, zarr.Region{Start: []int{z, y, x}, Shape: unit})
					}
				}
			}
			bufs := [2][]byte{}
			for i := range bufs {
				bufs[i], _ = mem.Alloc(4 * unit[0] * unit[1] * unit[2])
				defer mem.Free(bufs[i])
			}
			b.SetBytes(benchSize)
			b.ReportAllocs()
			for b.Loop() {
				var wg sync.WaitGroup
				for w := range 2 {
					wg.Go(func() {
						for i := w; i < len(regions); i += 2 {
							if err := a.Read(b.Context(), regions[i], bufs[w]); err != nil {
								b.Error(err)
							}
						}
					})
				}
				wg.Wait()
			}
		})
	}
}

// The floor for raw chunks: nothing but pread of whole files, in pieces.
func BenchmarkPread(b *testing.B) {
	for _, l := range benchLayouts[:2] {
		for _, piece := range []int{1 << 20, 8 << 20} {
			b.Run(fmt.Sprintf("%s/%dMiB", l.name, piece>>20), func(b *testing.B) {
				a := benchArray(b, l.flag, l.chunks, l.shard)
				var files []string
				err := filepath.WalkDir(a.Location()+"/c", func(path string, d os.DirEntry, err error) error {
					if err == nil && !d.IsDir() {
						files = append(files, path)
					}
					return err
				})
				if err != nil {
					b.Fatal(err)
				}
				bufs := [2][]byte{}
				n := 4 * l.chunks[0] * l.chunks[1] * l.chunks[2]
				for i := range bufs {
					bufs[i], _ = mem.Alloc(n)
					defer mem.Free(bufs[i])
				}
				b.SetBytes(benchSize)
				for b.Loop() {
					var wg sync.WaitGroup
					for w := range 2 {
						wg.Go(func() {
							for i := w; i < len(files); i += 2 {
								fd, err := unix.Open(files[i], unix.O_RDONLY, 0)
								if err != nil {
									b.Error(err)
								}
								for off := 0; off < n; off += piece {
									if _, err := unix.Pread(fd, bufs[w][off:min(off+piece, n)], int64(off)); err != nil {
										b.Error(err)
									}
								}
								unix.Close(fd)
							}
						})
					}
					wg.Wait()
				}
			})
		}
	}
}

// The whole array in one call, into memory that was used before.
func BenchmarkFull(b *testing.B) {
	for _, l := range benchLayouts {
		b.Run(l.name, func(b *testing.B) {
			a := benchArray(b, l.flag, l.chunks, l.shard, zarr.Workers(2))
			dst, err := mem.Alloc(benchSize)
			if err != nil {
				b.Fatal(err)
			}
			defer mem.Free(dst)
			b.SetBytes(benchSize)
			b.ReportAllocs()
			for b.Loop() {
				if err := a.Read(b.Context(), a.Bounds(), dst); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// One 64³ at a random place, and one plane.
func BenchmarkPart(b *testing.B) {
	for _, l := range benchLayouts {
		a := (*zarr.Array)(nil)
		for _, shape := range [][]int{{64, 64, 64}, {1, 512, 512}} {
			b.Run(fmt.Sprintf("%s/%s", l.name, strings.Join(strings.Fields(strings.Trim(fmt.Sprint(shape), "[]")), "x")), func(b *testing.B) {
				a = benchArray(b, l.flag, l.chunks, l.shard, zarr.Workers(2))
				r := rand.New(rand.NewPCG(1, 1))
				reg := zarr.Region{Start: make([]int, 3), Shape: shape}
				dst := make([]byte, 4*shape[0]*shape[1]*shape[2])
				b.SetBytes(int64(len(dst)))
				b.ReportAllocs()
				for b.Loop() {
					for d := range reg.Start {
						reg.Start[d] = r.IntN(benchShape[d] - shape[d] + 1)
					}
					if err := a.Read(b.Context(), reg, dst); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func BenchmarkWrite(b *testing.B) {
	for _, l := range benchLayouts {
		b.Run(l.name, func(b *testing.B) {
			a := benchArray(b, l.flag, l.chunks, l.shard, zarr.Workers(2))
			b.SetBytes(benchSize)
			b.ReportAllocs()
			for b.Loop() {
				if err := a.Write(b.Context(), a.Bounds(), benchData()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkOpen(b *testing.B) {
	for _, l := range benchLayouts[4:6] {
		b.Run(l.name, func(b *testing.B) {
			a := benchArray(b, l.flag, l.chunks, l.shard)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := zarr.OpenArray(b.Context(), a.Store(), ""); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
