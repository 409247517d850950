//go:build !nocuda

package pack

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"strata/pkg/gpu"
	"strata/pkg/gpu/nvcomp"
	"strata/pkg/zarr/codec"
	"strata/tests/cudaemu"
	"strata/tests/gputest"
)

func TestMain(m *testing.M) { cudaemu.Main(m) }

// usual is enough for NVIDIA's library, too: on an H100 it encodes with more than 1 GiB of temporary memory.
var usual = gpu.Limits{Memory: 6 << 30, Pinned: 32 << 20}

func open(t testing.TB, l gpu.Limits) (*nvcomp.Library, *gpu.Stream) {
	t.Helper()
	d := gputest.Device(t, l)
	lib, err := nvcomp.Open(d)
	if err != nil {
		t.Fatal(err)
	}
	return lib, gputest.Stream(t, d)
}

// upload brings chunks to the device, each at a multiple of step bytes.
func upload(t testing.TB, s *gpu.Stream, chunks [][]byte, step int) ([]gpu.Span, *gpu.Buffer) {
	t.Helper()
	size := (len(chunks[0]) + step - 1) / step * step
	m, err := s.Device().Memory().Get(int64(size * len(chunks)))
	if err != nil {
		t.Fatal(err)
	}
	host, err := s.Device().Host(size * len(chunks))
	if err != nil {
		t.Fatal(err)
	}
	s.After(host.Release)
	var spans []gpu.Span
	for i, c := range chunks {
		copy(host.B[i*size:], c)
		spans = append(spans, m.From(int64(i*size), int64(len(c))))
	}
	s.Upload(m.Span, host.B)
	return spans, m
}

// encode encodes chunks and returns copies.
func encode(t testing.TB, lib *nvcomp.Library, s *gpu.Stream, c codec.Chain, chunks [][]byte, step int) ([][]byte, error) {
	t.Helper()
	e, err := New(lib, c, len(chunks[0]))
	if err != nil {
		return nil, err
	}
	spans, m := upload(t, s, chunks, step)
	out, err := e.Encode(s, spans)
	m.Release()
	if err != nil {
		return nil, err
	}
	defer out.Release()
	var all [][]byte
	for _, b := range out.Chunks {
		all = append(all, bytes.Clone(b))
	}
	return all, nil
}

func smooth(n, seed int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i>>9) + byte(i*(i+seed)>>3)*byte(i&1)
	}
	return b
}

func noise(n int) []byte {
	b, x := make([]byte, n), uint32(1)
	for i := range b {
		x ^= x << 13
		x ^= x >> 17
		x ^= x << 5
		b[i] = byte(x >> 8)
	}
	return b
}

func name(c codec.Chain) string {
	var names []string
	for _, k := range c {
		names = append(names, fmt.Sprintf("%+v", k))
	}
	return strings.Join(names, ", ")
}

// What the device encodes, the host decodes: all chains, odd sizes, chunks that shrink and
// some that do not.
func TestEncode(t *testing.T) {
	lib, s := open(t, usual)
	chains := []codec.Chain{{codec.Zstd(1, false)}, {codec.Zstd(1, false), codec.CRC32C()}, {codec.LZ4(1)}, {codec.LZ4(1), codec.CRC32(), codec.CRC32C()}, {codec.Shuffle(4), codec.Zstd(1, false)}}
	for _, cname := range []string{"lz4", "zstd"} {
		for _, how := range []codec.BloscShuffle{codec.NoShuffle, codec.ByteShuffle} {
			for _, typesize := range []int{1, 2, 3, 4, 8} {
				for _, block := range []int{0, 4096} {
					c, err := codec.Blosc(cname, 3, how, typesize, block)
					if err != nil {
						t.Fatal(err)
					}
					chains = append(chains, codec.Chain{c})
				}
			}
		}
	}
	host, shrunk := codec.NewScratch(), 0
	for _, c := range chains {
		for _, n := range []int{129, 4096, 5000, 30001, 65536} {
			if c[0].Name() == "shuffle" && n%4 != 0 {
				continue
			}
			chunks := [][]byte{smooth(n, 1), smooth(n, 2), noise(n), make([]byte, n)}
			for _, step := range []int{16, 256} { // shuffled all at once, or one by one
				out, err := encode(t, lib, s, c, chunks, step)
				if err != nil {
					t.Fatalf("%s of %d bytes: %v", name(c), n, err)
				}
				for i, b := range out {
					got := make([]byte, n)
					if err := c.Decode(host, got, b); err != nil || !bytes.Equal(got, chunks[i]) {
						t.Errorf("%s, chunk %d of %d bytes: %v", name(c), i, n, err)
					}
					if len(b) < n/4 {
						shrunk++
					}
				}
			}
		}
	}
	if shrunk < len(chains) {
		t.Errorf("%d chunks shrank", shrunk)
	}
}

// What comes down is what is stored, once, and the answers of nvCOMP.
func TestTraffic(t *testing.T) {
	lib, s := open(t, usual)
	c := codec.Chain{codec.LZ4(1)}
	chunks := [][]byte{smooth(65536, 1), make([]byte, 65536)}
	out, err := encode(t, lib, s, c, chunks, 256)
	if err != nil {
		t.Fatal(err)
	}
	up, down, _ := s.Device().Traffic()
	var stored int64
	for _, b := range out {
		stored += int64(len(b)+15) / 16 * 16
	}
	if want := stored + 2*12; down != want || stored > 70000 {
		t.Errorf("%d bytes came down, want %d", down, want)
	}
	if want := int64(2*65536 + 2*44 + 2*24); up != want {
		t.Errorf("%d bytes went up, want %d", up, want)
	}
}

func TestNew(t *testing.T) {
	lib, s := open(t, usual)
	for what, err := range map[string]error{
		"gzip":       second(New(lib, codec.Chain{codec.Gzip(1)}, 4096)),
		"large":      second(New(lib, codec.Chain{codec.Zstd(1, false)}, 16<<20+1)),
		"no library": second(New(nil, codec.Chain{codec.Zstd(1, false)}, 4096)),
	} {
		if !errors.Is(err, codec.ErrWhole) {
			t.Errorf("%s: %v", what, err)
		}
	}
	e, err := New(lib, codec.Chain{codec.Zstd(1, false)}, 4096)
	if err != nil {
		t.Fatal(err)
	}
	spans, m := upload(t, s, [][]byte{make([]byte, 5000)}, 16)
	defer m.Release()
	if _, err := e.Encode(s, spans); err == nil {
		t.Error("a chunk of another size was encoded")
	}
	if _, err := e.Encode(s, []gpu.Span{spans[0].From(1, 4096)}); err == nil {
		t.Error("a chunk at an odd address was encoded")
	}
	out, err := e.Encode(s, nil)
	if err != nil || len(out.Chunks) != 0 {
		t.Error(out, err)
	}
	out.Release()
}

func second[T any](_ T, err error) error { return err }

// Encode takes no more than Memory says, and where there is less, it is an error of memory.
func TestMemory(t *testing.T) {
	blosc, err := codec.Blosc("zstd", 3, codec.ByteShuffle, 3, 6000)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []codec.Chain{{codec.Zstd(1, false)}, {codec.LZ4(1)}, {blosc}} {
		lib, s := open(t, usual)
		chunks := [][]byte{noise(60000), smooth(60000, 1), noise(60000)}
		e, err := New(lib, c, 60000)
		if err != nil {
			t.Fatal(err)
		}
		spans, m := upload(t, s, chunks, 16)
		if err := s.Wait(); err != nil {
			t.Fatal(err)
		}
		d := s.Device()
		pinned, device := d.Pinned().Peak(), d.Memory().Peak()
		out, err := e.Encode(s, spans)
		if err != nil {
			t.Fatal(err)
		}
		p, m2, err := e.Memory(d, len(chunks))
		// The pool of page-locked memory has what the upload left.
		if tookP, tookM := d.Pinned().Peak()-pinned, d.Memory().Peak()-device; err != nil || tookP > p || tookM > m2 || tookM < m2/4 {
			t.Errorf("%s: took %d and %d bytes, said %d and %d; %v", name(c), tookP, tookM, p, m2, err)
		}
		out.Release()
		m.Release()
	}
	lib, s := open(t, gpu.Limits{Memory: 256 << 10, Pinned: 8 << 20})
	for _, c := range []codec.Chain{{codec.Zstd(1, false)}, {blosc}} {
		if _, err := encode(t, lib, s, c, [][]byte{noise(60000), noise(60000)}, 16); !errors.Is(err, gpu.ErrMemory) {
			t.Errorf("%s: %v", name(c), err)
		}
		e, err := New(lib, c, 5000)
		if err != nil {
			t.Fatal(err)
		}
		_, need, err := e.Memory(s.Device(), 1)
		if err != nil {
			t.Fatal(err)
		}
		// NVIDIA's library may want more than there is for a small chunk, too.
		if _, err := encode(t, lib, s, c, [][]byte{smooth(5000, 1)}, 16); need < 128<<10 && err != nil || need > 256<<10 && !errors.Is(err, gpu.ErrMemory) {
			t.Errorf("%s, a small chunk that needs %d bytes: %v", name(c), need, err)
		}
	}
}

// TestScratch: what nvCOMP wants as temporary memory is part of what Memory says, and where there is less, Encode takes
// none.
func TestScratch(t *testing.T) {
	if os.Getenv("CUEMU_NVCOMP_SCRATCH") == "" {
		gputest.NeedDouble(t)
		c := exec.Command(os.Args[0], "-test.run=^TestScratch$", "-test.count=1")
		c.Env = append(os.Environ(), fmt.Sprintf("CUEMU_NVCOMP_SCRATCH=%d", scratch), fmt.Sprintf("CUEMU_MEM=%d", 8<<30))
		if out, err := c.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	for limit, fits := range map[int64]bool{usual.Memory: true, 1 << 30: false} {
		lib, s := open(t, gpu.Limits{Memory: limit, Pinned: usual.Pinned})
		c := codec.Chain{codec.Zstd(1, false)}
		e, err := New(lib, c, 5000)
		if err != nil {
			t.Fatal(err)
		}
		if _, need, err := e.Memory(s.Device(), 1); err != nil || need < scratch {
			t.Errorf("%d bytes, of which %d are nvCOMP's: %v", need, scratch, err)
		}
		_, err = encode(t, lib, s, c, [][]byte{smooth(5000, 1)}, 16)
		if fits && err != nil || !fits && !errors.Is(err, gpu.ErrMemory) {
			t.Errorf("of %d bytes: %v", limit, err)
		}
	}
}

const scratch = 1126 << 20 // about what nvCOMP 6.0.0 wants to encode Zstandard on an H100

// Faults at any call end in an error, or in nothing worse than another try, and all memory
// is given back.
func TestFaults(t *testing.T) {
	for _, fail := range []string{"cuMemAlloc_v2:2:2", "cuMemAlloc_v2:3:2", "cuMemAlloc_v2:4:2", "cuMemAlloc_v2:5:2", "cuMemAlloc_v2:6:2", "cuMemcpyHtoDAsync_v2:2:1",
		"cuLaunchKernel:1:1", "cuLaunchKernel:2:700s", "cuMemcpyDtoHAsync_v2:1:1", "cuMemcpyDtoHAsync_v2:2:719s", "cuStreamSynchronize:1:719s", "cuStreamSynchronize:2:1",
		"nvcompBatchedZstdCompressAsync:1:1000", "nvcompBatchedZstdCompressGetTempSize:1:10000", "nvcompBatchedZstdCompressGetMaxOutputChunkSize:1:11", "CHUNK=1:19", "CHUNK=5:11"} {
		t.Run(fail, func(t *testing.T) {
			if os.Getenv("STRATA_TEST_APART") == "" {
				gputest.NeedDouble(t)
				c := exec.Command(os.Args[0], "-test.run=^"+strings.ReplaceAll(t.Name(), "/", "$/^")+"$")
				variable := "CUEMU_FAIL=" + fail
				if strings.HasPrefix(fail, "CHUNK") {
					variable = "CUEMU_" + fail
				}
				c.Env = append(os.Environ(), gputest.FaultVariable+"="+variable, "STRATA_TEST_APART=1")
				if out, err := c.CombinedOutput(); err != nil {
					t.Errorf("%v\n%s", err, out)
				}
				return
			}
			lib, s := open(t, usual)
			gputest.Fault()
			c, err := codec.Blosc("zstd", 3, codec.ByteShuffle, 2, 4096)
			if err != nil {
				t.Fatal(err)
			}
			chunks := [][]byte{smooth(10000, 1), smooth(10000, 2)}
			out, err := encode(t, lib, s, codec.Chain{c}, chunks, 16)
			if err != nil {
				t.Log(err)
				return
			}
			if !strings.HasPrefix(fail, "cuMemAlloc") { // of which another may do
				t.Error("no error")
			}
			for i, b := range out {
				got := make([]byte, len(chunks[i]))
				if err := (codec.Chain{c}).Decode(codec.NewScratch(), got, b); err != nil || !bytes.Equal(got, chunks[i]) {
					t.Errorf("chunk %d: %v", i, err)
				}
			}
		})
	}
}

// Memory is taken by what chunks can become, not by what they become: it is used again whatever they are.
func TestSameMemory(t *testing.T) {
	lib, s := open(t, usual)
	peak := func() int64 { return s.Device().Memory().Peak() + s.Device().Pinned().Peak() }
	var first int64
	for i, data := range [][]byte{make([]byte, 70000), smooth(70000, 3), noise(70000)} {
		if _, err := encode(t, lib, s, codec.Chain{codec.Zstd(1, false)}, [][]byte{data, data}, 16); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first = peak()
		} else if peak() != first {
			t.Errorf("%d bytes were taken for other chunks after %d", peak()-first, first)
		}
	}
}
