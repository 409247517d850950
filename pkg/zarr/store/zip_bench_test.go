package store

import (
	"archive/zip"
	"context"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// zipFile writes a zip file of stored members, as a Zarr array has them.
func zipFile(b *testing.B, members, size int) (path string, keys []string) {
	b.Helper()
	path = filepath.Join(b.TempDir(), "array.zip")
	f, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	w := zip.NewWriter(f)
	data := make([]byte, size)
	for i := range data {
		data[i] = byte(i * 7)
	}
	for i := range members {
		key := fmt.Sprintf("0/c/%d/%d/%d", i/400, i/20%20, i%20)
		h := &zip.FileHeader{Name: key, CRC32: crc32.ChecksumIEEE(data), CompressedSize64: uint64(size), UncompressedSize64: uint64(size)}
		m, err := w.CreateRaw(h)
		if err == nil {
			_, err = m.Write(data)
		}
		if err != nil {
			b.Fatal(err)
		}
		keys = append(keys, key)
	}
	if err := w.Close(); err != nil {
		b.Fatal(err)
	}
	if err := f.Close(); err != nil {
		b.Fatal(err)
	}
	return path, keys
}

// BenchmarkZip compares this package with archive/zip: opening a file and listing a folder of it, with the memory that
// stays, and reading chunks in random order without their checksums. With more than 65,535 members the file
// is one of zip64.
func BenchmarkZip(b *testing.B) {
	for _, c := range []struct{ members, size int }{{10_000, 64 << 10}, {70_000, 1 << 10}} {
		path, keys := zipFile(b, c.members, c.size)
		name := fmt.Sprintf("%d members of %d KiB/", c.members, c.size>>10)
		b.Run(name+"open/strata", func(b *testing.B) {
			opens(b, func() (io.Closer, error) {
				z, err := Zip(path)
				if err == nil {
					_, err = z.List(context.Background(), "0/c")
				}
				return z, err
			})
		})
		b.Run(name+"open/archive", func(b *testing.B) {
			opens(b, func() (io.Closer, error) {
				z, err := zip.OpenReader(path)
				if err == nil {
					_, err = fs.ReadDir(z, "0/c")
				}
				return z, err
			})
		})
		b.Run(name+"read/strata", func(b *testing.B) {
			z, err := Zip(path)
			if err != nil {
				b.Fatal(err)
			}
			defer z.Close()
			chunks(b, keys, c.size, func(key string, dst []byte) error {
				o, err := z.Open(context.Background(), key)
				if err != nil {
					return err
				}
				_, err = o.ReadAt(context.Background(), dst, 0)
				return err
			})
		})
		b.Run(name+"read/archive", func(b *testing.B) {
			f, err := os.Open(path)
			if err != nil {
				b.Fatal(err)
			}
			defer f.Close()
			z, err := zip.OpenReader(path)
			if err != nil {
				b.Fatal(err)
			}
			defer z.Close()
			files := map[string]*zip.File{}
			for _, m := range z.File {
				files[m.Name] = m
			}
			chunks(b, keys, c.size, func(key string, dst []byte) error {
				off, err := files[key].DataOffset()
				if err != nil {
					return err
				}
				_, err = f.ReadAt(dst, off)
				return err
			})
		})
	}
}

func opens(b *testing.B, open func() (io.Closer, error)) {
	var before, after runtime.MemStats
	for i := 0; b.Loop(); i++ {
		if i == 0 {
			runtime.GC()
			runtime.ReadMemStats(&before)
		}
		z, err := open()
		if err != nil {
			b.Fatal(err)
		}
		if i == 0 {
			runtime.GC()
			runtime.ReadMemStats(&after)
			b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/(1<<20), "MiB-held")
		}
		if err := z.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

func chunks(b *testing.B, keys []string, size int, read func(key string, dst []byte) error) {
	r := rand.New(rand.NewPCG(1, 2))
	dst := make([]byte, size)
	b.SetBytes(int64(size))
	for b.Loop() {
		if err := read(keys[r.IntN(len(keys))], dst); err != nil {
			b.Fatal(err)
		}
	}
}
