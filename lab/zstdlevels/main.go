// Command zstdlevels compares the levels of strata's Zstandard encoder with those of libzstd, alternately, on the
// same data, in one thread.
//
//	go run ./lab/zstdlevels                        # a table of sizes and processor times, for docs/zstd-levels.md
//	go run ./lab/zstdlevels -reps 1 -record pkg/zarr/codec/enzstd/testdata/libzstd.json
//
//	go run ./lab/zstdlevels -decode 3 -reps 30     # speeds of both decoders, for docs/zstd-levels.md
//
// The second command writes the sizes of libzstd that the tests compare with.
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"

	"strata/pkg/zarr/codec/enzstd"
	"strata/pkg/zarr/codec/enzstd/enzstdtest"
	"strata/pkg/zarr/codec/unzstd"
)

const levels = 9

func main() {
	library := flag.String("lib", "libzstd.so.1", "libzstd")
	reps := flag.Int("reps", 7, "times that each encodes; the least time counts")
	only := flag.String("only", "", "sets whose names begin with one of these, separated by commas")
	large := flag.Bool("large", true, "also 64 MiB")
	record := flag.String("record", "", "file for the sizes of libzstd")
	decode := flag.Int("decode", 0, "compare the decoders with frames of this level instead; 0: don't")
	flag.Parse()
	if err := run(os.Stdout, *library, *reps, *only, *large, *record, *decode); err != nil {
		fmt.Fprintln(os.Stderr, "zstdlevels:", err)
		os.Exit(1)
	}
}

// recorded is the file that the tests read.
type recorded struct {
	Libzstd string           `json:"libzstd"`
	Sizes   map[string][]int `json:"sizes"` // of levels 1 to 9
}

func run(w io.Writer, library string, reps int, only string, large bool, record string, decode int) error {
	z, err := openLibzstd(library)
	if err != nil {
		return err
	}
	runtime.LockOSThread() // whose processor time is measured
	sets := enzstdtest.Small()
	if large && record == "" {
		sets = append(sets, enzstdtest.Large()...)
	}
	if decode > 0 {
		return compareDecoders(w, z, chosen(append(enzstdtest.Chunks(), sets...), only), decode, reps)
	}
	sets = chosen(sets, only)
	kept := recorded{z.version(), map[string][]int{}}
	fmt.Fprintf(w, "libzstd %s\n\n| data | | %s |\n|---|---|%s\n", z.version(), strings.Join(numbers(), " | "), strings.Repeat("---:|", levels))
	for _, s := range sets {
		r, err := measure(z, s.Bytes, reps)
		if err != nil {
			return fmt.Errorf("%s: %w", s.Name, err)
		}
		kept.Sizes[s.Name] = r.theirs
		r.print(w, s)
	}
	if record == "" {
		return nil
	}
	b, err := json.MarshalIndent(kept, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(record, append(b, '\n'), 0o644)
}

func numbers() (n []string) {
	for l := range levels {
		n = append(n, fmt.Sprint(l+1))
	}
	return n
}

// result holds the results of one set of data, by level.
type result struct {
	theirs, ours           []int     // bytes
	theirTimes, ourTimes   []float64 // seconds
	theirDecode, ourDecode []float64 // of unzstd
}

func measure(z *libzstd, src []byte, reps int) (r result, err error) {
	var (
		e       enzstd.Encoder
		d       unzstd.Decoder
		a, b    = make([]byte, 0, len(src)+len(src)/128+4096), make([]byte, 0, len(src)+len(src)/128+4096)
		decoded = make([]byte, len(src))
	)
	for level := 1; level <= levels; level++ {
		t := [4]float64{1e9, 1e9, 1e9, 1e9}
		for range reps {
			for i, f := range []func(){
				func() { a = z.encode(a, src, level) },
				func() { b = e.Encode(b[:0], src, level, false) },
				func() { _, err = d.Decode(decoded, a) },
				func() { _, err = d.Decode(decoded, b) },
			} {
				start := processorTime()
				if f(); err != nil {
					return r, err
				}
				t[i] = min(t[i], processorTime()-start)
			}
		}
		clear(decoded)
		if n := z.decode(decoded, b); n != uint64(len(src)) || !bytes.Equal(src, decoded) {
			return r, fmt.Errorf("libzstd decodes our level %d to something else", level)
		}
		r.theirs, r.ours = append(r.theirs, len(a)), append(r.ours, len(b))
		r.theirTimes, r.ourTimes = append(r.theirTimes, t[0]), append(r.ourTimes, t[1])
		r.theirDecode, r.ourDecode = append(r.theirDecode, t[2]), append(r.ourDecode, t[3])
	}
	return r, nil
}

func (r *result) print(w io.Writer, s enzstdtest.Set) {
	row := func(name, what string, f func(i int) string) {
		cells := make([]string, levels)
		for i := range cells {
			cells[i] = f(i)
		}
		fmt.Fprintf(w, "| %s | %s | %s |\n", name, what, strings.Join(cells, " | "))
	}
	n := float64(len(s.Bytes))
	row(s.Name, "libzstd, stored / raw", func(i int) string { return fmt.Sprintf("%.3f", float64(r.theirs[i])/n) })
	row("", "strata / libzstd", func(i int) string { return fmt.Sprintf("%.3f", float64(r.ours[i])/float64(r.theirs[i])) })
	row("", "speed, strata / libzstd", func(i int) string { return fmt.Sprintf("%.2f", r.theirTimes[i]/r.ourTimes[i]) })
	row("", "MB/s", func(i int) string { return fmt.Sprintf("%.0f", n/r.ourTimes[i]/1e6) })
	row("", "decoding, strata's / libzstd's", func(i int) string { return fmt.Sprintf("%.2f", r.theirDecode[i]/r.ourDecode[i]) })
}

// processorTime returns the seconds that this thread has taken.
func processorTime() float64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		panic(err)
	}
	return float64(t.Nano()) / 1e9
}
