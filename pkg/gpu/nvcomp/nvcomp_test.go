//go:build !nocuda

package nvcomp

import (
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/flate"

	"strata/pkg/gpu"
	"strata/pkg/zarr/codec"
	"strata/tests/cudaemu"
	"strata/tests/gputest"
)

func TestMain(m *testing.M) { cudaemu.Main(m) }

type bench struct {
	testing.TB
	lib    *Library
	device *gpu.Device
	stream *gpu.Stream
	held   []interface{ Release() }
}

func open(t testing.TB, l gpu.Limits) *bench {
	t.Helper()
	list, err := gpu.Devices()
	if err != nil {
		t.Fatal(err)
	}
	gputest.Hold(t)
	d, err := gpu.Open(list[0], l)
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{TB: t, device: d}
	if b.stream, err = d.Stream(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		err := b.stream.Close()
		for _, h := range b.held {
			h.Release()
		}
		if err := errors.Join(err, d.Close()); err != nil {
			t.Error(err)
		}
	})
	if b.lib, err = Open(d); err != nil {
		t.Fatal(err)
	}
	return b
}

// usual is enough for NVIDIA's library, too: on an H100 it encodes with more than 1 GiB of temporary memory.
var usual = gpu.Limits{Memory: 4 << 30, Pinned: 16 << 20}

// memory is device memory until the test ends, with data in it.
func (b *bench) memory(data []byte) gpu.Span {
	b.Helper()
	m, err := b.device.Memory().Get(int64(len(data)))
	if err != nil {
		b.Fatal(err)
	}
	b.held = append(b.held, m)
	host, err := b.device.Host(len(data))
	if err != nil {
		b.Fatal(err)
	}
	b.stream.After(host.Release)
	copy(host.B, data)
	b.stream.Upload(m.Span, host.B)
	return m.Span
}

func (b *bench) download(s gpu.Span) []byte {
	b.Helper()
	host, err := b.device.Host(int(s.Bytes()))
	if err != nil {
		b.Fatal(err)
	}
	defer host.Release()
	b.stream.Download(host.B, s)
	if err := b.stream.Wait(); err != nil {
		b.Fatal(err)
	}
	return bytes.Clone(host.B)
}

// samples are data of several kinds and lengths.
func samples() [][]byte {
	r := rand.New(rand.NewPCG(1, 2))
	var all [][]byte
	for _, n := range []int{1, 2, 13, 100, 4096, 70001, 300000} {
		noise, image, text := make([]byte, n), make([]byte, n), make([]byte, n)
		level := 100
		for i := range n {
			level += r.IntN(5) - 2
			noise[i], image[i], text[i] = byte(r.Uint32()), byte(level), "lorem ipsum dolor sit amet "[(i*7/5)%27]
		}
		all = append(all, noise, image, text, make([]byte, n))
	}
	return all
}

func encode(t testing.TB, f Format, data []byte) []byte {
	t.Helper()
	var b []byte
	var err error
	switch f {
	case Zstd:
		b, err = codec.Zstd(3, false).Encode(codec.NewScratch(), nil, data)
	case LZ4:
		b, err = codec.LZ4(1).Encode(codec.NewScratch(), nil, data)
		b = b[min(4, len(b)):]
	case Deflate:
		var out bytes.Buffer
		w, _ := flate.NewWriter(&out, 6)
		_, err = w.Write(data)
		err = errors.Join(err, w.Close())
		b = out.Bytes()
	}
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// pieces are the samples, encoded, on the device.
func (b *bench) pieces(f Format) ([]Piece, [][]byte) {
	b.Helper()
	want := samples()
	var batch []Piece
	for i, data := range want {
		batch = append(batch, Piece{b.memory(encode(b, f, data)), b.memory(bytes.Repeat([]byte{0x5a}, len(data))), fmt.Sprintf("piece %d", i)})
	}
	return batch, want
}

func TestDecode(t *testing.T) {
	for f := range formats {
		t.Run(f.String(), func(t *testing.T) {
			b := open(t, usual)
			batch, want := b.pieces(f)
			up, down, _ := b.device.Traffic()
			if err := b.lib.Decode(b.stream, f, batch); err != nil {
				t.Fatal(err)
			}
			if err := b.stream.Wait(); err != nil {
				t.Fatal(err)
			}
			up2, down2, _ := b.device.Traffic()
			if n := int64(len(batch)); up2-up != 44*n || down2-down != 12*n {
				t.Errorf("%d bytes went up and %d came down for %d pieces", up2-up, down2-down, n)
			}
			for i, p := range batch {
				if !bytes.Equal(b.download(p.Dst), want[i]) {
					t.Errorf("%s of %d bytes differs", p.Name, len(want[i]))
				}
			}
		})
	}
}

// What is decoded, and where it lies, need not be aligned but for DEFLATE.
func TestAlignment(t *testing.T) {
	b := open(t, usual)
	for f := range formats {
		data := samples()[18]
		src := b.memory(append([]byte{0}, encode(t, f, data)...))
		p := Piece{src.From(1, src.Bytes()-1), b.memory(make([]byte, len(data)+1)).From(1, int64(len(data))), "odd"}
		err := b.lib.Decode(b.stream, f, []Piece{p})
		if f == Deflate {
			if err == nil || !strings.Contains(err.Error(), "odd: Deflate: address") {
				t.Errorf("Deflate at an odd address: %v", err)
			}
			continue
		}
		if err == nil {
			err = b.stream.Wait()
		}
		if err != nil || !bytes.Equal(b.download(p.Dst), data) {
			t.Errorf("%s at an odd address: %v", f, err)
		}
	}
}

// Damage of one piece is an error that names it; the stream goes on.
func TestDamage(t *testing.T) {
	b := open(t, usual)
	for f := range formats {
		data := samples()[17]
		good := encode(t, f, data)
		decode := func(src []byte, room int) error {
			batch := []Piece{
				{b.memory(good), b.memory(make([]byte, len(data))), "first"},
				{b.memory(src), b.memory(make([]byte, room)), "second"},
			}
			if err := b.lib.Decode(b.stream, f, batch); err != nil {
				t.Fatal(err)
			}
			return b.stream.Wait()
		}
		named := func(what string, err error) {
			t.Helper()
			var piece *PieceError
			if !errors.As(err, &piece) || piece.Name != "second" || piece.Format != f {
				t.Errorf("%s, %s: %v", f, what, err)
			}
		}
		named("too long", decode(good, len(data)-1))
		named("too short", decode(good, len(data)+1))
		if err := decode(good, len(data)); err != nil {
			t.Errorf("%s, after damage: %v", f, err)
		}
		if b.device.Info.Name != "CUEMU" {
			continue // NVIDIA promises nothing of what follows
		}
		named("truncated", decode(good[:len(good)/2], len(data)))
		r := rand.New(rand.NewPCG(3, 4))
		for range 30 {
			bad := bytes.Clone(good)
			bad[r.IntN(len(bad))] ^= 1 << r.IntN(8)
			if err := decode(bad, len(data)); err != nil {
				named("a flipped bit", err)
			}
		}
	}
}

// Where the batch's temporary memory does not fit, parts of it run one after the other.
func TestLittleMemory(t *testing.T) {
	b := open(t, gpu.Limits{Memory: 900 << 10, Pinned: 8 << 20})
	data := samples()[18][:1000]
	src := b.memory(encode(t, Zstd, data))
	dst := b.memory(make([]byte, 300*len(data)))
	var batch []Piece
	for i := range 300 {
		batch = append(batch, Piece{src, dst.From(int64(i*len(data)), int64(len(data))), fmt.Sprint(i)})
	}
	temp, err := b.lib.DecodeTemp(b.device, Zstd, len(batch), 1000, 300000)
	if err != nil || temp < 600<<10 {
		t.Fatal(temp, err)
	}
	if err := b.lib.Decode(b.stream, Zstd, batch); err != nil {
		t.Fatal(err)
	}
	if err := b.stream.Wait(); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(b.download(dst), bytes.Repeat(data, 300)) {
		t.Error("differs")
	}
	for {
		rest, err := b.device.Memory().Get(4 << 10)
		if err != nil {
			break
		}
		b.held = append(b.held, rest)
	}
	if err := b.lib.Decode(b.stream, Zstd, batch); !errors.Is(err, gpu.ErrMemory) {
		t.Errorf("without memory: %v", err)
	}
}

func TestEncode(t *testing.T) {
	for _, f := range []Format{Zstd, LZ4} {
		t.Run(f.String(), func(t *testing.T) {
			b := open(t, usual)
			want := samples()
			bound, err := b.lib.Bound(f, 300000)
			if err != nil {
				t.Fatal(err)
			}
			var batch []Piece
			for i, data := range want {
				batch = append(batch, Piece{b.memory(data), b.memory(make([]byte, bound)), fmt.Sprint(i)})
			}
			lengths := make([]int64, len(batch))
			if err := b.lib.Encode(b.stream, f, batch, lengths); err != nil {
				t.Fatal(err)
			}
			if err := b.stream.Wait(); err != nil {
				t.Fatal(err)
			}
			c := codec.Zstd(1, false)
			for i, p := range batch {
				got := make([]byte, len(want[i]))
				src := b.download(p.Dst.From(0, lengths[i]))
				if f == LZ4 {
					n := len(want[i])
					if n == 1 && src[0] != 0x1c {
						t.Errorf("the last token is %#x: NVIDIA's encoder writes the length of a match into it", src[0])
					}
					c, src = codec.LZ4(1), append([]byte{byte(n), byte(n >> 8), byte(n >> 16), byte(n >> 24)}, src...)
				}
				n, err := c.Decode(codec.NewScratch(), got, src)
				if err != nil || !bytes.Equal(got[:n], want[i]) {
					t.Errorf("%d: %v", i, err)
				}
			}
			batch[0].Dst = batch[0].Dst.From(0, bound-1)
			if err := b.lib.Encode(b.stream, f, batch, lengths); err == nil {
				t.Error("too little room was taken")
			}
			if _, err := b.lib.Bound(f, 16<<20+1); err == nil {
				t.Error("a piece of more than 16 MiB was taken")
			}
		})
	}
}

// Two streams of a device decode at once.
func TestStreams(t *testing.T) {
	b := open(t, usual)
	batch, want := b.pieces(LZ4)
	other, err := b.device.Stream()
	if err != nil {
		t.Fatal(err)
	}
	if err := b.stream.Wait(); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(b.lib.Decode(other, LZ4, batch[1:]), b.lib.Decode(b.stream, LZ4, batch[:1])); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(b.stream.Wait(), other.Close()); err != nil {
		t.Fatal(err)
	}
	for i, p := range batch {
		if !bytes.Equal(b.download(p.Dst), want[i]) {
			t.Errorf("%s differs", p.Name)
		}
	}
}

// apart runs a test in a process of its own with these variables, and tells whether this
// is it.
func apart(t *testing.T, env ...string) bool {
	t.Helper()
	if os.Getenv("STRATA_TEST_APART") == t.Name() {
		return true
	}
	gputest.NeedDouble(t)
	c := exec.Command(os.Args[0], "-test.run=^"+strings.ReplaceAll(t.Name(), "/", "$/^")+"$", "-test.v")
	c.Env = append(os.Environ(), append(env, "STRATA_TEST_APART="+t.Name())...)
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	return false
}

// Version 5 calls some functions otherwise.
func TestVersion5(t *testing.T) {
	old := filepath.Join(filepath.Dir(os.Getenv("STRATA_LIBNVCOMP")), "libnvcomp.so.5")
	if !apart(t, "STRATA_LIBNVCOMP="+old) {
		return
	}
	if v := open(t, usual).lib.Version(); v != "5.1.0" {
		t.Error(v)
	}
	t.Run("decode", TestDecode)
	t.Run("encode", TestEncode)
}

func TestOpen(t *testing.T) {
	for name, c := range map[string]struct{ env, want string }{
		"missing": {"STRATA_LIBNVCOMP=/nonexistent/libnvcomp.so", "nvCOMP cannot be opened"},
		"another": {"STRATA_LIBNVCOMP=libc.so.6", "it has no nvcompGetProperties"},
		"driver":  {"CUEMU_FAIL=nvcompBatchedZstdCompressGetTempSize:1:1000", "nvCOMP 6.0.0 does not work on CUEMU: nvcompBatchedZstdCompressGetTempSize: CUDA failed"},
		"call":    {"CUEMU_FAIL=nvcompBatchedLZ4CompressGetRequiredAlignments:1:10000", "internal error (nvCOMP error 10000)"},
	} {
		t.Run(name, func(t *testing.T) {
			if !apart(t, c.env) {
				return
			}
			list, err := gpu.Devices()
			if err != nil {
				t.Fatal(err)
			}
			d, err := gpu.Open(list[0], usual)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := Open(d); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// A call that fails is the stream's error; a piece that fails is named; a fault of the
// device ends the context. None of it is a result.
func TestFaults(t *testing.T) {
	for name, c := range map[string]struct{ env, want string }{
		"call":   {"CUEMU_FAIL=nvcompBatchedZstdDecompressAsync:1:1000", "nvcompBatchedZstdDecompressAsync: CUDA failed (nvCOMP error 1000)"},
		"temp":   {"CUEMU_FAIL=nvcompBatchedZstdDecompressGetTempSize:1:11", "not supported"},
		"piece":  {"CUEMU_CHUNK=3:12", "piece 2: Zstd: cannot be decompressed (nvCOMP error 12)"},
		"device": {"CUEMU_FAIL=nvcompBatchedZstdDecompressAsync:1:719s", "719"},
		"upload": {"CUEMU_FAIL=cuMemcpyDtoHAsync_v2:1:1", "cuMemcpyDtoHAsync_v2"},
	} {
		t.Run(name, func(t *testing.T) {
			if !apart(t, gputest.FaultVariable+"="+c.env) {
				return
			}
			b := open(t, usual)
			gputest.Fault()
			batch, _ := b.pieces(Zstd)
			err := b.lib.Decode(b.stream, Zstd, batch)
			err = errors.Join(err, b.stream.Wait())
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
			if name == "device" && !errors.Is(b.device.Lost(), gpu.ErrLost) {
				t.Error("the context is not lost")
			}
		})
	}
}

// Temporary memory for Zstandard goes by the decoded bytes, however many pieces they are in; a batch that is
// given less is a fault.
func TestDecodeTemp(t *testing.T) {
	gputest.NeedDouble(t)
	b := open(t, usual)
	for _, pieces := range []int{1, 100} {
		n, err := b.lib.DecodeTemp(b.device, Zstd, pieces, 1<<20, 1<<20)
		if err != nil || n < 3<<20 || n > 4<<20 {
			t.Errorf("%d pieces of 1 MiB together: %d bytes, %v", pieces, n, err)
		}
	}
	if n, err := b.lib.DecodeTemp(b.device, LZ4, 100, 1<<20, 100<<20); err != nil || n != 0 {
		t.Errorf("LZ4: %d bytes, %v", n, err)
	}
	t.Run("too little", func(t *testing.T) {
		if !apart(t) {
			return
		}
		b := open(t, usual)
		batch, _ := b.pieces(Zstd)
		run := func(t *table, from, n int, temp gpu.Span) {
			b.stream.Queue(func(handle uintptr) error {
				return check("decode", b.lib.decode[Zstd].Decode(t.column(srcAddress, from), t.column(srcBytes, from), t.column(dstBytes, from), t.column(gotBytes, from),
					uint64(n), temp.Address(), uint64(temp.Bytes()), t.column(dstAddress, from), decodeOptions, t.column(statuses, from), handle))
			})
		}
		err := queue(b.stream, batch, func(int) (int64, error) { return 4096, nil }, run, func(int, int64) error { return nil }, Zstd)
		if err = errors.Join(err, b.stream.Wait()); !errors.Is(err, gpu.ErrLost) {
			t.Errorf("%v, want a fault of the device", err)
		}
	})
}

// Where NVIDIA's library is (STRATA_TEST_LIBNVCOMP), it has all that is called, and says
// what this package assumes; it works on no device here.
func TestRealLibrary(t *testing.T) {
	file := os.Getenv("STRATA_TEST_LIBNVCOMP")
	if file == "" {
		t.Skip("STRATA_TEST_LIBNVCOMP does not name NVIDIA's library")
	}
	if os.Getenv("STRATA_LIBNVCOMP") != file && !apart(t, "STRATA_LIBNVCOMP="+file) {
		return
	}
	l, err := load()
	if err != nil {
		t.Fatal(err)
	}
	for f, want := range map[Format]int64{Zstd: 1, LZ4: 1, Deflate: 4} {
		if got := l.DecodeAlignment(f); got != want {
			t.Errorf("%s: pieces to decode are aligned to %d", f, got)
		}
	}
	for f, want := range map[Format]int64{Zstd: 4, LZ4: 1} {
		n, err := l.Bound(f, 1<<20)
		if got := l.EncodeAlignment(f); got != want || err != nil || n <= 1<<20 || n > 1<<20+1<<13 {
			t.Errorf("%s: pieces to encode are aligned to %d; 1 MiB becomes %d bytes; %v", f, got, n, err)
		}
	}
	if !strings.HasPrefix(l.Version(), "6.") {
		return
	}
	// What the double asks for as temporary memory; to encode Zstandard NVIDIA's asks a device.
	for _, c := range [][2]uint64{{1, 100}, {1, 65536}, {16, 65536}, {300, 1000}, {28, 300000}, {256, 1 << 20}, {1, 52 << 20}} {
		n, size := c[0], c[1]
		var decode, encode uint64
		if s := l.decode[Zstd].TempSize(n, size, decodeOptions, &decode, n*size, 0); s != 0 || decode != 3*n*size+6936*max(n, n*size>>17) {
			t.Errorf("%d of %d bytes are decoded with %d bytes of temporary memory; status %d", n, size, decode, s)
		}
		if s := l.encode[LZ4].TempSize(n, min(size, 16<<20), encodeOptions, &encode, n*size, 0); s != 0 || encode != 32768*n {
			t.Errorf("%d of %d bytes are encoded with %d bytes of temporary memory; status %d", n, size, encode, s)
		}
	}
}

// The probes are the sample, as the host encodes it; -update writes them.
func TestProbes(t *testing.T) {
	for f := range formats {
		file := filepath.Join("probe", strings.ToLower(f.String()))
		if *update {
			if err := os.WriteFile(file, encode(t, f, sample()), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		got, err := f.probe()
		if err != nil {
			t.Fatal(err)
		}
		if want := encode(t, f, sample()); len(got) > len(want)*11/10 || len(got)*10 > len(sample())*9 {
			t.Errorf("%v: %d bytes, the host makes %d of %d", f, len(got), len(want), len(sample()))
		}
		if plain, err := hostDecode(f, got); err != nil || !bytes.Equal(plain, sample()) {
			t.Errorf("%v: the probe is not the sample: %v", f, err)
		}
	}
}

var update = flag.Bool("update", false, "write the probes")

// hostDecode decodes a frame of the sample on the host.
func hostDecode(f Format, frame []byte) ([]byte, error) {
	dst := make([]byte, len(sample()))
	s := codec.NewScratch()
	switch f {
	case Zstd:
		return dst, codec.Chain{codec.Zstd(3, false)}.Decode(s, dst, frame)
	case LZ4:
		return dst, codec.Chain{codec.LZ4(1)}.Decode(s, dst, append(binary.LittleEndian.AppendUint32(nil, uint32(len(dst))), frame...))
	}
	_, err := io.ReadFull(flate.NewReader(bytes.NewReader(frame)), dst)
	return dst, err
}

// A library that decodes wrongly, or not at all, is not used, and why is said; bytes of the trial are not counted.
func TestTried(t *testing.T) {
	for name, c := range map[string]struct{ env, want string }{
		"right":   {"CUEMU_CHUNK=", ""},
		"wrong":   {"CUEMU_CHUNK=2:-1", "a frame of LZ4 that was tried: it decodes to other bytes"},
		"refused": {"CUEMU_CHUNK=3:12", "a frame of Deflate that was tried: probe: Deflate: cannot be decompressed (nvCOMP error 12)"},
		"fails":   {"CUEMU_FAIL=nvcompBatchedZstdDecompressAsync:1:1000", "a frame of Zstd that was tried: nvcompBatchedZstdDecompressAsync: CUDA failed (nvCOMP error 1000)"},
	} {
		t.Run(name, func(t *testing.T) {
			if !apart(t, c.env) {
				return
			}
			d := gputest.Device(t, usual)
			for range 2 {
				_, err := Open(d)
				if got := gpu.Reason(err); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
					t.Errorf("%q, want %q", got, c.want)
				}
			}
			if up, down, across := d.Traffic(); up+down+across > 0 {
				t.Errorf("%d bytes up, %d down, %d across", up, down, across)
			}
		})
	}
}

// TestWarm: an encoder that encodes to something else, or fails, is said to; bytes of the warm-up are not counted, and
// there is one for each format.
func TestWarm(t *testing.T) {
	for name, c := range map[string]struct{ env, want string }{
		"right":   {"CUEMU_CHUNK=", ""},
		"wrong":   {"CUEMU_CHUNK=1:-1", "Zstd, encoded by nvCOMP 6.0.0: it decodes to other bytes"},
		"refused": {"CUEMU_CHUNK=1:19", "Zstd, encoded by nvCOMP 6.0.0: sample: Zstd: cannot be compressed (nvCOMP error 19)"},
		"fails":   {"CUEMU_FAIL=nvcompBatchedZstdCompressAsync:1:1000", "nvcompBatchedZstdCompressAsync: CUDA failed (nvCOMP error 1000)"},
	} {
		t.Run(name, func(t *testing.T) {
			if !apart(t, gputest.FaultVariable+"="+c.env) {
				return
			}
			d := gputest.Device(t, usual)
			l, err := Open(d)
			if err != nil {
				t.Fatal(err)
			}
			gputest.Fault()
			for range 2 {
				if got := gpu.Reason(l.Warm(d, Zstd)); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
					t.Errorf("%q, want %q", got, c.want)
				}
			}
			if err := l.Warm(d, LZ4); err != nil {
				t.Error(err)
			}
			if up, down, across := d.Traffic(); up+down+across > 0 {
				t.Errorf("%d bytes up, %d down, %d across", up, down, across)
			}
		})
	}
}
