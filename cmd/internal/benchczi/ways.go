package benchczi

import (
	"context"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"
	"sync"

	"strata/cmd/internal/benchkit"
	"strata/pkg/cli"
	"strata/pkg/host"
	"strata/pkg/mem"
	"strata/pkg/units"
	"strata/pkg/work"
)

// Kinds of ways to read tiles.
const (
	sequential = "sequential"
	threaded   = "threads"
	batched    = "batches of"
	separate   = "processes"
)

// way is a way to read several tiles.
type way struct {
	kind string
	n    int // of threads, of tiles in a batch, of processes
}

func (w way) String() string {
	if w.kind == sequential {
		return w.kind
	}
	return fmt.Sprintf("%s %d", w.kind, w.n)
}

// numbered are the kinds of ways of which there are several, with the flag that has their numbers, and those of
// --quick.
var numbered = []struct {
	kind, flag string
	quick      []int
}{{threaded, "workers", []int{4, 8}}, {batched, "batch_sizes", nil}, {separate, "processes", nil}}

// waysOf returns the ways that flags select.
func waysOf(r *cli.Run) []way {
	ways := []way{{sequential, 1}}
	for _, k := range numbered {
		numbers := r.Ints(k.flag)
		if r.Bool("quick") && !r.IsSet(k.flag) {
			numbers = k.quick
		}
		for _, n := range numbers {
			if w := (way{k.kind, n}); !slices.Contains(ways, w) {
				ways = append(ways, w)
			}
		}
	}
	if list := r.Strings("ways"); len(list) > 0 {
		ways = slices.DeleteFunc(ways, func(w way) bool { return !slices.Contains(list, strings.Fields(w.kind)[0]) })
	}
	return ways
}

// knownWay checks a value of --ways.
func knownWay(v any) error {
	if kinds := []string{sequential, threaded, strings.Fields(batched)[0], separate}; !slices.Contains(kinds, v.(string)) {
		return fmt.Errorf("%q is not one of %s", v, strings.Join(kinds, ", "))
	}
	return nil
}

// taker receives the pixels of the k-th tile of a list. It is never called concurrently.
type taker func(k int, pixels []byte)

// loader reads tiles in one way.
type loader struct {
	scan    *scan
	way     way
	threads int   // that read a batch
	mem     int64 // most bytes of tiles in memory
}

// workers returns how many tiles are read at a time, and how many are in memory.
func (l *loader) workers(tiles int) (at, held int) {
	switch l.way.kind {
	case batched:
		held = min(l.way.n, tiles)
		return min(l.threads, held), held
	case separate:
		at = min(l.way.n, tiles)
		return at, 2 * at // the child has one, too
	}
	at = min(l.way.n, tiles)
	return at, at
}

// read opens the file and reads tiles. It returns the resources used by other processes.
func (l *loader) read(ctx context.Context, tiles []int, take taker) (benchkit.Sample, error) {
	at, held := l.workers(len(tiles))
	if need := int64(held) * int64(l.scan.largest); need > l.mem {
		return benchkit.Sample{}, benchkit.Unablef("%s in memory: %s, half of --mem is %s", counted(held), units.FormatSize(need), units.FormatSize(l.mem))
	}
	if l.way.kind == separate {
		return l.processes(ctx, at, tiles, take)
	}
	f, closing, err := l.scan.open(ctx)
	if err != nil {
		return benchkit.Sample{}, err
	}
	defer func() { _ = closing() }() // it was only read
	bufs, err := mem.Alloc(held * l.scan.largest)
	if err != nil {
		return benchkit.Sample{}, err
	}
	defer mem.Free(bufs)
	var mu sync.Mutex
	one := func(slot, k int) error {
		b := bufs[slot*l.scan.largest:][:f.SubBlock(tiles[k]).Bytes()]
		if err := f.ReadSubBlock(ctx, tiles[k], b); err != nil {
			return cli.BadInput(err)
		}
		if take != nil {
			mu.Lock()
			defer mu.Unlock()
			take(k, b)
		}
		return nil
	}
	if l.way.kind != batched {
		return benchkit.Sample{}, work.Each(ctx, at, len(tiles), one)
	}
	for from := 0; from < len(tiles) && err == nil; from += held {
		err = work.Each(ctx, at, min(held, len(tiles)-from), func(_, i int) error { return one(i, from+i) })
	}
	return benchkit.Sample{}, err
}

// check reads some tiles and returns the checksum of their pixels.
func (l *loader) check(ctx context.Context, tiles []int) (uint32, error) {
	var sum uint32
	_, err := l.read(ctx, tiles, func(k int, pixels []byte) { sum += checksum(k, pixels) })
	return sum, err
}

// checksum returns the contribution of the k-th tile to the checksum of a list of tiles.
func checksum(k int, pixels []byte) uint32 { return crc32.ChecksumIEEE(pixels) * (2*uint32(k) + 1) }

// round reads all tiles once and measures that.
func (l *loader) round(ctx context.Context) (benchkit.Sample, error) {
	processors := l.way.n
	if l.way.kind == batched {
		processors = l.threads
	}
	defer benchkit.Processors(processors)()
	return measured(func() (benchkit.Sample, error) { return l.read(ctx, l.scan.tiles, nil) })
}

// measured measures a function, which returns the resources used by other processes.
func measured(f func() (benchkit.Sample, error)) (benchkit.Sample, error) {
	w := benchkit.Start()
	before := host.Resident()
	other, err := f()
	s := w.Stop()
	s.Grown = max(s.Peak-before, 0) + other.Grown
	s.CPU, s.Peak = s.CPU+other.CPU, s.Peak+other.Peak
	return s, err
}
