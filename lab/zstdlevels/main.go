// Command zstdlevels compares the levels of strata's Zstandard encoder with those of libzstd, alternately, on the
// same data, in one thread, and writes docs/zstd-levels.md.
//
//	go run ./lab/zstdlevels                     # sizes and processor times: docs/zstd-levels.csv and the page
//	go run ./lab/zstdlevels -decode 3 -reps 25  # speeds of both decoders: docs/zstd-decoding.csv and the page
//	go run ./lab/zstdlevels -render             # the page from both files, without measuring
//	go run ./lab/zstdlevels -only text          # some data: to standard output
//	go run ./lab/zstdlevels -reps 1 -record pkg/zarr/codec/enzstd/testdata/libzstd.json
//
// The last command writes the sizes of libzstd that the tests compare with.
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"

	"strata/pkg/zarr/codec/enzstd"
	"strata/tests/enzstdtest"
)

const levels = 9

// options holds the flags of the command line.
type options struct {
	library, only, record string
	reps, decode          int
	large, render         bool
}

func main() {
	var o options
	flag.StringVar(&o.library, "lib", "libzstd.so.1", "libzstd")
	flag.IntVar(&o.reps, "reps", 7, "times that each encodes; the least time counts")
	flag.StringVar(&o.only, "only", "", "sets whose names begin with one of these, separated by commas")
	flag.BoolVar(&o.large, "large", true, "also 64 MiB")
	flag.StringVar(&o.record, "record", "", "file for the sizes of libzstd")
	flag.IntVar(&o.decode, "decode", 0, "compare the decoders with frames of this level instead; 0: don't")
	flag.BoolVar(&o.render, "render", false, "write the page from what was measured before")
	flag.Parse()
	if err := run(&o); err != nil {
		fmt.Fprintln(os.Stderr, "zstdlevels:", err)
		os.Exit(1)
	}
}

// recorded is the file that the tests read.
type recorded struct {
	Libzstd string           `json:"libzstd"`
	Sizes   map[string][]int `json:"sizes"` // of levels 1 to 9
}

func run(o *options) error {
	if o.render {
		return render("docs", "docs")
	}
	z, err := openLibzstd(o.library)
	if err != nil {
		return err
	}
	runtime.LockOSThread() // whose processor time is measured
	sets := enzstdtest.Small()
	if o.large && o.record == "" {
		sets = append(sets, enzstdtest.Large()...)
	}
	if o.decode > 0 {
		rows, err := compareDecoders(z, chosen(append(enzstdtest.Chunks(), sets...), o.only), o.decode, o.reps)
		if err != nil {
			return err
		}
		return o.keep(decodingSheet, rows)
	}
	kept := recorded{z.version(), map[string][]int{}}
	var rows [][]string
	for _, s := range chosen(sets, o.only) {
		r, err := measure(z, s.Bytes, o.reps)
		if err != nil {
			return fmt.Errorf("%s: %w", s.Name, err)
		}
		kept.Sizes[s.Name] = r.theirs
		rows = append(rows, r.rows(s)...)
	}
	if o.record == "" {
		return o.keep(levelsSheet, rows)
	}
	b, err := json.MarshalIndent(kept, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(o.record, append(b, '\n'), 0o644)
}

// keep writes what was measured and the page; or, of some sets only, to standard output.
func (o *options) keep(s *sheet, rows [][]string) error {
	if o.only != "" {
		return s.write(os.Stdout, rows)
	}
	var b bytes.Buffer
	if err := s.write(&b, rows); err != nil {
		return err
	}
	if err := os.WriteFile(s.path("docs"), b.Bytes(), 0o644); err != nil {
		return err
	}
	return render("docs", "docs")
}

// result holds the results of one set of data, by level.
type result struct {
	theirs, ours         []int     // bytes
	theirTimes, ourTimes []float64 // seconds
}

func measure(z *libzstd, src []byte, reps int) (r result, err error) {
	var (
		e       enzstd.Encoder
		a, b    = make([]byte, 0, len(src)+len(src)/128+4096), make([]byte, 0, len(src)+len(src)/128+4096)
		decoded = make([]byte, len(src))
	)
	for level := 1; level <= levels; level++ {
		t := [2]float64{1e9, 1e9}
		for range reps {
			for i, f := range []func(){
				func() { a = z.encode(a, src, level) },
				func() { b = e.Encode(b[:0], src, level, false) },
			} {
				start := processorTime()
				f()
				t[i] = min(t[i], processorTime()-start)
			}
		}
		if n := z.decode(decoded, b); n != uint64(len(src)) || !bytes.Equal(src, decoded) {
			return r, fmt.Errorf("libzstd decodes our level %d to something else", level)
		}
		r.theirs, r.ours = append(r.theirs, len(a)), append(r.ours, len(b))
		r.theirTimes, r.ourTimes = append(r.theirTimes, t[0]), append(r.ourTimes, t[1])
	}
	return r, nil
}

// rows returns the rows of a set, one for each level.
func (r *result) rows(s enzstdtest.Set) (rows [][]string) {
	n := float64(len(s.Bytes))
	for i := range levels {
		rows = append(rows, []string{s.Name, fmt.Sprint(i + 1), fmt.Sprintf("%.3f", float64(r.theirs[i])/n), fmt.Sprintf("%.3f", float64(r.ours[i])/float64(r.theirs[i])),
			fmt.Sprintf("%.2f", r.theirTimes[i]/r.ourTimes[i]), fmt.Sprintf("%.0f", n/r.ourTimes[i]/1e6)})
	}
	return rows
}

// processorTime returns the seconds that this thread has taken.
func processorTime() float64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		panic(err)
	}
	return float64(t.Nano()) / 1e9
}
