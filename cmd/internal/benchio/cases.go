package benchio

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"strata/cmd/internal/iobench"
	"strata/pkg/bench"
	"strata/pkg/cli"
	"strata/pkg/units"
)

// op is an operation on a file. Its short name is that of fio.
type op struct {
	short, name   string
	write, random bool
}

// ops lists the operations in the order of measurement: new writes first, which fill the file.
var ops = []op{{"write", "write", true, false}, {"randwrite", "random write", true, true}, {"read", "read", false, false}, {"randread", "random read", false, true}}

// ways lists the ways in the order of measurement.
var ways = func() []iobench.Way {
	list := slices.Clone(iobench.Ways)
	i := slices.IndexFunc(list, func(w iobench.Way) bool { return w.Device })
	return slices.Insert(list, i, iobench.Pool)
}()

// kase is one measurement: an op, its way and its parameters.
type kase struct {
	op
	way     iobench.Way
	warm    bool
	block   int64
	threads int
}

// past reports whether a way bypasses the page cache.
func past(way string) bool { return way == "direct" || way == "gds" }

func (c kase) axes() bench.Axes {
	a := bench.Axes{{Name: "way", Value: c.way.Name}}
	if !c.write {
		cache := "cold"
		if c.warm {
			cache = "warm"
		}
		a = append(a, bench.Axis{Name: "cache", Value: cache})
	}
	return append(a, bench.Axis{Name: "block", Value: units.FormatSize(c.block)}, bench.Axis{Name: "threads", Value: strconv.Itoa(c.threads)})
}

// String names the case while it is measured.
func (c kase) String() string { return c.name + " (" + c.axes().String() + ")" }

// choice selects what is measured.
type choice struct {
	ops           []op
	ways          []iobench.Way
	waysAsked     bool
	caches        []bool // whether it is warm
	blocks, small []int64
	threads       []int
}

// mostBytes is the maximum memory of all threads together.
const mostBytes = 512 << 20

// choose parses the flags.
func choose(r *cli.Run, writes bool) (*choice, error) {
	c := &choice{}
	names, known := r.Strings("ops"), []string{}
	for _, o := range ops {
		known = append(known, o.short)
		if slices.Contains(names, o.short) || len(names) == 0 && (writes || !o.write) && o.short != "randwrite" {
			c.ops = append(c.ops, o)
		}
	}
	if err := unknown("ops", names, known); err != nil {
		return nil, err
	}
	names, known = r.Strings("ways"), nil
	c.waysAsked = len(names) > 0
	for _, w := range ways {
		known = append(known, w.Name)
		if slices.Contains(names, w.Name) || len(names) == 0 {
			c.ways = append(c.ways, w)
		}
	}
	if err := unknown("ways", names, known); err != nil {
		return nil, err
	}
	names = r.Strings("cache")
	for _, n := range []string{"cold", "warm"} {
		if slices.Contains(names, n) {
			c.caches = append(c.caches, n == "warm")
		}
	}
	if err := unknown("cache", names, []string{"cold", "warm"}); err != nil {
		return nil, err
	}
	for _, text := range r.Strings("block_size") {
		n, err := units.ParseSize(text)
		if err != nil {
			return nil, cli.Usage("flag --block_size: %w", err)
		}
		if n < iobench.Page || n%iobench.Page != 0 {
			return nil, cli.Usage("flag --block_size: %s is not a multiple of %d bytes, which reads past the page cache need", text, iobench.Page)
		}
		c.blocks = appendNew(c.blocks, n)
	}
	c.small = c.blocks
	if len(c.blocks) == 0 {
		c.blocks, c.small = []int64{1 << 20}, []int64{4 << 10}
	}
	for _, n := range r.Ints("threads") {
		c.threads = appendNew(c.threads, n)
	}
	if len(c.threads) == 0 {
		c.threads = appendNew([]int{1}, runtime.GOMAXPROCS(0))
	}
	if block, n := slices.Max(c.blocks), slices.Max(c.threads); block > mostBytes/int64(n) {
		return nil, cli.Usage("flag --block_size: %s for each of %d threads are more than %s", units.FormatSize(block), n, units.FormatSize(mostBytes))
	}
	return c, nil
}

func appendNew[T comparable](list []T, v T) []T {
	if slices.Contains(list, v) {
		return list
	}
	return append(list, v)
}

// unknown returns an error for names that do not exist.
func unknown(flag string, names, known []string) error {
	for _, n := range names {
		if !slices.Contains(known, n) {
			return cli.Usage("flag --%s: %q is not one of %s", flag, n, strings.Join(known, ", "))
		}
	}
	return nil
}

// check returns an error for choices that a place does not allow.
func (c *choice) check(path string, d *iobench.Data) error {
	for _, o := range c.ops {
		if o.write && !d.Made {
			if d.Why != "" {
				return fmt.Errorf("%s: nothing can be written: %s", path, d.Why)
			}
			return cli.Usage("flag --ops: %s needs a folder to make a file in: files that are there, such as %s, are only read", o.short, path)
		}
	}
	return nil
}

// list returns the cases in the order of measurement.
func (c *choice) list(gpu bool) ([]kase, error) {
	var out []kase
	for _, o := range c.ops {
		blocks := c.blocks
		if o.random {
			blocks = c.small
		}
		for _, w := range c.ways {
			if o.write && !w.Write || w.Name == iobench.Pool.Name && o.random || w.Device && !gpu && !c.waysAsked {
				continue
			}
			caches := c.caches
			if o.write {
				caches = []bool{false}
			}
			for _, warm := range caches {
				if warm && past(w.Name) {
					continue // there is no cache to be warm
				}
				for _, block := range blocks {
					for _, threads := range c.threads {
						out = append(out, kase{o, w, warm, block, threads})
					}
				}
			}
		}
	}
	if len(out) == 0 {
		return nil, errors.New("--ops, --ways and --cache leave nothing to measure: only reads through the page cache can be warm, mmap only reads, pool only in order")
	}
	return out, nil
}
