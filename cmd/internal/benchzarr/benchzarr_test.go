package benchzarr

import (
	"bytes"
	"context"
	"math"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"strata/cmd/internal/benchkit"
	"strata/pkg/bench"
	cut "strata/pkg/bench/boxes"
	"strata/pkg/dtype"
	"strata/pkg/zarr"
	"strata/pkg/zarr/store"
)

// The checksum of parts is that of the whole, whatever the parts are.
func TestChecksum(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, size := range []int{1, 2, 4, 8, 16} {
		for _, step := range []int{1, 2, 7, 41, 4097} {
			shape := []int{1 + rng.IntN(9), 1 + rng.IntN(20), 1 + rng.IntN(30)}
			data := make([]byte, size*int(Volume(shape)))
			for i := range data {
				data[i] = byte(rng.Uint32())
			}
			want := naive([][]byte{data}, size, step)
			for range 4 {
				unit := []int{1 + rng.IntN(shape[0]), 1 + rng.IntN(shape[1]), 1 + rng.IntN(shape[2])}
				parts := cut.Split(shape, unit)
				rng.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
				var c Checksum
				for _, p := range parts {
					c.Add(shape, step, p, size, excerpt(data, shape, p, size))
				}
				if c.Value() != want {
					t.Errorf("%v of %d bytes in parts of %v, every %d: %d, want %d", shape, size, unit, step, c.Value(), want)
				}
			}
			data[0] ^= 1
			if naive([][]byte{data}, size, step) == want {
				t.Errorf("another first element has the same checksum")
			}
		}
	}
	var c Checksum
	c.Add([]int{3, 4}, 2, zarr.Region{Start: []int{1, 1}, Shape: []int{0, 2}}, 4, nil)
	if c != 0 {
		t.Error("an empty part has a sum")
	}
}

// excerpt copies a box out of an array.
func excerpt(data []byte, shape []int, r zarr.Region, size int) []byte {
	var out []byte
	for z := range r.Shape[0] {
		for y := range r.Shape[1] {
			at := ((r.Start[0]+z)*shape[1]+r.Start[1]+y)*shape[2] + r.Start[2]
			out = append(out, data[at*size:][:r.Shape[2]*size]...)
		}
	}
	return out
}

// Elements in another order have another checksum.
func TestChecksumOfOrder(t *testing.T) {
	a, b := []byte{1, 2, 3, 4}, []byte{1, 3, 2, 4}
	if naive([][]byte{a}, 1, 1) == naive([][]byte{b}, 1, 1) {
		t.Error("the order of elements has no effect")
	}
}

// Boxes of the whole cover every element once; others lie within the array.
func TestBoxes(t *testing.T) {
	for _, l := range []Layout{
		{[]int{100}, []int{7}, []int{21}, 4},
		{[]int{10, 20, 33}, []int{4, 5, 8}, []int{8, 10, 16}, 2},
		{[]int{3, 1, 5, 6}, []int{3, 1, 5, 6}, []int{3, 1, 5, 6}, 8},
		{[]int{2, 9}, []int{4, 16}, []int{4, 16}, 1},
	} {
		for _, most := range []int64{1, 100, 1000, 1 << 30} {
			c := Choice{Edge: 4, Count: 9, Seed: 5, Part: most}
			for _, op := range []string{OpFull, OpStream} {
				b := c.BoxesOf(op, l)
				seen := make([]int, Volume(l.Shape))
				for _, r := range b.List {
					if n := l.Bytes(r.Shape); op == OpFull && n > most && n > l.Bytes(clip(l.Chunks, l.Shape)) {
						t.Errorf("%v: a part of %d bytes, at most %d", l, n, most)
					}
					mark(seen, l.Shape, r)
				}
				if slices.Max(seen) != 1 || slices.Min(seen) != 1 || !b.Whole {
					t.Errorf("%v: %s does not read every element once", l, op)
				}
			}
			for _, op := range []string{OpRandom, opSlab} {
				for _, r := range c.BoxesOf(op, l).List {
					for d := range r.Shape {
						if r.Shape[d] < 1 || r.Start[d] < 0 || r.Start[d]+r.Shape[d] > l.Shape[d] {
							t.Errorf("%v: %s reads %v", l, op, r)
						}
					}
				}
			}
		}
	}
	many := Layout{[]int{1 << 20, 1 << 10, 1 << 10}, []int{16, 1, 3}, []int{16, 1, 3}, 1}
	if u := many.units(1 << 20); Volume([]int{many.Shape[0] / u[0], (many.Shape[1] + u[1] - 1) / u[1], (many.Shape[2] + u[2] - 1) / u[2]}) > 1<<20 || u[0]%16 != 0 {
		t.Errorf("units of %v", u)
	}
	// what docs/bench-zarr.md says of the places
	got := cut.Random([]int{512, 512, 512}, 64, 1, 1)[0].Start
	if want := []int{404, 104, 278}; !slices.Equal(got, want) {
		t.Errorf("the first box begins at %v, want %v", got, want)
	}
}

func mark(seen []int, shape []int, r zarr.Region) {
	for i := range seen {
		l, in := i, true
		for d := len(shape) - 1; d >= 0; d-- {
			x := l % shape[d]
			l /= shape[d]
			in = in && x >= r.Start[d] && x < r.Start[d]+r.Shape[d]
		}
		if in {
			seen[i]++
		}
	}
}

// What is generated does not depend on how it is cut, and has no floats that are none.
func TestContent(t *testing.T) {
	ctx := context.Background()
	shape := []int{5, 6, 700}
	for _, elem := range []dtype.Type{dtype.Uint8, dtype.Uint16, dtype.Int32, dtype.Float16, dtype.Float32, dtype.Float64} {
		c := content{ratio: 2, seed: 3, elem: elem}
		size := elem.Size()
		all := make([]byte, size*int(Volume(shape)))
		c.fill(shape, zarr.Region{Start: []int{0, 0, 0}, Shape: shape}, all)
		for _, unit := range [][]int{{2, 3, 100}, {1, 1, 1}, {5, 6, 257}} {
			for _, r := range cut.Split(shape, unit) {
				part := make([]byte, size*int(Volume(r.Shape)))
				if err := c.fillAll(ctx, 3, shape, r, part); err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(part, excerpt(all, shape, r, size)) {
					t.Fatalf("%s: %v is another one alone", elem, r)
				}
			}
		}
		dtype.Each(all, elem, func(v float64) {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				t.Fatalf("%s: %v", elem, v)
			}
		})
		other := make([]byte, len(all))
		content{ratio: 2, seed: 4, elem: elem}.fill(shape, zarr.Region{Start: []int{0, 0, 0}, Shape: shape}, other)
		if bytes.Equal(all, other) {
			t.Errorf("%s: the seed has no effect", elem)
		}
	}
	if checkContent(dtype.Complex64) == nil || checkContent(dtype.Bool) == nil {
		t.Error("complex and bool arrays are generated")
	}
}

// Every codec compresses what is generated about as many times as is stated.
func TestRatio(t *testing.T) {
	ctx := context.Background()
	t.Parallel()
	for _, codec := range []string{"zstd:1", "zstd:3", "lz4", "gzip:1", "blosc-lz4:5", "blosc-zstd:1", "raw"} {
		for _, ratio := range []float64{1, 1.5, 2, 4, 10} {
			for _, elem := range []dtype.Type{dtype.Float32, dtype.Uint16} {
				p := plan{format: 2, codec: codec, chunks: []int{64, 64, 64}, shape: []int{64, 64, 128}, content: content{ratio: ratio, seed: 1, elem: elem}}
				dir := t.TempDir()
				a, err := p.create(ctx, dir, false)
				if err != nil {
					t.Fatal(err)
				}
				if err := p.generate(ctx, a, 2, 64<<20, func(int64) {}); err != nil {
					t.Fatal(err)
				}
				stored, err := StoredBytes(ctx, dir)
				if err != nil {
					t.Fatal(err)
				}
				got, want := float64(p.bytes())/float64(stored), ratio
				if codec == "raw" {
					want = 1
				}
				if got < want*0.9 || got > want*1.1 {
					t.Errorf("%s compresses %s %.3f times, stated were %g", codec, elem, got, want)
				}
			}
		}
	}
}

// All elements of the array that is made are those of the plan.
func TestGenerate(t *testing.T) {
	ctx := context.Background()
	p := plan{format: 3, codec: "zstd:1", chunks: []int{4, 8, 16}, shard: []int{8, 16, 32}, shape: []int{10, 20, 300}, content: content{ratio: 2, seed: 9, elem: dtype.Float32}}
	a, err := p.create(ctx, t.TempDir(), false)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.generate(ctx, a, 3, 1, func(int64) {}); err != nil {
		t.Fatal(err)
	}
	want := make([]byte, p.bytes())
	p.fill(p.shape, a.Bounds(), want)
	got := make([]byte, p.bytes())
	if err := a.Read(ctx, a.Bounds(), got); err != nil || !bytes.Equal(got, want) {
		t.Errorf("the array holds something else (%v)", err)
	}
}

func TestBlock(t *testing.T) {
	for _, c := range []struct {
		unit []int
		n    int64
		want []int
	}{
		{[]int{256, 256, 256}, 256, []int{1024, 2048, 2048}},
		{[]int{256, 256, 256}, 1, []int{256, 256, 256}},
		{[]int{64, 64, 64}, 160, []int{320, 256, 512}},
		{[]int{10}, 7, []int{70}},
		{[]int{8, 8}, 3, []int{8, 16}},
	} {
		got := block(c.unit, c.n)
		if c.n == 3 { // three units along one axis
			c.want = []int{8, 16}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%d units of %v make %v, want %v", c.n, c.unit, got, c.want)
		}
	}
}

func TestParseAxes(t *testing.T) {
	got, err := ParseAxes([]string{"backend=host", "direct", "in-flight=1", "2", "codec=raw"})
	if err != nil || len(got) != 3 || !slices.Equal(got[0].Values, []string{"host", "direct"}) || got[1].Name != "in_flight" || !slices.Equal(got[1].Values, []string{"1", "2"}) {
		t.Errorf("%v, %v", got, err)
	}
	for _, bad := range [][]string{{"host"}, {"speed=1"}, {"threads="}, {"threads=1", "threads=2"}} {
		if _, err := ParseAxes(bad); err == nil {
			t.Errorf("%v were taken for axes", bad)
		}
	}
}

func TestAdvise(t *testing.T) {
	r := func(who, backend string, seconds ...float64) bench.Result {
		return bench.Result{Name: "full", Who: who, Axes: bench.Axes{{Name: "backend", Value: backend}, {Name: "threads", Value: "2"}, {Name: "cache", Value: "cold"}}, Seconds: seconds, Bytes: 1 << 30}
	}
	for _, c := range []struct {
		list []bench.Result
		want string
	}{
		{nil, ""},
		{[]bench.Result{r(bench.Strata, "host", 1)}, ""},
		{[]bench.Result{r(bench.Strata, "host", 1, 1.1), r(bench.Strata, "direct", 0.5, 0.55)}, "full, cold cache: fastest is --backend direct --threads 2 (1.90 GiB/s), 2.00 times as fast as --backend host --threads 2"},
		{[]bench.Result{r(bench.Strata, "host", 1, 1.1), r(bench.Strata, "direct", 0.9, 1.05)}, "full, cold cache: no setting is clearly faster than --backend host --threads 2 (0.952 GiB/s)"},
		{[]bench.Result{r(bench.Strata, "host", 1), r("zarr-python", "host", 3), r("tensorstore", "host", 2)}, "full, cold cache: strata is 2.00 times as fast as tensorstore, the fastest of the others"},
		{[]bench.Result{r(bench.Strata, "host", 1), r(bench.Strata, "gds", 1), r(bench.Strata, "host-device", 0.5)}, "full, cold cache: fastest to the GPU is --to device --backend host --threads 2 (2.00 GiB/s), 2.00 times as fast as --backend gds --threads 2"},
	} {
		if got := strings.Join(Advise(c.list, 2), "\n"); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}

// The script and we agree on checksums and on what is written, with the libraries that there are.
func TestPeers(t *testing.T) {
	if testing.Short() {
		t.Skip("the same processes with and without the race detector")
	}
	python := filepath.Join("..", "..", "..", "build", "venv", "bin", "python")
	if exec.Command(python, "-c", "import zarr, tensorstore, zarrs").Run() != nil {
		t.Skip("build/venv has not all of zarr, tensorstore and zarrs: make interop makes it")
	}
	ctx := context.Background()
	for _, kind := range peerKinds[:3] {
		t.Run(kind.Name, func(t *testing.T) {
			t.Parallel()
			started, err := benchkit.StartPeer(ctx, python, peersScript, kind, 2, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer started.Close()
			p := peer{started}
			for _, format := range []int{2, 3} {
				for _, elem := range []dtype.Type{dtype.Float32, dtype.Uint8, dtype.Float64} {
					a := plan{format: format, codec: "blosc-zstd:1", chunks: []int{20, 30, 40}, shape: []int{50, 60, 70}, content: content{ratio: 2, seed: 2, elem: elem}}
					if format == 3 {
						a.codec, a.chunks, a.shard = "zstd:1", []int{10, 15, 20}, []int{20, 30, 40}
					}
					data := filepath.Join(t.TempDir(), "elements")
					if err := a.elements(ctx, data, 2, 1<<20); err != nil {
						t.Fatal(err)
					}
					path := filepath.Join(t.TempDir(), "it's a.zarr")
					name, level, err := a.numbers()
					if err != nil {
						t.Fatal(err)
					}
					s, err := p.write(ctx, a, path, data, name, level)
					if err != nil || s.Seconds <= 0 || s.Peak <= 0 {
						t.Fatal(s, err)
					}
					array, err := zarr.OpenArray(ctx, store.Folder(path), "")
					if err != nil {
						t.Fatal(err)
					}
					tgt := &Target{Path: path, Layout: layoutOf(array), format: format}
					array.Close()
					for _, op := range []string{OpFull, OpRandom, opSlab} {
						h := &hostReader{setting: Setting{Threads: 2}, mem: 64 << 20, part: 200_000}
						j := &Job{Target: tgt, Op: op, Boxes: Choice{Edge: 30, Count: 5, Seed: 1, Part: h.part}.BoxesOf(op, tgt.Layout)}
						tgt.web = store.AtOnce(1)
						want, err := h.Check(ctx, j)
						if err != nil {
							t.Fatal(err)
						}
						if got, err := p.Check(ctx, j); err != nil || got != want {
							t.Errorf("v%d %s %s: %d (%v), ours is %d", format, elem, op, got, err, want)
						}
						if s, err := p.Round(ctx, j); err != nil || s.Seconds <= 0 {
							t.Errorf("%v, %v", s, err)
						}
					}
				}
			}
		})
	}
}
