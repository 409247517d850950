// Command checksum measures what --checksum costs: with and without it, it writes a mosaic grid, reads it whole and in
// part, and runs stages on it, each pair in turn. It writes the table of docs/reliability.md:
//
//	go run ./lab/checksum -page docs/reliability.md
//
// It needs the programs in bin (make build) and 1 GB in the folder for temporary files.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"strata/lab/internal/runs"
	"strata/pkg/zarr"
	"strata/pkg/zarr/codec"
	"strata/pkg/zarr/store"
	"strata/tests/regions"
)

// codecs are those of the rows, with the Zarr format where it is not 3: in format 2 the checksum is that of Zstandard
// frames.
const codecs = "raw,lz4,blosc-lz4,zstd:1,zstd:1 in format 2,blosc-zstd:1,gzip:1"

func main() {
	bin := flag.String("bin", "bin", "folder of the programs")
	pairs := flag.Int("pairs", 20, "pairs of a measurement")
	tiles := flag.String("tiles", "4,4", "tiles of the mosaic grid, of 6 MB each")
	rows := flag.String("codecs", codecs, "rows of the table")
	page := flag.String("page", "", "page whose table to replace; \"\": print it")
	flag.Parse()
	if err := run(context.Background(), *bin, *pairs, *tiles, strings.Split(*rows, ","), *page); err != nil {
		fmt.Fprintln(os.Stderr, "checksum:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, bin string, pairs int, tiles string, codecs []string, page string) error {
	dir, err := os.MkdirTemp("", "checksum")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	m := measurement{bin: bin, dir: dir, pairs: pairs}
	if err := m.program(ctx, "phantom", m.path("ph"), "--tiles", tiles, "--n_levels", "0"); err != nil {
		return err
	}
	var b strings.Builder
	b.WriteString("| codec | write | read whole | a plane across z | a plane across y | `aip` | `stitch` | `crop` |\n|---|---:|---:|---:|---:|---:|---:|---:|\n")
	for _, name := range codecs {
		row, err := m.row(ctx, name)
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "| %s | %s |\n", name, strings.Join(row, " | "))
		fmt.Fprintf(os.Stderr, "%s: %s\n", name, strings.Join(row, " | "))
	}
	table := fmt.Sprintf("\n%s\nMeasured on %s, %d pairs, files in the page cache.\n", b.String(), runs.Machine(), pairs)
	if page == "" {
		_, err := os.Stdout.WriteString(table)
		return err
	}
	return regions.Write(page, page, map[string]string{"cost": table})
}

// measurement compares ways to store one mosaic grid.
type measurement struct {
	bin, dir string
	pairs    int
}

func (m *measurement) path(names ...string) string {
	return filepath.Join(append([]string{m.dir}, names...)...)
}

// program runs a program with files that a previous run may have left.
func (m *measurement) program(ctx context.Context, name string, args ...string) error {
	out, err := exec.CommandContext(ctx, filepath.Join(m.bin, name), append(args, "-q", "-f")...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, out)
	}
	return nil
}

// row returns what the checksum adds to each operation with a codec.
func (m *measurement) row(ctx context.Context, name string) (row []string, err error) {
	flag, format, given := strings.Cut(name, " in format ")
	if !given {
		format = "3"
	}
	flags := map[bool][]string{false: {"--codec", flag, "--zarr_format", format}, true: {"--codec", flag, "--zarr_format", format, "--checksum"}}
	arrays := map[bool]*zarr.Array{}
	var whole []byte
	for sum, f := range flags {
		in := m.path(fmt.Sprint("in", sum))
		if err := m.program(ctx, "zarr-tool", append([]string{"reencode", m.path("ph", "mosaic_grid_3d_z00.ome.zarr"), in}, f...)...); err != nil {
			return nil, err
		}
		a, err := zarr.OpenArray(ctx, store.Folder(in), "0", zarr.Workers(1))
		if err != nil {
			return nil, err
		}
		arrays[sum] = a
		if whole == nil {
			whole = make([]byte, a.DType().Size()*volume(a.Shape()))
			if err := a.Read(ctx, a.Bounds(), whole); err != nil {
				return nil, err
			}
		}
	}
	copies, err := m.copies(ctx, arrays, flag)
	if err != nil {
		return nil, err
	}
	part := make([]byte, len(whole))
	read := func(shape func(a *zarr.Array) zarr.Region) func(bool) error {
		return func(sum bool) error {
			r := shape(arrays[sum])
			return arrays[sum].Read(ctx, r, part[:arrays[sum].DType().Size()*volume(r.Shape)])
		}
	}
	plane := func(d int) func(a *zarr.Array) zarr.Region {
		return func(a *zarr.Array) zarr.Region {
			r := a.Bounds()
			r.Start[d], r.Shape[d] = r.Shape[d]/2, 1
			return r
		}
	}
	stage := func(name string, more ...string) func(bool) error {
		return func(sum bool) error {
			args := append([]string{m.path(fmt.Sprint("in", sum)), m.path("out")}, flags[sum]...)
			return m.program(ctx, name, append(args, more...)...)
		}
	}
	for _, op := range []func(bool) error{
		func(sum bool) error { return copies[sum].Write(ctx, copies[sum].Bounds(), whole) },
		read((*zarr.Array).Bounds), read(plane(0)), read(plane(1)),
		stage("aip"), stage("stitch"), stage("crop"),
	} {
		text, err := m.compare(op)
		if err != nil {
			return nil, err
		}
		row = append(row, text)
	}
	return row, nil
}

// copies creates arrays to write to. Their codecs are not those of the metadata, which in format 2 say nothing of
// checksums.
func (m *measurement) copies(ctx context.Context, arrays map[bool]*zarr.Array, name string) (map[bool]*zarr.Array, error) {
	all := map[bool]*zarr.Array{}
	for sum, a := range arrays {
		flag := name
		if sum {
			flag += codec.ChecksumSuffix
		}
		chain, err := codec.FromFlag(flag, a.DType(), a.Format())
		if err != nil {
			return nil, err
		}
		path := m.path(fmt.Sprint("copy", sum))
		if err := os.RemoveAll(path); err != nil {
			return nil, err
		}
		spec := zarr.Spec{Format: a.Format(), Shape: a.Shape(), Chunks: a.Chunks(), DType: a.DType(), Codecs: chain}
		if all[sum], err = zarr.CreateArray(ctx, store.Folder(path), "", spec, zarr.Workers(1)); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// compare runs an operation with and without checksum in turn and returns how much more processor time it takes with
// it: the median of the pairs, and between which values half of them lie.
func (m *measurement) compare(op func(sum bool) error) (string, error) {
	var ratios []float64
	for i := range m.pairs + 1 {
		var took [2]float64
		for k := range 2 {
			sum := (i+k)%2 == 1
			repeats := 0
			start := cpu()
			for repeats == 0 || cpu()-start < 0.02 { // clocks of processes are coarse
				if err := op(sum); err != nil {
					return "", err
				}
				repeats++
			}
			took[map[bool]int{false: 0, true: 1}[sum]] = (cpu() - start) / float64(repeats)
		}
		if i > 0 { // the first fills caches
			ratios = append(ratios, took[1]/took[0])
		}
	}
	slices.Sort(ratios)
	at := func(q float64) float64 { return ratios[int(q*float64(len(ratios)-1)+0.5)] }
	if at(0.5) >= 2 {
		return fmt.Sprintf("× %.3g (%.3g to %.3g)", at(0.5), at(0.25), at(0.75)), nil
	}
	percent := func(q float64) float64 { return 100 * (at(q) - 1) }
	return fmt.Sprintf("%+.1f %% (%+.1f to %+.1f)", percent(0.5), percent(0.25), percent(0.75)), nil
}

// cpu returns the processor time, in seconds, of this process and of the programs that it ran.
func cpu() float64 {
	total := 0.0
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var u syscall.Rusage
		if syscall.Getrusage(who, &u) == nil {
			for _, t := range []syscall.Timeval{u.Utime, u.Stime} {
				total += time.Duration(t.Nano()).Seconds()
			}
		}
	}
	return total
}

func volume(shape []int) int {
	n := 1
	for _, k := range shape {
		n *= k
	}
	return n
}
