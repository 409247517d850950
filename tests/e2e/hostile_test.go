package e2e

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"strata/pkg/host"
	"strata/pkg/zarr/codec"
)

// Images whose files ask for more memory or time than an image of their size may.

// hostile is an image that make writes to a folder, or to a zip file where that is what it is called,
// and what programs say to it.
type hostile struct {
	make  func(t *testing.T, path string)
	zip   bool
	mem   int64 // MiB; 0: 128
	lines []string
	want  outcome
}

// document is a file of JSON.
func document(t *testing.T, path string, v any) {
	t.Helper()
	b, err := json.Marshal(v)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o777)
	}
	if err == nil {
		err = os.WriteFile(path, b, 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
}

type object = map[string]any

// multiscales describes an image of one level.
func multiscales() object {
	axes := []object{}
	for _, name := range []string{"z", "y", "x"} {
		axes = append(axes, object{"name": name, "type": "space", "unit": "micrometer"})
	}
	scale := []object{{"type": "scale", "scale": []float64{10, 10, 10}}}
	return object{"axes": axes, "datasets": []object{{"path": "0", "coordinateTransformations": scale}}, "version": "0.4"}
}

// imageV2 writes the documents of an image of Zarr format 2 of bytes.
func imageV2(t *testing.T, path string, shape, chunks []int, filters []object, compressor any) {
	t.Helper()
	document(t, filepath.Join(path, ".zgroup"), object{"zarr_format": 2})
	document(t, filepath.Join(path, ".zattrs"), object{"multiscales": []object{multiscales()}})
	document(t, filepath.Join(path, "0", ".zarray"), object{"zarr_format": 2, "shape": shape, "chunks": chunks, "dtype": "|u1", "fill_value": 0,
		"order": "C", "filters": filters, "compressor": compressor})
}

// arrayV3 is the document of an array of Zarr format 3 of bytes.
func arrayV3(shape, chunks []int, codecs ...object) object {
	return object{"zarr_format": 3, "node_type": "array", "shape": shape, "data_type": "uint8", "fill_value": 0,
		"chunk_grid":         object{"name": "regular", "configuration": object{"chunk_shape": chunks}},
		"chunk_key_encoding": object{"name": "default"}, "codecs": codecs}
}

func groupV3() object {
	return object{"zarr_format": 3, "node_type": "group", "attributes": object{"ome": object{"version": "0.5", "multiscales": []object{multiscales()}}}}
}

func imageV3(t *testing.T, path string, shape, chunks []int, codecs ...object) {
	t.Helper()
	document(t, filepath.Join(path, "zarr.json"), groupV3())
	document(t, filepath.Join(path, "0", "zarr.json"), arrayV3(shape, chunks, codecs...))
}

var bytesCodec = object{"name": "bytes"}

// shardedBy is a sharding codec whose index has these codecs besides "bytes".
func shardedBy(inner []int, index ...object) object {
	list := append([]object{{"name": "bytes", "configuration": object{"endian": "little"}}}, index...)
	return object{"name": "sharding_indexed", "configuration": object{"chunk_shape": inner, "codecs": []object{bytesCodec}, "index_codecs": list}}
}

// repeated is a list of n times the same codec.
func repeated(n int, codec object) []object {
	list := make([]object, n)
	for i := range list {
		list[i] = codec
	}
	return list
}

var (
	delta = object{"id": "delta", "dtype": "|u1"}
	grow  = object{"id": "astype", "decode_dtype": "|u1", "encode_dtype": "<f8"}
)

// file writes a file of some bytes, behind which it is a hole up to size.
func file(t *testing.T, path string, b []byte, size int64) {
	t.Helper()
	err := os.MkdirAll(filepath.Dir(path), 0o777)
	if err == nil {
		err = os.WriteFile(path, b, 0o666)
	}
	if err == nil {
		err = os.Truncate(path, max(size, int64(len(b))))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// encoded is n zero bytes behind a codec.
func encoded(t *testing.T, c codec.Codec, n int) []byte {
	t.Helper()
	b, err := codec.Chain{c}.Encode(codec.NewScratch(), nil, make([]byte, n))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func blosc(t *testing.T, block int) codec.Codec {
	t.Helper()
	c, err := codec.Blosc("zstd", 1, codec.ByteShuffle, 2, block)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// zipOfShards writes a zip file of an image of four deflated shards of n planes of 2048² zeros.
func zipOfShards(n int) func(t *testing.T, path string) {
	return func(t *testing.T, path string) {
		t.Helper()
		inner := []int{n, 256, 256}
		size := n * 256 * 256
		// the shard: 64 chunks, then their places
		var packed bytes.Buffer
		z, err := flate.NewWriter(&packed, flate.BestSpeed)
		if err != nil {
			t.Fatal(err)
		}
		sum := crc32.NewIEEE()
		w := io.MultiWriter(z, sum)
		chunk, index := make([]byte, size), []byte{}
		for i := range 64 {
			_, err = w.Write(chunk)
			index = binary.LittleEndian.AppendUint64(index, uint64(i*size))
			index = binary.LittleEndian.AppendUint64(index, uint64(size))
		}
		_, err2 := w.Write(index)
		if err := errors.Join(err, err2, z.Close()); err != nil {
			t.Fatal(err)
		}
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		out := zip.NewWriter(f)
		for name, v := range map[string]object{"zarr.json": groupV3(),
			"0/zarr.json": arrayV3([]int{n, 4096, 4096}, []int{n, 2048, 2048}, shardedBy(inner))} {
			b, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			if m, err := out.Create(name); err != nil {
				t.Fatal(err)
			} else if _, err := m.Write(b); err != nil {
				t.Fatal(err)
			}
		}
		for _, name := range []string{"0/c/0/0/0", "0/c/0/0/1", "0/c/0/1/0", "0/c/0/1/1"} {
			m, err := out.CreateRaw(&zip.FileHeader{Name: name, Method: zip.Deflate, CRC32: sum.Sum32(),
				CompressedSize64: uint64(packed.Len()), UncompressedSize64: uint64(64*size + len(index))})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := m.Write(packed.Bytes()); err != nil {
				t.Fatal(err)
			}
		}
		if err := out.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

const (
	aipLine      = "aip in.ome.zarr out.ome.zarr -j 4"
	validateLine = "zarr-tool validate in.ome.zarr/0 -j 4"
	resampleLine = "resample in.ome.zarr out.ome.zarr --resolution 20 -j 4"
)

var hostiles = map[string]hostile{
	"chunks of a voxel": {make: func(t *testing.T, path string) {
		imageV2(t, path, []int{64, 2000000, 2000000}, []int{1, 1, 1}, nil, nil)
	}, lines: []string{aipLine, "focal in.ome.zarr out.ome.zarr -j 4", "stitch in.ome.zarr out.ome.zarr --overlap 0.2", "flatfield in.ome.zarr out.ome.zarr",
		"normalize in.ome.zarr out.ome.zarr", "beam-profile in.ome.zarr out.ome.zarr", "attenuation in.ome.zarr out.ome.zarr"},
		want: outcome{1, `MiB of buffers, --mem grants|too many to keep account of`}},
	"four thousand million tiles": {make: func(t *testing.T, path string) {
		imageV2(t, path, []int{4, 1 << 24, 1 << 24}, []int{4, 256, 256}, nil, nil)
	}, lines: []string{"stitch in.ome.zarr out.ome.zarr --overlap 0.2", "stitch in.ome.zarr out.ome.zarr --estimate", "flatfield in.ome.zarr out.ome.zarr",
		"focal in.ome.zarr out.ome.zarr", "normalize in.ome.zarr out.ome.zarr"}, want: outcome{1, `MiB of buffers, --mem grants|too many to keep account of`}},
	"300 filters": {make: func(t *testing.T, path string) {
		imageV2(t, path, []int{8, 1024, 1024}, []int{8, 1024, 1024}, repeated(300, delta), object{"id": "zlib"})
		file(t, path+"/0/0.0.0", encoded(t, codec.Zlib(1), 8<<20), 0)
	}, want: outcome{3, `0/\.zarray: filters: has 300 codecs, at most 32 are supported`}},
	"4000 filters": {make: func(t *testing.T, path string) {
		imageV2(t, path, []int{2, 1024, 1024}, []int{2, 1024, 1024}, repeated(4000, delta), nil)
		file(t, path+"/0/0.0.0", nil, 2<<20)
	}, want: outcome{3, `0/\.zarray: filters: has 4000 codecs, at most 32 are supported`}},
	"10000 codecs": {make: func(t *testing.T, path string) {
		gzip := object{"name": "gzip", "configuration": object{"level": 1}}
		imageV3(t, path, []int{8, 64, 64}, []int{8, 64, 64}, append([]object{bytesCodec}, repeated(10000, gzip)...)...)
		file(t, path+"/0/c/0/0/0", []byte("x"), 0)
	}, want: outcome{3, `0/zarr\.json: codecs: has 10001 codecs, at most 32 are supported`}},
	"as many filters as may be": {make: func(t *testing.T, path string) {
		imageV2(t, path, []int{8, 1024, 1024}, []int{8, 1024, 1024}, repeated(32, delta), object{"id": "zlib"})
		file(t, path+"/0/0.0.0", encoded(t, codec.Zlib(1), 8<<20), 0)
	}, lines: []string{aipLine}},
	"filters that grow": {make: func(t *testing.T, path string) {
		imageV2(t, path, []int{8, 256, 256}, []int{8, 256, 256}, repeated(30, grow), nil)
		file(t, path+"/0/0.0.0", nil, 8<<20)
	}, want: outcome{1, `MiB of buffers, --mem grants|more than the memory budget`}},
	"filters that grow a little": {make: func(t *testing.T, path string) {
		imageV2(t, path, []int{8, 512, 512}, []int{8, 512, 512}, append(repeated(2, grow), delta), object{"id": "zlib"})
		file(t, path+"/0/0.0.0", encoded(t, codec.Zlib(1), 128<<20), 0)
	}, want: outcome{1, `MiB of buffers, --mem grants|more than the memory budget`}},
	"a sparse shard of 400³ chunks": {make: func(t *testing.T, path string) {
		imageV3(t, path, []int{400, 400, 400}, []int{400, 400, 400}, shardedBy([]int{1, 1, 1}))
		file(t, path+"/0/c/0/0/0", nil, 16*400*400*400)
	}, lines: []string{aipLine, resampleLine}, want: outcome{3, `0/c/0/0/0: chunk \[.*\]: 0 bytes stored, a chunk of \[1 1 1\] uint8 has 1`}},
	"the same with a checksum": {make: func(t *testing.T, path string) {
		imageV3(t, path, []int{400, 400, 400}, []int{400, 400, 400}, shardedBy([]int{1, 1, 1}, object{"name": "crc32c"}))
		file(t, path+"/0/c/0/0/0", nil, 16*400*400*400+4)
	}, lines: []string{aipLine, resampleLine}, want: outcome{3, `0/c/0/0/0: .*shard index: crc32c: checksum of the data is`}},
	"an index of 2³³ chunks": {make: func(t *testing.T, path string) {
		imageV3(t, path, []int{2048, 2048, 2048}, []int{2048, 2048, 2048}, shardedBy([]int{1, 1, 1}))
		file(t, path+"/0/c/0/0/0", nil, 16<<33)
	}, want: outcome{3, `makes 8589934592 inner chunks of a shard, at most 67108864 are supported`}},
	"deflated shards": {make: zipOfShards(64), zip: true,
		want: outcome{1, `in\.ome\.zarr\.zip/0/c/0/0/0: to read parts of a deflated member it is inflated to 268436480 bytes: more than the memory budget of 67108864`}},
	"deflated shards and the memory for two": {make: zipOfShards(16), zip: true, mem: 256},
	"one block of Blosc": {make: func(t *testing.T, path string) {
		const n = 24 << 20
		imageV2(t, path, []int{24, 2048, 1024}, []int{24, 1024, 1024}, nil, object{"id": "blosc", "cname": "zstd", "clevel": 1, "shuffle": 1, "blocksize": n})
		b := encoded(t, blosc(t, n), n)
		file(t, path+"/0/0.0.0", b, 0)
		file(t, path+"/0/0.1.0", b, 0)
	}, lines: []string{aipLine, validateLine, "focal in.ome.zarr out.ome.zarr -j 4"}, mem: 256},
	"a block of Blosc that no compressor makes": {make: func(t *testing.T, path string) {
		const n = 96 << 20
		imageV2(t, path, []int{96, 1024, 1024}, []int{96, 1024, 1024}, nil, object{"id": "blosc", "cname": "zstd", "clevel": 1, "shuffle": 1, "blocksize": n})
		file(t, path+"/0/0.0.0", encoded(t, blosc(t, n), n), 0)
	}, mem: 400, lines: []string{aipLine, validateLine}, want: outcome{1, `0/0\.0\.0: blosc: blocks of 100663296 bytes: .*more than the memory budget of 67108864`}},
	"a chunk file that is too long": {make: func(t *testing.T, path string) {
		imageV2(t, path, []int{8, 1024, 1024}, []int{8, 1024, 1024}, nil, object{"id": "zlib"})
		file(t, path+"/0/0.0.0", encoded(t, codec.Zlib(1), 8<<20), 512<<20)
	}, want: outcome{3, `0/0\.0\.0: .*too long for a chunk of 8388608 bytes`}},
	"a bomb": {make: func(t *testing.T, path string) {
		imageV2(t, path, []int{1, 1024, 1024}, []int{1, 1024, 1024}, nil, object{"id": "zlib"})
		file(t, path+"/0/0.0.0", encoded(t, codec.Zlib(1), 64<<20), 0)
	}, want: outcome{3, `0/0\.0\.0: zlib: decodes to more bytes than expected`}},
	"attributes of many lists": {make: func(t *testing.T, path string) {
		imageV2(t, path, []int{1, 64, 64}, []int{1, 64, 64}, nil, nil)
		many := `{"multiscales": [` + strings.Repeat(`[],`, 4<<20) + `[]]}`
		file(t, path+"/.zattrs", []byte(many), 0)
	}, lines: []string{aipLine}, want: outcome{1, `\.zattrs: .*more than the memory budget`}},
	"consolidated metadata of many nodes": {make: func(t *testing.T, path string) {
		imageV2(t, path, []int{1, 64, 64}, []int{1, 64, 64}, nil, nil)
		var b bytes.Buffer
		b.WriteString(`{"zarr_consolidated_format": 1, "metadata": {`)
		for i := range 1 << 20 {
			fmt.Fprintf(&b, `"%x":0,`, i)
		}
		b.WriteString(`".zgroup": {"zarr_format": 2}}}`)
		file(t, path+"/.zmetadata", b.Bytes(), 0)
	}, lines: []string{aipLine}, want: outcome{1, `\.zmetadata: .*more than the memory budget`}},
}

// Whatever an image's files say, programs take no more than --mem and 256 MiB, and end as they should.
func TestHostileImages(t *testing.T) {
	if testing.Short() {
		t.Skip("decodes hundreds of MiB")
	}
	for name, h := range hostiles {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "in.ome.zarr")
			if h.zip {
				path += ".zip"
			}
			h.make(t, path)
			if h.mem == 0 {
				h.mem = 128
			}
			if h.lines == nil {
				h.lines = []string{aipLine, validateLine, resampleLine}
			}
			for _, line := range h.lines {
				if h.zip {
					line = strings.Replace(line, "in.ome.zarr", "in.ome.zarr.zip", 1)
				}
				h.run(t, dir, line)
			}
		})
	}
}

func (h hostile) run(t *testing.T, dir, line string) {
	t.Helper()
	words := strings.Fields(line)
	if err := os.RemoveAll(filepath.Join(dir, "r.json")); err != nil { // of the run before, which is not replaced
		t.Fatal(err)
	}
	c := command(dir, words[0], append(words[1:], "-q", "--mem", fmt.Sprintf("%dMiB", h.mem), "--report", "r.json")...)
	out, err := c.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	text := strings.TrimSpace(string(out))
	if code := c.ProcessState.ExitCode(); code != h.want.code || !regexp.MustCompile(h.want.line).MatchString(text) {
		t.Errorf("%s: exit code %d, want %d; nothing matches %q in:\n%.1000s", line, code, h.want.code, h.want.line, text)
	}
	b, err := os.ReadFile(dir + "/r.json")
	if err != nil {
		t.Fatal(err)
	}
	var r struct {
		Peak int64 `json:"peak_resident_bytes"`
	}
	if err := json.Unmarshal(b, &r); err != nil || r.Peak == 0 {
		t.Fatalf("no peak in the record: %v", err)
	}
	most, rusage := h.mem<<20+256<<20, c.ProcessState.SysUsage().(*syscall.Rusage).Maxrss<<10
	t.Logf("%s: %d MiB", line, r.Peak>>20)
	// The system counts what this process had when it started the program as the program's.
	if r.Peak > most || rusage > max(most, host.PeakResident()) {
		t.Errorf("%s: at most %d MiB were resident, %d MiB says the system; --mem was %d MiB", line, r.Peak>>20, rusage>>20, h.mem)
	}
	left, _ := filepath.Glob(filepath.Join(dir, ".*strata-*"))
	if err := os.RemoveAll(filepath.Join(dir, "out.ome.zarr")); err != nil || len(left) > 0 {
		t.Errorf("%s: left behind: %q, %v", line, left, err)
	}
}

// A signal ends a program while it decodes a long chunk, or looks for billions of chunks.
func TestHostileImagesInterrupted(t *testing.T) {
	if testing.Short() {
		t.Skip("decodes hundreds of MiB")
	}
	for name, h := range map[string]hostile{
		"filters": {make: func(t *testing.T, path string) {
			imageV2(t, path, []int{32, 1024, 1024}, []int{32, 1024, 1024}, repeated(31, delta), object{"id": "zlib"})
			file(t, path+"/0/0.0.0", encoded(t, codec.Zlib(1), 32<<20), 0)
		}, lines: []string{aipLine, validateLine}},
		"as many chunks as are looked for": {make: func(t *testing.T, path string) {
			imageV2(t, path, []int{1 << 12, 1 << 12, 1 << 12}, []int{1, 1, 1}, nil, nil)
		}, lines: []string{validateLine}},
		"a sparse shard of zeros": {make: func(t *testing.T, path string) {
			imageV3(t, path, []int{1000, 200, 200}, []int{1000, 200, 200}, shardedBy([]int{1, 1, 1}))
			// all chunks are the first byte
			entry := binary.LittleEndian.AppendUint64(make([]byte, 8), 1)
			file(t, path+"/0/c/0/0/0", bytes.Repeat(entry, 4<<20), 16*1000*200*200)
		}, lines: []string{validateLine}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			h.make(t, filepath.Join(dir, "in.ome.zarr"))
			for _, line := range h.lines {
				words := strings.Fields(line)
				if err := os.RemoveAll(filepath.Join(dir, "r.json")); err != nil { // of the run before, which is not replaced
					t.Fatal(err)
				}
				c := command(dir, words[0], append(words[1:], "-q", "--mem", "400MiB")...)
				if err := c.Start(); err != nil {
					t.Fatal(err)
				}
				ended := make(chan error, 1)
				go func() { ended <- c.Wait() }()
				select {
				case err := <-ended:
					t.Fatalf("%s: ended by itself: %v", line, err)
				case <-time.After(time.Second):
				}
				_ = c.Process.Signal(syscall.SIGTERM)
				sent := time.Now()
				select {
				case <-ended:
				case <-time.After(30 * time.Second):
					_ = c.Process.Kill()
					t.Fatalf("%s: goes on 30 s after SIGTERM", line)
				}
				t.Logf("%s: ended after %v", line, time.Since(sent))
				if code := c.ProcessState.ExitCode(); code != 143 {
					t.Errorf("%s: exit code %d, want 143", line, code)
				}
			}
		})
	}
}
