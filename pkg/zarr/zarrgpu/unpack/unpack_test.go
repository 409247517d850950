//go:build !nocuda

package unpack

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"

	"strata/pkg/gpu"
	"strata/pkg/gpu/nvcomp"
	"strata/pkg/mem"
	"strata/pkg/zarr"
	"strata/pkg/zarr/codec"
	"strata/pkg/zarr/store"
	"strata/tests/corpus"
	"strata/tests/cudaemu"
	"strata/tests/gputest"
)

func TestMain(m *testing.M) { cudaemu.Main(m) }

var usual = gpu.Limits{Memory: 64 << 20, Pinned: 64 << 20}

func open(t testing.TB, l gpu.Limits) (*nvcomp.Library, *gpu.Stream) {
	t.Helper()
	d := gputest.Device(t, l)
	lib, err := nvcomp.Open(d)
	if err != nil {
		t.Fatal(err)
	}
	return lib, gputest.Stream(t, d)
}

// stored is a chunk in the host's memory.
type stored struct {
	name  string
	chain codec.Chain
	data  []byte
	size  int
}

// decode decodes chunks on the device, with stored bytes that lie behind each other,
// wherever that is.
func decode(lib *nvcomp.Library, s *gpu.Stream, list []stored) ([][]byte, error) {
	const gap = 3 // bytes between chunks, so that nothing is aligned
	in, out := 0, 0
	for _, c := range list {
		in += len(c.data) + gap
		out += (c.size + 15) / 16 * 16
	}
	d := s.Device()
	host, err := d.Host(max(in, out))
	if err != nil {
		return nil, err
	}
	defer host.Release()
	src, err := d.Memory().Get(int64(in))
	if err != nil {
		return nil, err
	}
	defer src.Release()
	dst, err := d.Memory().Get(int64(out))
	if err != nil {
		return nil, err
	}
	defer dst.Release()
	chunks := make([]Chunk, len(list))
	in, out = 0, 0
	for i, c := range list {
		if err := c.chain.Pieces(&chunks[i].Pieces, c.data, c.size); err != nil {
			return nil, err
		}
		chunks[i].Name = c.name
		chunks[i].Stored = src.From(int64(in), int64(len(c.data)))
		chunks[i].Dst = dst.From(int64(out), int64(c.size))
		in += copy(host.B[in:], c.data) + gap
		out += (c.size + 15) / 16 * 16
	}
	s.Upload(src.Span, host.B[:in])
	err = Queue(lib, s, chunks)
	if e := s.Wait(); e != nil && err == nil { // the memory is in use until here
		err = e
	}
	if err != nil {
		return nil, err
	}
	s.Download(host.B[:out], dst.Span)
	if err := s.Wait(); err != nil {
		return nil, err
	}
	all := make([][]byte, len(list))
	out = 0
	for i, c := range list {
		all[i] = bytes.Clone(host.B[out : out+c.size])
		out += (c.size + 15) / 16 * 16
	}
	return all, nil
}

func samples() [][]byte {
	var all [][]byte
	for _, n := range []int{1, 7, 129, 4096, 5000, 70001} {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(i>>9) + byte(i*i>>3)*byte(i&1)
		}
		all = append(all, b)
	}
	return all
}

func chains(t testing.TB) []codec.Chain {
	t.Helper()
	list := []codec.Chain{{}, {codec.CRC32C()}, {codec.Zstd(1, false)}, {codec.Zstd(19, true), codec.CRC32C()}, {codec.LZ4(1)}, {codec.Gzip(6)},
		{codec.Zlib(6), codec.CRC32()}, {codec.Shuffle(4)}, {codec.Shuffle(4), codec.Zstd(3, false)}}
	for _, name := range []string{"lz4", "zlib", "zstd"} {
		for _, how := range []codec.BloscShuffle{codec.NoShuffle, codec.ByteShuffle, codec.BitShuffle} {
			for _, typesize := range []int{1, 2, 3, 4, 8} {
				for _, block := range []int{0, 4096} {
					c, err := codec.Blosc(name, 5, how, typesize, block)
					if err != nil {
						t.Fatal(err)
					}
					list = append(list, codec.Chain{c})
				}
			}
		}
	}
	return list
}

func encoded(t testing.TB) (list []stored, want [][]byte) {
	t.Helper()
	s := codec.NewScratch()
	for i, c := range chains(t) {
		for _, data := range samples() {
			if len(c) > 0 && c[0].Name() == "shuffle" {
				data = data[:len(data)&^3]
			}
			if len(data) == 0 {
				continue
			}
			src, err := c.Encode(s, nil, data)
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, k := range c {
				names = append(names, k.Name())
			}
			list = append(list, stored{fmt.Sprintf("%s chain %d of %d bytes", strings.Join(names, "+"), i, len(data)), c, bytes.Clone(src), len(data)})
			want = append(want, data)
		}
	}
	return list, want
}

// Chunks of all kinds in one batch are what the host decodes.
func TestQueue(t *testing.T) {
	lib, s := open(t, usual)
	list, want := encoded(t)
	got, err := decode(lib, s, list)
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range list {
		if !bytes.Equal(got[i], want[i]) {
			t.Errorf("%s differs", c.name)
		}
	}
}

// What goes up is the stored bytes and the tables, and little comes down.
func TestTraffic(t *testing.T) {
	lib, s := open(t, usual)
	data := samples()[5]
	c, err := codec.Blosc("zstd", 5, codec.ByteShuffle, 4, 8192)
	if err != nil {
		t.Fatal(err)
	}
	src, err := c.Encode(codec.NewScratch(), nil, data)
	if err != nil {
		t.Fatal(err)
	}
	var p codec.Pieces
	if err := (codec.Chain{c}).Pieces(&p, src, len(data)); err != nil {
		t.Fatal(err)
	}
	var compressed, plain int64
	for _, k := range p.List {
		if k.Format == codec.StreamStored {
			plain++
		} else {
			compressed++
		}
	}
	if compressed < 3 || plain < 3 || int(compressed+plain) > (codec.Chain{c}).MostStreams(len(data)) {
		t.Fatalf("%d streams are compressed, %d are not", compressed, plain)
	}
	if _, err := decode(lib, s, []stored{{"chunk", codec.Chain{c}, src, len(data)}}); err != nil {
		t.Fatal(err)
	}
	up, down, across := s.Device().Traffic()
	if want := int64(len(src)) + 3 + 44*compressed + 24*plain; up != want || across != 0 {
		t.Errorf("%d bytes went up, want %d; %d across", up, want, across)
	}
	if want := int64(len(data)+15)/16*16 + 12*compressed; down != want {
		t.Errorf("%d bytes came down, want %d", down, want)
	}
}

// A damaged chunk is an error that names it, or, where nothing can tell, other bytes,
// as on the host; the other chunks' memory is left alone.
func TestDamage(t *testing.T) {
	gputest.NeedDouble(t) // NVIDIA promises nothing of damaged chunks
	lib, s := open(t, usual)
	all, want := encoded(t)
	host, r := codec.NewScratch(), rand.New(rand.NewPCG(5, 6))
	good := stored{"good", all[0].chain, want[0], len(want[0])}
	named, kinds := 0, 6
	if testing.Short() {
		kinds = 2
	}
	for i, c := range all {
		if c.size > 6000 {
			continue
		}
		for k := range kinds {
			bad := c
			switch bad.data = bytes.Clone(c.data); k {
			case 0:
				bad.data = bad.data[:r.IntN(len(bad.data))]
			default:
				bad.data[r.IntN(len(bad.data))] ^= 1 << r.IntN(8)
			}
			got, err := decode(lib, s, []stored{good, bad, all[i]})
			if errors.Is(err, codec.ErrWhole) {
				continue
			}
			plain := make([]byte, c.size)
			wrong := c.chain.Decode(host, plain, bad.data)
			var piece *nvcomp.PieceError
			switch {
			case err == nil && wrong != nil && strings.Contains(wrong.Error(), "Huffman table"):
				// The host's reader of these tables is stricter than libzstd, which takes some that a flipped bit made.
			case err == nil && wrong != nil:
				t.Errorf("%s: the device saw nothing, the host: %v", c.name, wrong)
			case err == nil && (!bytes.Equal(got[1], plain) || !bytes.Equal(got[2], want[i]) || !bytes.Equal(got[0], good.data)):
				t.Errorf("%s: differs", c.name)
			case err != nil && wrong == nil:
				t.Errorf("%s: the host decodes it, the device: %v", c.name, err)
			case errors.As(err, &piece):
				if named++; piece.Name != c.name {
					t.Errorf("%s: the error names another chunk: %v", c.name, err)
				}
			}
		}
	}
	if named < 20 {
		t.Errorf("%d errors of the device", named)
	}
}

// Little memory: an error, and all is given back.
func TestMemory(t *testing.T) {
	lib, s := open(t, gpu.Limits{Memory: 1 << 20, Pinned: 64 << 20})
	list, want := encoded(t)
	if _, err := decode(lib, s, list); !errors.Is(err, gpu.ErrMemory) {
		t.Errorf("%v", err)
	}
	for i, c := range list[12:24] {
		got, err := decode(lib, s, []stored{c})
		if err != nil || !bytes.Equal(got[0], want[12+i]) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// Queue takes no more than Memory says.
func TestMemoryOfChains(t *testing.T) {
	for i, c := range chains(t) {
		lib, s := open(t, usual)
		const size, n = 30000, 3
		chunk := bytes.Repeat(samples()[4], size/5000)
		src, err := c.Encode(codec.NewScratch(), nil, chunk)
		if err != nil {
			t.Fatal(err)
		}
		d := s.Device()
		memory, err := d.Memory().Get(int64(len(src) + n*size))
		if err != nil {
			t.Fatal(err)
		}
		host, err := d.Host(len(src))
		if err != nil {
			t.Fatal(err)
		}
		copy(host.B, src)
		list := make([]Chunk, n)
		for k := range list {
			if err := c.Pieces(&list[k].Pieces, src, size); err != nil {
				t.Fatal(err)
			}
			list[k].Stored, list[k].Dst = memory.From(n*size, int64(len(src))), memory.From(int64(k*size), size)
		}
		s.Upload(list[0].Stored, host.B)
		pinned, device := d.Pinned().Peak(), d.Memory().Peak()
		if err := errors.Join(Queue(lib, s, list), s.Wait()); err != nil {
			t.Fatal(err)
		}
		p, m, err := Memory(lib, d, c, size, n)
		if tookP, tookM := d.Pinned().Peak()-pinned, d.Memory().Peak()-device; err != nil || tookP > p || tookM > m {
			t.Errorf("chain %d, %v: took %d and %d bytes, said %d and %d; %v", i, c, tookP, tookM, p, m, err)
		}
		memory.Release()
		host.Release()
	}
}

// The chunks of the corpus that have pieces, which other programs wrote.
func TestCorpus(t *testing.T) {
	lib, s := open(t, usual)
	ctx, host, decoded := context.Background(), codec.NewScratch(), map[string]int{}
	var list []stored
	var want [][]byte
	for _, c := range corpus.Cases(t) {
		if c.Kind != "array" || c.Must != "read" {
			continue
		}
		st := store.Folder(c.Dir(t))
		a, err := zarr.OpenArray(ctx, st, "")
		if err != nil {
			t.Fatalf("%s: %v", c.ID, err)
		}
		size := a.DType().Size()
		for _, n := range a.Chunks() {
			size *= n
		}
		chain := a.Codecs()
		if chain.InPieces() != nil || a.Shard() != nil {
			continue
		}
		data, err := st.Get(ctx, a.ChunkKey(make([]int, len(a.Shape()))), nil, 1<<30)
		if err != nil {
			continue // not stored
		}
		if err := chain.Pieces(new(codec.Pieces), data, size); errors.Is(err, codec.ErrWhole) {
			continue
		}
		chunk := make([]byte, size)
		if err := chain.Decode(host, chunk, data); err != nil {
			t.Fatalf("%s: %v", c.ID, err)
		}
		list, want = append(list, stored{c.ID, chain, data, size}), append(want, chunk)
		for _, k := range chain {
			decoded[k.Name()]++
		}
	}
	got, err := decode(lib, s, list)
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range list {
		if !bytes.Equal(got[i], want[i]) {
			t.Errorf("%s differs", c.name)
		}
	}
	for _, name := range []string{"blosc", "zstd", "lz4", "gzip", "zlib", "crc32c"} {
		if decoded[name] == 0 {
			t.Errorf("no chunk of %s: %v", name, decoded)
		}
	}
}

// Two streams decode at once.
func TestStreams(t *testing.T) {
	lib, s := open(t, usual)
	list, want := encoded(t)
	other, err := s.Device().Stream()
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() {
		got, err := decode(lib, other, list[:200])
		for i := range got {
			if !bytes.Equal(got[i], want[i]) {
				err = fmt.Errorf("%s differs", list[i].name)
			}
		}
		done <- err
	}()
	got, err := decode(lib, s, list[100:])
	for i := range got {
		if !bytes.Equal(got[i], want[100+i]) {
			t.Errorf("%s differs", list[100+i].name)
		}
	}
	if err := errors.Join(err, <-done, other.Close()); err != nil {
		t.Fatal(err)
	}
}

func TestNoLibrary(t *testing.T) {
	_, s := open(t, usual)
	if got, err := decode(nil, s, []stored{{"raw", codec.Chain{codec.Shuffle(2)}, []byte{1, 2, 3, 4}, 4}}); err != nil || !bytes.Equal(got[0], []byte{1, 3, 2, 4}) {
		t.Error(got, err)
	}
	src, err := codec.Zstd(1, false).Encode(codec.NewScratch(), nil, make([]byte, 100))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := decode(nil, s, []stored{{"c/0", codec.Chain{codec.Zstd(1, false)}, src, 100}}); err == nil || !strings.HasPrefix(err.Error(), "c/0: Zstd: there is no nvCOMP") {
		t.Error(err)
	}
}

// Faults at any call end in an error, never in other bytes.
func TestFaults(t *testing.T) {
	for _, fail := range []string{"cuMemAlloc_v2:1:1", "cuMemAlloc_v2:3:1", "cuMemAlloc_v2:5:1", "cuMemHostAlloc:2:2", "cuMemcpyHtoDAsync_v2:1:1", "cuMemcpyHtoDAsync_v2:2:1",
		"cuMemcpyHtoDAsync_v2:4:719s", "cuLaunchKernel:1:1", "cuLaunchKernel:3:700s", "cuMemcpyDtoHAsync_v2:2:1", "nvcompBatchedLZ4DecompressAsync:1:1000", "nvcompBatchedDeflateDecompressAsync:1:719s",
		"nvcompBatchedZstdDecompressGetTempSize:1:10000", "CHUNK=1:12", "CHUNK=40:13"} {
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
			list, _ := encoded(t)
			if _, err := decode(lib, s, list); err == nil {
				t.Error("no error")
			} else {
				t.Log(err)
			}
		})
	}
}

// Room for streams that are moved does not depend on how short they are, unless they are longer than what they
// decode to.
func TestSameMemory(t *testing.T) {
	lib, s := open(t, usual)
	noise := make([]byte, 70000)
	for i, x := range rand.New(rand.NewPCG(1, 2)).Perm(len(noise)) {
		noise[i] = byte(x)
	}
	var first int64
	for i, data := range [][]byte{bytes.Repeat([]byte("ab"), 35000), samples()[5][:70000], noise} {
		c := codec.Chain{codec.Gzip(6)}
		b, err := c.Encode(codec.NewScratch(), nil, data)
		if err != nil {
			t.Fatal(err)
		}
		b = bytes.Clone(b)
		before := s.Device().Memory().Peak()
		got, err := decode(lib, s, []stored{{"a", c, b, len(data)}, {"b", c, b, len(data)}})
		if err != nil || !bytes.Equal(got[1], data) {
			t.Fatal(err)
		}
		// What decode takes itself for the stored bytes is of another size each time.
		taken := s.Device().Memory().Peak() - before - mem.Pooled(int64(2*(len(b)+3)))
		if i == 0 {
			first = taken
		} else if taken > 0 {
			t.Errorf("%d bytes were taken for other chunks after %d", taken, first)
		}
	}
}
