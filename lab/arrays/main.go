// Command arrays generates the data of the benchmark and times pkg/zarr, pkg/tile and pkg/ngff on it.
// lab/compare runs it beside the peers (lab/peers.py, lab/zarrs) and the C floor (lab/floor.c);
// docs/benchmarks.md holds the results.
//
//	arrays gen DIR Z,Y,X                     DIR/structured.f32, DIR/noise.f32 and DIR/tiles.zarr
//	arrays mosaic KIND Z,Y,X -chunks … -out …   a mosaic grid of one kind of data
//	arrays grow MOSAIC Y,X OUT               a mosaic grid of more tiles: those of MOSAIC, by hard links
//	arrays memory MIB                        allocates memory and releases it
//	arrays OP PATH [flags]                   one line of JSON; for OP see the map in main.go
//
// PATH and -out may be http(s):// and s3:// addresses; credentials come from the AWS_* environment variables.
// Bytes count voxels as float32 or uint16, not as stored.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"time"

	results "strata/pkg/bench"
	"strata/pkg/host"
)

// result is the JSON line that every program of the benchmark prints.
type result struct {
	First   float64 `json:"first_s,omitempty"` // wall time of the process's first repetition, where others followed
	Seconds float64 `json:"s"`                 // wall time: median of the repetitions after the first, if any
	CPU     float64 `json:"cpu_s"`             // processor time of the same repetitions
	Bytes   int64   `json:"bytes"`             // of voxels, of one repetition
	HWM     int64   `json:"hwm_kb"`            // peak resident memory, KiB
	Check   uint64  `json:"ck"`                // sampled sum, the same for every program; 0: none
}

// bench is one measurement.
type bench struct {
	path, out, codec       string
	chunks, shard          []int
	threads, piece, radius int
	edge                   int
	bytes                  int64
	check                  uint64
	excluded               time.Duration // of the running repetition: preparing, checking
	excludedCPU            time.Duration // processor time of that, where it is not the same
}

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "arrays:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) < 2 {
		return fmt.Errorf("usage: arrays gen DIR Z,Y,X | arrays OP PATH [flags]")
	}
	b := &bench{path: args[1]}
	if args[0] == "gen" && len(args) == 3 {
		shape, err := parseInts(args[2])
		if err != nil {
			return err
		}
		return generate(ctx, b.path, shape)
	}
	if args[0] == "mosaic" && len(args) > 3 {
		return b.mosaic(ctx, args[2], args[3:])
	}
	if args[0] == "grow" && len(args) == 4 {
		return grow(b.path, args[2], args[3])
	}
	if args[0] == "memory" {
		return touch(args[1])
	}
	fs := b.flags()
	like := fs.String("like", "", "image whose levels io writes")
	passes := []pass{{part: 1}}
	fs.Func("passes", "what io reads: 1,0.5+8,out is all planes, half of them and 8 more, and as many as -like has", func(s string) (err error) { passes, err = parsePasses(s); return })
	frames := fs.Bool("frames", false, "PATH of io is a folder of files to read, instead of an image")
	levels := fs.Int("levels", 0, "pyramid levels that ome makes")
	again := fs.Int("again", 0, "repetitions after the first")
	shape := fs.String("shape", "", "shape of what write and ome make from the numbers in the file PATH")
	if err := fs.Parse(args[2:]); err != nil {
		return err
	}
	dims, err := parseInts(*shape)
	if *shape != "" && err != nil {
		return err
	}
	do, ok := map[string]func(context.Context) error{
		"full": b.full, "stream": b.stream, "random": b.random, "slab": b.slab, "open": b.open, "alone": b.alone, "views": b.views,
		"write": func(ctx context.Context) error { return b.write(ctx, dims) },
		"ome":   func(ctx context.Context) error { return b.ome(ctx, dims, *levels) },
		"io":    func(ctx context.Context) error { return b.io(ctx, *like, passes, *frames) },
		"check": b.full,
		"clear": b.clear,
	}[args[0]]
	if !ok {
		return fmt.Errorf("unknown operation %q", args[0])
	}
	return b.measure(ctx, do, *again)
}

// flags returns the flags of every operation, bound to the bench.
func (b *bench) flags() *flag.FlagSet {
	fs := flag.NewFlagSet("arrays", flag.ExitOnError)
	fs.IntVar(&b.threads, "threads", 2, "workers")
	fs.IntVar(&b.piece, "piece", 1<<20, "bytes of a streamed piece of a raw chunk")
	fs.IntVar(&b.edge, "edge", 64, "edge of a random box, voxels")
	fs.IntVar(&b.radius, "radius", 0, "halo of the views, pixels")
	fs.StringVar(&b.out, "out", "", "folder that write and ome make")
	fs.StringVar(&b.codec, "codec", "raw", "codec of what write and ome make")
	fs.Func("chunks", "chunk that write and ome make", func(s string) (err error) { b.chunks, err = parseInts(s); return })
	fs.Func("shard", "shard that write makes", func(s string) (err error) { b.shard, err = parseInts(s); return })
	return fs
}

// measure does an operation once and then again times, and prints its cost.
func (b *bench) measure(ctx context.Context, do func(context.Context) error, again int) error {
	var r result
	var seconds, cpu []float64
	for i := range 1 + again {
		b.excluded, b.excludedCPU = 0, 0
		c, t := results.CPUTime(), time.Now()
		if err := do(ctx); err != nil {
			return err
		}
		wall := (time.Since(t) - b.excluded).Seconds()
		if i == 0 && again > 0 {
			r.First = wall
			continue
		}
		seconds = append(seconds, wall)
		cpu = append(cpu, (results.CPUTime() - c - b.excluded - b.excludedCPU).Seconds())
	}
	r.Seconds, r.CPU = results.Median(seconds), max(0, results.Median(cpu))
	r.Bytes, r.HWM, r.Check = b.bytes, host.PeakResident()>>10, b.check
	return json.NewEncoder(os.Stdout).Encode(r)
}

// outside does work that a repetition needs but does not measure.
func (b *bench) outside(do func() error) error {
	c, t := results.CPUTime(), time.Now()
	err := do()
	d := time.Since(t)
	b.excluded += d
	b.excludedCPU += results.CPUTime() - c - d
	return err
}

// sample adds the bits of every step-th number of v to the check, outside the measurement. Numbers are float32; those
// of another size are taken for such.
func (b *bench) sample(v []float32, step int) {
	t := time.Now()
	defer func() { b.excluded += time.Since(t) }()
	for i := 0; i < len(v); i += step {
		b.check += uint64(math.Float32bits(v[i]))
	}
}
