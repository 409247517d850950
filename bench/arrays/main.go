// Command arrays times pkg/zarr on the arrays of the benchmark and prints one
// JSON object per operation. bench/run.sh runs it beside the peers and the C
// floor; docs/benchmarks.md holds the results.
//
//	arrays gen DIR SHAPE           make the arrays (12-bit noise as float32)
//	arrays OP DIR/NAME.zarr [flags] OP: full, stream, random, slab, open, write
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"strata/pkg/cli/host"
	"strata/pkg/dtype"
	"strata/pkg/mem"
	"strata/pkg/zarr"
	"strata/pkg/zarr/codec"
	"strata/pkg/zarr/store"
)

// variant is one way to store the array.
type variant struct {
	name          string
	chunks, shard []int
	codec         func() codec.Chain
}

func cube(n int) []int { return []int{n, n, n} }

func variants() []variant {
	flag := func(s string) func() codec.Chain {
		return func() codec.Chain {
			c, err := codec.FromFlag(s, dtype.Float32, 3)
			if err != nil {
				panic(err)
			}
			return c
		}
	}
	blosc := func(name string, level int, shuffle codec.BloscShuffle) func() codec.Chain {
		return func() codec.Chain {
			c, err := codec.Blosc(name, level, shuffle, 4, 0)
			if err != nil {
				panic(err)
			}
			return codec.Chain{c}
		}
	}
	return []variant{
		{"raw256", cube(256), nil, flag("raw")},
		{"blosclz4_256", cube(256), nil, blosc("lz4", 5, codec.ByteShuffle)},
		{"blosczstdbit_256", cube(256), nil, blosc("zstd", 3, codec.BitShuffle)},
		{"zstd256", cube(256), nil, flag("zstd:3")},
		{"zstd64", cube(64), nil, flag("zstd:3")},
		{"shard256_zstd64", cube(64), cube(256), flag("zstd:3")},
		{"gzip256", cube(256), nil, flag("gzip:5")},
		{"blosczstd1_256", cube(256), nil, flag("blosc-zstd:1")},
	}
}

type result struct {
	Who   string  `json:"who"`
	Array string  `json:"array"`
	Op    string  `json:"op"`
	S     float64 `json:"s"`      // median wall seconds
	Best  float64 `json:"best_s"` // fastest
	CPU   float64 `json:"cpu_s"`  // of the last repetition
	Bytes int64   `json:"bytes"`
	GiBs  float64 `json:"gibs"` // of the median
	HWM   int64   `json:"hwm_mib"`
	Check uint64  `json:"ck"` // a sampled checksum, the same for every program
}

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "arrays:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	if len(os.Args) < 3 {
		return fmt.Errorf("usage: arrays gen DIR Z,Y,X | arrays OP ARRAY [-threads N] [-reps N] [-piece BYTES] [-out DIR]")
	}
	op, path := os.Args[1], os.Args[2]
	fs := flag.NewFlagSet("arrays", flag.ExitOnError)
	threads := fs.Int("threads", 2, "workers")
	reps := fs.Int("reps", 5, "repetitions")
	piece := fs.Int("piece", 1<<20, "bytes of a streamed piece of a raw chunk")
	out := fs.String("out", "", "folder for the array that write makes")
	codecName := fs.String("codec", "raw", "codec of the array that write makes")
	if op == "gen" {
		return generate(ctx, path, os.Args[3])
	}
	if err := fs.Parse(os.Args[3:]); err != nil {
		return err
	}
	b := &bench{path: path, threads: *threads, piece: *piece, out: *out, codec: *codecName}
	do, ok := map[string]func(context.Context) error{
		"full": b.full, "stream": b.stream, "random": b.random, "slab": b.slab, "open": b.open, "write": b.write,
	}[op]
	if !ok {
		return fmt.Errorf("unknown operation %q", op)
	}
	var err error
	st := store.Folder(path)
	if b.array, err = zarr.OpenArray(ctx, st, "", zarr.Workers(*threads)); err != nil {
		return err
	}
	var seconds []float64
	var cpu float64
	for range *reps {
		c, t := cpuSeconds(), time.Now()
		if err := do(ctx); err != nil {
			return err
		}
		seconds = append(seconds, time.Since(t).Seconds()-b.excluded.Seconds())
		cpu = cpuSeconds() - c
		b.excluded = 0
	}
	slices.Sort(seconds)
	r := result{Who: "strata", Array: strings.TrimSuffix(filepath.Base(path), ".zarr"), Op: op,
		S: seconds[len(seconds)/2], Best: seconds[0], CPU: cpu, Bytes: b.bytes, HWM: host.PeakResident() >> 20, Check: b.check}
	r.GiBs = float64(b.bytes) / r.S / (1 << 30)
	return json.NewEncoder(os.Stdout).Encode(r)
}

func cpuSeconds() float64 {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return float64(u.Utime.Sec+u.Stime.Sec) + float64(u.Utime.Usec+u.Stime.Usec)/1e6
}

type bench struct {
	path, out, codec string
	array            *zarr.Array
	threads, piece   int
	bytes            int64
	check            uint64
	excluded         time.Duration
}

// full reads everything into fresh memory, as an analysis script does.
func (b *bench) full(ctx context.Context) error {
	n := 4
	for _, s := range b.array.Shape() {
		n *= s
	}
	buf, err := mem.Alloc(n)
	if err != nil {
		return err
	}
	err = b.array.Read(ctx, b.array.Bounds(), buf)
	b.bytes = int64(n)
	t := time.Now()
	b.check = 0
	for i, v := range dtype.Slice[float32](buf) {
		if i%65537 == 0 {
			b.check += uint64(v)
		}
	}
	mem.Free(buf)
	b.excluded += time.Since(t)
	return err
}

// stream reads everything chunk by chunk into reused buffers, raw chunks in
// pieces, as the stages do.
func (b *bench) stream(ctx context.Context) error {
	a := b.array.With(zarr.Workers(1))
	shape, unit := a.Shape(), a.Chunks()
	if len(a.Codecs()) == 0 && a.Shard() == nil {
		unit[0] = max(1, b.piece/(4*unit[1]*unit[2]))
		for unit[0] > 1 && a.Chunks()[0]%unit[0] != 0 {
			unit[0]--
		}
	}
	var regions []zarr.Region
	for z := 0; z < shape[0]; z += a.Chunks()[0] {
		for y := 0; y < shape[1]; y += unit[1] {
			for x := 0; x < shape[2]; x += unit[2] {
				for k := 0; k < a.Chunks()[0]; k += unit[0] {
					regions = append(regions, zarr.Region{Start: []int{z + k, y, x}, Shape: unit})
				}
			}
		}
	}
	per := a.Chunks()[0] / unit[0] // pieces of a chunk stay with one worker
	var next, total atomic.Int64
	var wg sync.WaitGroup
	errs := make([]error, b.threads)
	for w := range b.threads {
		wg.Go(func() {
			buf, err := mem.Alloc(4 * unit[0] * unit[1] * unit[2])
			if err != nil {
				errs[w] = err
				return
			}
			defer mem.Free(buf)
			for {
				c := int(next.Add(1)-1) * per
				if c >= len(regions) {
					return
				}
				for _, r := range regions[c : c+per] {
					if errs[w] = a.Read(ctx, r, buf); errs[w] != nil {
						return
					}
					total.Add(int64(len(buf)))
				}
			}
		})
	}
	wg.Wait()
	b.bytes = total.Load()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// random reads 40 boxes of 64³ at seeded, chunk-aligned places; bytes are those of one
// box and seconds those of all.
func (b *bench) random(ctx context.Context) error {
	rng := rand.New(rand.NewPCG(1, 2))
	shape := b.array.Shape()
	b.bytes, b.check = 0, 0
	for range 40 {
		start := make([]int, 3)
		for d := range start {
			start[d] = rng.IntN(shape[d]/64) * 64
		}
		buf := make([]float32, 64*64*64)
		if err := zarr.ReadSlice(ctx, b.array, zarr.Region{Start: start, Shape: cube(64)}, buf); err != nil {
			return err
		}
		b.bytes += int64(4 * len(buf))
	}
	return nil
}

// slab reads one plane across each axis.
func (b *bench) slab(ctx context.Context) error {
	shape := b.array.Shape()
	b.bytes = 0
	for d := range shape {
		r := zarr.Region{Start: make([]int, 3), Shape: slices.Clone(shape)}
		r.Start[d], r.Shape[d] = shape[d]/2+1, 1
		buf := make([]float32, r.Shape[0]*r.Shape[1]*r.Shape[2])
		if err := zarr.ReadSlice(ctx, b.array, r, buf); err != nil {
			return err
		}
		b.bytes += int64(4 * len(buf))
	}
	return nil
}

// open opens the array a thousand times; seconds are those of one.
func (b *bench) open(ctx context.Context) error {
	t := time.Now()
	st := store.Folder(b.path)
	for range 1000 {
		a, err := zarr.OpenArray(ctx, st, "")
		if err != nil {
			return err
		}
		a.Close()
	}
	b.excluded += time.Since(t) / 1000 * 999
	return nil
}

// write stores the array again, from memory, under another codec.
func (b *bench) write(ctx context.Context) error {
	t := time.Now()
	n := 4
	for _, s := range b.array.Shape() {
		n *= s
	}
	buf, err := mem.Alloc(n)
	if err != nil {
		return err
	}
	defer mem.Free(buf)
	if err := b.array.Read(ctx, b.array.Bounds(), buf); err != nil {
		return err
	}
	if err := os.RemoveAll(b.out); err != nil {
		return err
	}
	chain, err := codec.FromFlag(b.codec, dtype.Float32, 3)
	if err != nil {
		return err
	}
	b.excluded += time.Since(t)
	a, err := zarr.CreateArray(ctx, store.Folder(b.out), "", zarr.Spec{Shape: b.array.Shape(), Chunks: b.array.Chunks(),
		Shard: b.array.Shard(), DType: dtype.Float32, Codecs: chain}, zarr.Workers(b.threads))
	if err != nil {
		return err
	}
	b.bytes = int64(n)
	return a.Write(ctx, a.Bounds(), buf)
}

// generate writes all variants of the array into a folder, unless they are there.
func generate(ctx context.Context, dir, shapeText string) error {
	var shape []int
	for _, s := range strings.Split(shapeText, ",") {
		n, err := strconv.Atoi(s)
		if err != nil {
			return err
		}
		shape = append(shape, n)
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	for _, v := range variants() {
		path := filepath.Join(dir, v.name+".zarr")
		if _, err := os.Stat(filepath.Join(path, "done")); err == nil {
			continue
		}
		if err := os.RemoveAll(path); err != nil {
			return err
		}
		spec := zarr.Spec{Shape: shape, Chunks: v.chunks, Shard: v.shard, DType: dtype.Float32, Codecs: v.codec()}
		a, err := zarr.CreateArray(ctx, store.Folder(path), "", spec)
		if err != nil {
			return err
		}
		slab := make([]float32, 256*shape[1]*shape[2])
		for z := 0; z < shape[0]; z += 256 {
			rng := rand.New(rand.NewPCG(7, uint64(z)))
			for i := 0; i < len(slab); i += 5 {
				w := rng.Uint64()
				for k := i; k < min(i+5, len(slab)); k++ {
					slab[k] = float32(w & 4095)
					w >>= 12
				}
			}
			r := zarr.Region{Start: []int{z, 0, 0}, Shape: []int{256, shape[1], shape[2]}}
			if err := zarr.WriteSlice(ctx, a, r, slab); err != nil {
				return err
			}
		}
		if err := os.WriteFile(filepath.Join(path, "done"), nil, 0o666); err != nil {
			return err
		}
	}
	return nil
}
