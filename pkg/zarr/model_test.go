package zarr_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"strata/pkg/dtype"
	"strata/pkg/zarr"
	"strata/pkg/zarr/codec"
	"strata/pkg/zarr/store"
	"strata/tests/race"
)

// model is an array as plain memory.
type model struct {
	shape []int
	size  int
	data  []byte
}

func newModel(shape []int, fill []byte) *model {
	m := &model{shape: shape, size: len(fill)}
	n := 1
	for _, s := range shape {
		n *= s
	}
	m.data = bytes.Repeat(fill, n)
	return m
}

// each calls f for every element of r, with its offset in the model and its
// number in the region.
func (m *model) each(r zarr.Region, f func(off, i int)) {
	at := make([]int, len(m.shape))
	for _, s := range r.Shape {
		if s == 0 {
			return
		}
	}
	for i := 0; ; i++ {
		off := 0
		for d, n := range m.shape {
			off = off*n + r.Start[d] + at[d]
		}
		f(off*m.size, i)
		d := len(at) - 1
		for ; d >= 0; d-- {
			if at[d]++; at[d] < r.Shape[d] {
				break
			}
			at[d] = 0
		}
		if d < 0 {
			return
		}
	}
}

func (m *model) read(r zarr.Region) []byte {
	var out []byte
	m.each(r, func(off, _ int) { out = append(out, m.data[off:off+m.size]...) })
	return out
}

func (m *model) write(r zarr.Region, src []byte) {
	m.each(r, func(off, i int) { copy(m.data[off:off+m.size], src[i*m.size:]) })
}

func randomRegion(r *rand.Rand, shape []int) zarr.Region {
	reg := zarr.Region{Start: make([]int, len(shape)), Shape: make([]int, len(shape))}
	for d, n := range shape {
		reg.Start[d] = r.IntN(n + 1)
		reg.Shape[d] = r.IntN(n - reg.Start[d] + 1)
	}
	return reg
}

// alignedRegion covers whole chunks, up to the edge.
func alignedRegion(r *rand.Rand, shape, chunk []int) zarr.Region {
	reg := zarr.Region{Start: make([]int, len(shape)), Shape: make([]int, len(shape))}
	for d, n := range shape {
		cells := (n + chunk[d] - 1) / chunk[d]
		lo := r.IntN(cells)
		hi := lo + 1 + r.IntN(cells-lo)
		reg.Start[d] = lo * chunk[d]
		reg.Shape[d] = min(hi*chunk[d], n) - reg.Start[d]
	}
	return reg
}

func regionBytes(r zarr.Region, size int) int {
	for _, n := range r.Shape {
		size *= n
	}
	return size
}

// smooth fills b with numbers that compress, and with a run of the fill value
// now and then.
func smooth(r *rand.Rand, b, fill []byte) {
	if r.IntN(4) == 0 {
		copy(b, bytes.Repeat(fill, len(b)/len(fill)))
		return
	}
	for i := range b {
		b[i] = byte(r.IntN(5))
	}
}

var dtypes = []dtype.Type{dtype.Bool, dtype.Int8, dtype.Int16, dtype.Int32, dtype.Int64, dtype.Uint8, dtype.Uint16,
	dtype.Uint32, dtype.Uint64, dtype.Float16, dtype.Float32, dtype.Float64, dtype.Complex64, dtype.Complex128}

func randomSpec(t *testing.T, r *rand.Rand) zarr.Spec {
	t.Helper()
	s := zarr.Spec{Format: 2 + r.IntN(2), DType: dtypes[r.IntN(len(dtypes))], BigEndian: r.IntN(3) == 0}
	rank := r.IntN(5)
	s.Shape, s.Chunks = make([]int, rank), make([]int, rank)
	for d := range rank {
		s.Shape[d] = 1 + r.IntN(60>>rank+6)
		s.Chunks[d] = 1 + r.IntN(30>>rank+4)
	}
	if r.IntN(3) == 0 {
		s.Order = 'F'
	}
	if r.IntN(2) == 0 {
		s.Separator = []string{".", "/"}[r.IntN(2)]
	}
	if s.Format == 3 && r.IntN(2) == 0 {
		s.Shard = make([]int, rank)
		for d, n := range s.Chunks {
			s.Shard[d] = n * (1 + r.IntN(3))
		}
	}
	flags := []string{"raw", "zstd:1", "gzip:1", "blosc-lz4:5", "blosc-zstd:1"}
	if s.Format == 2 {
		flags = append(flags, "lz4:1")
	}
	var err error
	if s.Codecs, err = codec.FromFlag(flags[r.IntN(len(flags))], s.DType, s.Format); err != nil {
		t.Fatal(err)
	}
	if s.Format == 3 && r.IntN(3) == 0 {
		s.Codecs = append(s.Codecs, codec.CRC32C())
	}
	if r.IntN(2) == 0 {
		fill := make([]byte, s.DType.Size())
		for i := range fill {
			fill[i] = byte(r.IntN(2))
		}
		s.Fill = fill
	}
	return s
}

// TestRandomAgainstModel writes and reads random regions of random arrays and
// compares with plain memory, through the writing array and a fresh one.
func TestRandomAgainstModel(t *testing.T) {
	for seed := range uint64(150) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			ctx := t.Context()
			r := rand.New(rand.NewPCG(seed, 3))
			spec := randomSpec(t, r)
			var st store.Writer = store.Memory()
			if seed%4 == 0 {
				st = store.Folder(t.TempDir())
			}
			opts := []zarr.Option{zarr.Workers(1 + r.IntN(3))}
			if r.IntN(3) == 0 {
				opts = append(opts, zarr.OmitFill())
			}
			a, err := zarr.CreateArray(ctx, st, "a/b", spec, opts...)
			if err != nil {
				t.Fatalf("%+v: %v", spec, err)
			}
			checkAgainstModel(t, r, st, a)
		})
	}
}

func checkAgainstModel(t *testing.T, r *rand.Rand, st store.Store, a *zarr.Array) {
	ctx := t.Context()
	m := newModel(a.Shape(), a.Fill())
	unit := a.Chunks()
	if s := a.Shard(); s != nil && r.IntN(2) == 0 {
		unit = s
	}
	for step := range 8 {
		reg := randomRegion(r, m.shape)
		if r.IntN(2) == 0 {
			reg = alignedRegion(r, m.shape, unit)
		}
		src := make([]byte, regionBytes(reg, m.size))
		smooth(r, src, a.Fill())
		if a.DType() == dtype.Bool {
			for i := range src {
				src[i] &= 1
			}
		}
		m.write(reg, src)
		if r.IntN(2) == 0 {
			if err := a.Write(ctx, reg, src); err != nil {
				t.Fatalf("step %d: write %v: %v", step, reg, err)
			}
		} else { // from the middle of a larger buffer, dimensions reversed
			b, strides := scattered(r, reg.Shape, m.size)
			put(b, strides, reg.Shape, m.size, src)
			if err := a.WriteStrided(ctx, reg, b, strides); err != nil {
				t.Fatalf("step %d: write %v: %v", step, reg, err)
			}
		}
		b, err := zarr.OpenArray(ctx, st, a.Path(), zarr.Workers(1+r.IntN(3)))
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range []*zarr.Array{a, b} {
			reg := randomRegion(r, m.shape)
			if r.IntN(3) == 0 {
				reg = a.Bounds()
			}
			want := m.read(reg)
			got := bytes.Repeat([]byte{0xee}, len(want))
			if err := x.Read(ctx, reg, got); err != nil {
				t.Fatalf("step %d: read %v: %v", step, reg, err)
			}
			if !bytes.Equal(got, want) {
				t.Fatalf("step %d: read %v differs (%s)", step, reg, a.MetadataJSON())
			}
			sb, strides := scattered(r, reg.Shape, m.size)
			for i := range sb {
				sb[i] = 0xee
			}
			if err := x.ReadStrided(ctx, reg, sb, strides); err != nil {
				t.Fatalf("step %d: strided read %v: %v", step, reg, err)
			}
			expect := bytes.Repeat([]byte{0xee}, len(sb))
			put(expect, strides, reg.Shape, m.size, want)
			if !bytes.Equal(sb, expect) {
				t.Fatalf("step %d: strided read %v, strides %v differs (%s)", step, reg, strides, a.MetadataJSON())
			}
		}
		b.Close()
	}
}

// scattered is a buffer with gaps for a box, its dimensions in random order.
func scattered(r *rand.Rand, shape []int, size int) (b []byte, strides []int) {
	strides = make([]int, len(shape))
	n := size * (1 + r.IntN(2))
	order := r.Perm(len(shape))
	if r.IntN(2) == 0 {
		slices.Sort(order)
		slices.Reverse(order)
	}
	for _, d := range order {
		strides[d] = n
		n *= max(shape[d], 1) + r.IntN(2)
	}
	return make([]byte, n), strides
}

// put stores C-ordered elements in a strided box.
func put(b []byte, strides, shape []int, size int, src []byte) {
	m := &model{shape: shape, size: size}
	m.each(zarr.Region{Start: make([]int, len(shape)), Shape: shape}, func(off, i int) {
		to, rest := 0, i
		for d := len(shape) - 1; d >= 0; d-- {
			to += rest % shape[d] * strides[d]
			rest /= shape[d]
		}
		copy(b[to:to+size], src[off:off+size])
	})
}

// Pipelines that a Spec does not make: shards in shards, transposed shards,
// codecs after shards, indices of all forms.
func TestRandomPipelinesAgainstModel(t *testing.T) {
	const (
		plain  = `{"name":"bytes","configuration":{"endian":"little"}}`
		big    = `{"name":"bytes","configuration":{"endian":"big"}}`
		zstd   = `{"name":"zstd","configuration":{"level":1,"checksum":true}}`
		crc    = `{"name":"crc32c"}`
		turned = `{"name":"transpose","configuration":{"order":[2,0,1]}}`
	)
	shard := func(chunk, codecs, index, location string) string {
		return `{"name":"sharding_indexed","configuration":{"chunk_shape":` + chunk + `,"codecs":[` + codecs + `],"index_codecs":[` + index + `],"index_location":"` + location + `"}}`
	}
	for name, codecs := range map[string]string{
		"nested":        shard("[4,6,4]", shard("[2,3,4]", plain, plain, "end"), plain+","+crc, "start"),
		"nested zstd":   shard("[4,6,8]", shard("[2,3,2]", plain+","+zstd, plain+","+crc, "start"), big+","+crc, "end"),
		"outer turned":  turned + "," + shard("[4,2,3]", plain+","+zstd, plain+","+crc, "end"),
		"inner turned":  shard("[4,2,4]", turned+","+big, plain+","+crc, "end"),
		"codecs after":  shard("[4,2,4]", plain, plain, "end") + "," + zstd + "," + crc,
		"all":           turned + "," + shard("[4,4,6]", turned+","+shard("[3,2,2]", turned+","+big+","+zstd, plain, "start")+","+crc, big, "start") + "," + crc,
		"turned twice":  turned + "," + turned + "," + big + "," + crc,
		"turned plain":  turned + "," + big,
		"gzip and zstd": plain + "," + `{"name":"gzip","configuration":{"level":1}},` + zstd,
	} {
		t.Run(name, func(t *testing.T) {
			st := store.Folder(t.TempDir())
			doc := `{"zarr_format":3,"node_type":"array","shape":[17,13,19],"data_type":"uint16","chunk_grid":{"name":"regular","configuration":{"chunk_shape":[8,12,8]}},` +
				`"chunk_key_encoding":"default","fill_value":258,"codecs":[` + codecs + `]}`
			if err := st.Put(t.Context(), "zarr.json", []byte(doc)); err != nil {
				t.Fatal(err)
			}
			for seed := range uint64(6) {
				r := rand.New(rand.NewPCG(seed, 4))
				opts := []zarr.Option{zarr.Workers(1 + r.IntN(3))}
				if seed%2 == 0 {
					opts = append(opts, zarr.OmitFill())
				}
				a, err := zarr.OpenArray(t.Context(), st, "", opts...)
				if err != nil {
					t.Fatal(err)
				}
				m := newModel(a.Shape(), a.Fill())
				if err := a.Write(t.Context(), a.Bounds(), m.data); err != nil {
					t.Fatal(err)
				}
				checkAgainstModel(t, r, st, a)
			}
		})
	}
}

// Plain chunks of several pieces: rows that are read in place, rows that are read
// with what lies between them, chunks that are written piece by piece.
func TestLargePlainChunks(t *testing.T) {
	race.Leave(t)
	for name, spec := range map[string]zarr.Spec{
		"little":     {Shape: []int{40, 200, 300}, Chunks: []int{30, 200, 128}},
		"big endian": {Shape: []int{40, 200, 300}, Chunks: []int{30, 200, 128}, BigEndian: true},
		"order F":    {Shape: []int{40, 200, 300}, Chunks: []int{30, 200, 128}, Order: 'F'},
		"wide":       {Shape: []int{6, 100, 900}, Chunks: []int{4, 100, 300}},
		"wide, big":  {Shape: []int{6, 100, 900}, Chunks: []int{4, 100, 300}, BigEndian: true},
		"one row":    {Shape: []int{2_000_000}, Chunks: []int{1_500_000}},
		"long rows":  {Shape: []int{3, 700_000}, Chunks: []int{2, 600_000}},
		"big rows":   {Shape: []int{3, 700_000}, Chunks: []int{2, 600_000}, BigEndian: true},
		"shards":     {Shape: []int{40, 200, 300}, Chunks: []int{30, 200, 128}, Shard: []int{60, 400, 256}},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			r := rand.New(rand.NewPCG(5, 6))
			spec.DType = dtype.Uint16
			a, err := zarr.CreateArray(ctx, store.Folder(t.TempDir()), "", spec, zarr.Workers(2))
			if err != nil {
				t.Fatal(err)
			}
			whole := make([]uint16, len(dtype.Slice[uint16](newModel(spec.Shape, []byte{0, 0}).data)))
			for i := range whole {
				whole[i] = uint16(i * 40503)
			}
			m := &model{shape: spec.Shape, size: 2, data: dtype.Bytes(whole)}
			if err := a.Write(ctx, a.Bounds(), m.data); err != nil {
				t.Fatal(err)
			}
			for step := range 12 {
				reg := randomRegion(r, m.shape)
				if step == 0 {
					reg = a.Bounds()
				}
				if last := len(reg.Shape) - 1; step%3 == 1 {
					reg.Shape[last] = min(reg.Shape[last], 20)
				}
				if step%4 == 3 { // a part of the chunks is read, changed and written
					src := make([]byte, regionBytes(reg, 2))
					smooth(r, src, []byte{0, 0})
					m.write(reg, src)
					if err := a.Write(ctx, reg, src); err != nil {
						t.Fatal(err)
					}
					reg = a.Bounds()
				}
				want := m.read(reg)
				got := make([]byte, len(want))
				if err := a.Read(ctx, reg, got); err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(got, want) {
					t.Fatalf("step %d: %v differs", step, reg)
				}
			}
		})
	}
}

// In a steady stream of reads and writes nothing is allocated for a chunk but
// what opening a file costs.
func TestSteadyStateAllocatesNothing(t *testing.T) {
	ctx := t.Context()
	for name, c := range map[string]struct {
		spec zarr.Spec
		most float64 // allocations per read of one chunk
	}{
		"raw":         {zarr.Spec{Chunks: []int{32, 32, 32}}, 3},
		"zstd":        {zarr.Spec{Chunks: []int{32, 32, 32}, Codecs: codec.Chain{codec.Zstd(1, false)}}, 12},
		"shards":      {zarr.Spec{Chunks: []int{16, 16, 16}, Shard: []int{64, 64, 64}, Codecs: codec.Chain{codec.Zstd(1, false)}}, 4},
		"raw shards":  {zarr.Spec{Chunks: []int{16, 16, 16}, Shard: []int{64, 64, 64}}, 4},
		"shards, big": {zarr.Spec{Chunks: []int{16, 16, 16}, Shard: []int{64, 64, 64}, BigEndian: true, Order: 'F'}, 4},
	} {
		c.spec.Shape, c.spec.DType = []int{64, 64, 64}, dtype.Uint16
		a, err := zarr.CreateArray(ctx, store.Folder(t.TempDir()), "", c.spec, zarr.Workers(1))
		if err != nil {
			t.Fatal(err)
		}
		data := make([]byte, 64*64*64*2)
		for i := range data {
			data[i] = byte(rand.IntN(9))
		}
		if err := a.Write(ctx, a.Bounds(), data); err != nil {
			t.Fatal(err)
		}
		r := zarr.Region{Start: []int{32, 0, 32}, Shape: []int{16, 16, 16}}
		dst := make([]byte, 16*16*16*2)
		n := testing.AllocsPerRun(50, func() {
			if err := a.Read(ctx, r, dst); err != nil {
				t.Fatal(err)
			}
		})
		if n > c.most {
			t.Errorf("%s: %v allocations per read", name, n)
		}
		// in a read of everything they do not grow with the number of chunks
		files := testing.AllocsPerRun(10, func() {
			if err := a.Read(ctx, a.Bounds(), data); err != nil {
				t.Fatal(err)
			}
		})
		if most := 10 + 8*c.most; files > most {
			t.Errorf("%s: %v allocations per full read, at most %v expected", name, files, most)
		}
		a.Close()
	}
}

// Writers of different parts of the same chunks and shards do not lose each
// other's elements.
func TestConcurrentPartialWrites(t *testing.T) {
	ctx := t.Context()
	for name, spec := range map[string]zarr.Spec{
		"chunks": {Chunks: []int{8, 8}},
		"shards": {Chunks: []int{4, 4}, Shard: []int{16, 16}},
	} {
		t.Run(name, func(t *testing.T) {
			spec.Shape, spec.DType = []int{33, 31}, dtype.Uint16
			a, err := zarr.CreateArray(ctx, store.Memory(), "", spec, zarr.Workers(2))
			if err != nil {
				t.Fatal(err)
			}
			var wg sync.WaitGroup
			for row := range 33 {
				wg.Go(func() {
					src := make([]uint16, 31)
					for i := range src {
						src[i] = uint16(row*31 + i)
					}
					if err := zarr.WriteSlice(ctx, a, zarr.Region{Start: []int{row, 0}, Shape: []int{1, 31}}, src); err != nil {
						t.Error(err)
					}
					// reads of other rows go on meanwhile
					if err := zarr.ReadSlice(ctx, a, zarr.Region{Start: []int{32 - row, 0}, Shape: []int{1, 31}}, src); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			got := make([]uint16, 33*31)
			if err := zarr.ReadSlice(ctx, a, a.Bounds(), got); err != nil {
				t.Fatal(err)
			}
			for i, v := range got {
				if int(v) != i {
					t.Fatalf("element %d is %d", i, v)
				}
			}
		})
	}
}

// The same region of the same elements gives the same files, whatever the
// number of workers.
func TestFilesDoNotDependOnWorkers(t *testing.T) {
	ctx := context.Background()
	r := rand.New(rand.NewPCG(1, 1))
	src := make([]byte, 40*40*40*2)
	for i := range src {
		src[i] = byte(r.IntN(7))
	}
	var first []byte
	for _, workers := range []int{1, 2, 5} {
		st := store.Memory()
		codecs, err := codec.FromFlag("zstd:1", dtype.Uint16, 3)
		if err != nil {
			t.Fatal(err)
		}
		a, err := zarr.CreateArray(ctx, st, "", zarr.Spec{Shape: []int{40, 40, 40}, Chunks: []int{8, 8, 8}, Shard: []int{40, 40, 40},
			DType: dtype.Uint16, Codecs: codecs}, zarr.Workers(workers))
		if err != nil {
			t.Fatal(err)
		}
		if err := a.Write(ctx, a.Bounds(), src); err != nil {
			t.Fatal(err)
		}
		b, err := st.Get(ctx, a.ChunkKey([]int{0, 0, 0}), nil, -1)
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = b
		} else if !bytes.Equal(b, first) {
			t.Errorf("%d workers made another shard", workers)
		}
	}
}

func TestShardWriter(t *testing.T) {
	ctx := t.Context()
	st := store.Folder(t.TempDir())
	a, err := zarr.CreateArray(ctx, st, "", zarr.Spec{Shape: []int{10, 12}, Chunks: []int{4, 4}, Shard: []int{8, 8}, DType: dtype.Uint8, Fill: 9})
	if err != nil {
		t.Fatal(err)
	}
	w, err := a.NewShard(ctx, []int{1, 1})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	if r := w.Region(); fmt.Sprint(r) != "[8:10, 8:12]" {
		t.Errorf("region %v", r)
	}
	if err := w.WriteChunk(ctx, []int{2, 2}, []byte{1, 2, 3, 4, 5, 6, 7, 8}); err != nil {
		t.Fatal(err)
	}
	for _, bad := range [][]int{{2, 2}, {0, 0}, {2, 3}, {2}} {
		if err := w.WriteChunk(ctx, bad, []byte{1, 2, 3, 4, 5, 6, 7, 8}); err == nil {
			t.Errorf("chunk %v was taken", bad)
		}
	}
	if err := w.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 120)
	if err := a.Read(ctx, a.Bounds(), got); err != nil {
		t.Fatal(err)
	}
	want := bytes.Repeat([]byte{9}, 120)
	copy(want[8*12+8:], []byte{1, 2, 3, 4})
	copy(want[9*12+8:], []byte{5, 6, 7, 8})
	if !bytes.Equal(got, want) {
		t.Errorf("read %v", got)
	}
	w, err = a.NewShard(ctx, []int{1, 1})
	if err != nil {
		t.Fatal(err)
	}
	w.Abort()
	if err := w.Commit(ctx); err == nil {
		t.Error("a shard that was given up was stored")
	}
	if err := a.Read(ctx, a.Bounds(), got); err != nil || !bytes.Equal(got, want) {
		t.Errorf("a shard that was given up changed the stored one: %v", err)
	}
}

func TestAttributesAndConsolidated(t *testing.T) {
	ctx := t.Context()
	for _, format := range []int{2, 3} {
		st := store.Folder(t.TempDir())
		g, err := zarr.CreateGroup(ctx, st, "", format, map[string]any{"title": "tree"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := zarr.CreateGroup(ctx, st, "a", format, nil); err != nil {
			t.Fatal(err)
		}
		spec := zarr.Spec{Format: format, Shape: []int{3}, Chunks: []int{2}, DType: dtype.Float32, Attributes: map[string]any{"unit": "<mm>"}}
		a, err := zarr.CreateArray(ctx, st, "a/x", spec)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := zarr.CreateArray(ctx, st, "a/x", spec); err == nil {
			t.Error("an array was created twice")
		}
		if err := zarr.Consolidate(ctx, st, ""); err != nil {
			t.Fatal(err)
		}
		if err := a.SetAttributes(ctx, map[string]any{"unit": "µm"}); err != nil {
			t.Fatal(err)
		}
		if err := g.SetAttributes(ctx, map[string]any{"title": "wood", "n": []int{1, 2}}); err != nil {
			t.Fatal(err)
		}
		for _, again := range []bool{false, true} {
			if again {
				if err := zarr.Consolidate(ctx, st, ""); err != nil {
					t.Fatal(err)
				}
			}
			g, err := zarr.OpenGroup(ctx, st, "")
			if err != nil {
				t.Fatal(err)
			}
			// g itself had no consolidated metadata: what it writes drops it
			if want := format == 2 || again; g.Consolidated() != want {
				t.Errorf("format %d: consolidated %v", format, g.Consolidated())
			}
			if got := g.Attributes(); string(got["title"]) != `"wood"` || len(got) != 2 {
				t.Errorf("format %d: attributes %s", format, got)
			}
			sub, err := g.Group(ctx, "a")
			if err != nil {
				t.Fatal(err)
			}
			x, err := sub.Array(ctx, "x")
			if err != nil {
				t.Fatal(err)
			}
			want := `"µm"`
			if format == 2 && !again {
				want = `"<mm>"` // the consolidated form is stale, as documented
			}
			var v string
			if json.Unmarshal(x.Attributes()["unit"], &v) != nil || `"`+v+`"` != want {
				t.Errorf("format %d, consolidated again %v: unit %s, want %s", format, again, x.Attributes()["unit"], want)
			}
			if _, err := g.Array(ctx, "../a/x"); err == nil {
				t.Error("a path that leads upwards was opened")
			}
		}
	}
}
