//go:build !nocuda

package filelayer_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"

	"strata/pkg/filelayer"
	"strata/pkg/gpu"
	"strata/pkg/settings"
	"strata/pkg/zarr/store"
)

// check ends an example that fails.
func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// scratch is a file that does not exist yet, in a folder of its own.
func scratch() (path string, remove func()) {
	dir, err := os.MkdirTemp("", "gds")
	check(err)
	return filepath.Join(dir, "data"), func() { check(os.RemoveAll(dir)) }
}

// openDevice takes the first GPU into use.
func openDevice() *gpu.Device {
	list, err := gpu.Devices()
	check(err)
	device, err := gpu.Open(list[0], gpu.Limits{Pinned: 64 << 20})
	check(err)
	return device
}

// An array goes from a GPU to a file and back.
func Example() {
	ctx := context.Background()
	path, remove := scratch()
	defer remove()
	device := openDevice()
	pool, err := filelayer.NewPool(device, settings.Default(), nil)
	check(err)

	// An array on the device: 0, 1, 2 …
	stream, err := device.Stream()
	check(err)
	host, err := device.Host(100)
	check(err)
	for i := range host.B {
		host.B[i] = byte(i)
	}
	a, err := device.Memory().Get(100)
	check(err)
	stream.Upload(a.Span, host.B)
	check(stream.Wait())

	// Write the whole array to a file.
	f, err := pool.Open(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o666)
	check(err)
	check(f.Write(ctx, a.Span, 0))
	check(f.Close())

	// Read the whole file into another array.
	b, err := device.Memory().Get(100)
	check(err)
	f, err = pool.Open(path, os.O_RDONLY, 0)
	check(err)
	check(f.Read(ctx, b.Span, 0))
	clear(host.B)
	stream.Download(host.B, b.Span)
	check(stream.Wait())
	fmt.Println(host.B[:3], host.B[97:])

	// Both halves at once, without waiting for the first.
	first, second := f.GoRead(ctx, b.From(0, 50), 50), f.GoRead(ctx, b.From(50, 50), 0)
	check(errors.Join(first.Wait(), second.Wait()))
	stream.Download(host.B, b.Span)
	check(stream.Wait())
	fmt.Println(host.B[:3], host.B[97:])

	host.Release()
	a.Release()
	b.Release()
	check(errors.Join(f.Close(), stream.Close(), pool.Close(), device.Close()))
	// Output:
	// [0 1 2] [97 98 99]
	// [50 51 52] [47 48 49]
}

// Host memory is read and written by the same files, with or without a GPU.
func ExampleFile_ReadAt() {
	ctx := context.Background()
	path, remove := scratch()
	defer remove()
	pool, err := filelayer.NewPool(nil, settings.Default(), nil)
	check(err)
	flags, err := filelayer.Flags("w+")
	check(err)
	f, err := pool.Open(path, flags, 0o666)
	check(err)
	check(f.WriteAt(ctx, []byte("mosaic grid"), 0))
	b := make([]byte, 4)
	check(f.ReadAt(ctx, b, 7))
	fmt.Printf("%s\n", b)
	err = f.ReadAt(ctx, b, 9)
	fmt.Println(strings.TrimPrefix(err.Error(), "read "+path))
	check(errors.Join(f.Close(), pool.Close()))
	// Output:
	// grid
	//  at byte 11: the file ends, 2 bytes are missing: unexpected EOF
}

// A read is asked for, and waited for later, or not at all: the context ends it.
func ExampleFile_GoReadAt() {
	path, remove := scratch()
	defer remove()
	check(os.WriteFile(path, bytes.Repeat([]byte{7}, 1<<20), 0o666))
	s := settings.Default()
	s.Threads, s.TaskSize = 4, 256<<10
	pool, err := filelayer.NewPool(nil, s, nil)
	check(err)
	f, err := pool.Open(path, os.O_RDONLY, 0)
	check(err)
	ctx, cancel := context.WithCancel(context.Background())
	b := make([]byte, 1<<20)
	pending := f.GoReadAt(ctx, b, 0)
	check(pending.Wait())
	fmt.Println(b[0], b[len(b)-1])
	cancel()
	fmt.Println(errors.Is(f.GoReadAt(ctx, b, 0).Wait(), context.Canceled))
	check(errors.Join(f.Close(), pool.Close()))
	// Output:
	// 7 7
	// true
}

// Many reads and writes are begun by one call and waited for by another.
func ExampleBegin() {
	ctx := context.Background()
	path, remove := scratch()
	defer remove()
	pool, err := filelayer.NewPool(nil, settings.Default(), nil)
	check(err)
	f, err := pool.Open(path, os.O_RDWR|os.O_CREATE, 0o666)
	check(err)
	check(filelayer.Begin(ctx,
		filelayer.Op{File: f, Write: true, Host: []byte("tile"), Off: 8},
		filelayer.Op{File: f, Write: true, Host: []byte("A-line, "), Off: 0},
	).Wait())
	line, tile := make([]byte, 6), make([]byte, 4)
	batch := filelayer.Begin(ctx, filelayer.Op{File: f, Host: line}, filelayer.Op{File: f, Host: tile, Off: 8})
	check(batch.Wait())
	fmt.Printf("%d of %d: %s %s\n", batch.Done(), batch.Len(), line, tile)
	check(errors.Join(f.Close(), pool.Close()))
	// Output:
	// 2 of 2: A-line tile
}

// What is queued on a stream happens in its order: here a read after what cleared the
// memory, and a copy after the read.
func ExampleFile_QueueRead() {
	ctx := context.Background()
	path, remove := scratch()
	defer remove()
	check(os.WriteFile(path, []byte("shard index"), 0o666))
	device := openDevice()
	pool, err := filelayer.NewPool(device, settings.Default(), nil)
	check(err)
	f, err := pool.Open(path, os.O_RDONLY, 0)
	check(err)
	stream, err := device.Stream()
	check(err)
	memory, err := device.Memory().Get(8)
	check(err)
	host, err := device.Host(8)
	check(err)

	stream.Zero(memory.Span)
	f.QueueRead(ctx, stream, memory.From(0, 5), 6)
	stream.Download(host.B, memory.Span)
	check(stream.Wait())
	fmt.Printf("%q\n", host.B)

	host.Release()
	memory.Release()
	check(errors.Join(f.Close(), stream.Close(), pool.Close(), device.Close()))
	// Output:
	// "index\x00\x00\x00"
}

// Memory that is read into again and again stays mapped for cuFile, where cuFile moves
// data straight; elsewhere this does nothing.
func ExamplePool_Register() {
	device := openDevice()
	pool, err := filelayer.NewPool(device, settings.Default(), nil)
	check(err)
	memory, err := device.Memory().Get(1 << 20)
	check(err)
	check(pool.Register(memory.Span))
	straight, _ := pool.Mode()
	fmt.Println(straight == (pool.Registered() >= 1<<20))
	check(pool.Deregister(memory.Span))
	fmt.Println(pool.Registered())
	memory.Release()
	check(errors.Join(pool.Close(), device.Close()))
	// Output:
	// true
	// 0
}

// A part of a file is mapped, read ahead, and copied from.
func ExampleOpenMap() {
	ctx := context.Background()
	path, remove := scratch()
	defer remove()
	check(os.WriteFile(path, []byte("the pyramid level 3"), 0o666))
	m, err := filelayer.OpenMap(path, 4, 7)
	check(err)
	check(m.Prefetch(0, 0))
	b := make([]byte, m.Size())
	n, err := m.ReadAt(ctx, b, 0)
	check(err)
	fmt.Printf("%d bytes: %s\n", n, b)
	check(m.Close())
	// Output:
	// 7 bytes: pyramid
}

// A file on a web server or in a bucket (s3://bucket/file) is read as others are, into
// host memory or a GPU's.
func ExamplePool_OpenSource() {
	ctx := context.Background()
	path, remove := scratch()
	defer remove()
	check(os.WriteFile(path, []byte("voxels from afar"), 0o666))
	server := httptest.NewServer(http.FileServer(http.Dir(filepath.Dir(path))))
	defer server.Close()
	pool, err := filelayer.NewPool(nil, settings.Default(), nil)
	check(err)
	how, err := settings.HTTPEnvironment() // attempts, time-out, statuses
	check(err)
	address := server.URL + "/data"
	object, err := store.OpenFile(ctx, address, store.Settings(how))
	check(err)
	f, err := pool.OpenSource(address, object)
	check(err)
	size, err := f.Size()
	check(err)
	b := make([]byte, size)
	check(f.ReadAt(ctx, b, 0))
	fmt.Printf("%s\n", b)
	check(errors.Join(f.Close(), pool.Close()))
	// Output:
	// voxels from afar
}

// Which way data went, and how long it took.
func ExampleFile_Stats() {
	ctx := context.Background()
	path, remove := scratch()
	defer remove()
	s := settings.Default()
	s.Compat = settings.On // by way of the host
	device := openDevice()
	pool, err := filelayer.NewPool(device, s, nil)
	check(err)
	fmt.Println(pool.Mode())
	f, err := pool.Open(path, os.O_RDWR|os.O_CREATE, 0o666)
	check(err)
	check(f.WriteAt(ctx, make([]byte, 1<<20), 0))
	memory, err := device.Memory().Get(1 << 20)
	check(err)
	check(f.Read(ctx, memory.Span, 0))
	st := f.Stats()
	fmt.Println(st.Host, "bytes from the host,", st.ReadBounced, "to the device by way of it,", st.ReadStraight, "straight")
	fmt.Println(st.Reads, "reads,", st.Writes, "writes,", st.Failed, "failed,", st.Latency.Count(), "tasks")
	memory.Release()
	check(errors.Join(f.Close(), pool.Close(), device.Close()))
	// Output:
	// false compat_mode is on
	// 1048576 bytes from the host, 1048576 to the device by way of it, 0 straight
	// 1 reads, 1 writes, 0 failed, 2 tasks
}

// The page cache is asked what it holds of a file, and told to forget it.
func ExampleFile_DropCached() {
	path, remove := scratch()
	defer remove()
	check(os.WriteFile(path, make([]byte, 64<<10), 0o666))
	pool, err := filelayer.NewPool(nil, settings.Default(), nil)
	check(err)
	f, err := pool.Open(path, os.O_RDONLY, 0)
	check(err)
	before, err := f.Cached(0, 0)
	check(err)
	check(f.DropCached(0, 0))
	after, err := f.Cached(0, 0)
	check(err)
	fmt.Println(after <= before && before <= 64<<10)
	check(errors.Join(f.Close(), pool.Close()))
	// Output:
	// true
}
