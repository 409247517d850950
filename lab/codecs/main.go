// Command codecs measures the codecs that strata has of its own beside the libraries that it would use otherwise: each
// decodes the same bytes, or encodes the same data, in turn in one thread. It writes a sheet beside
// docs/dependencies.md, and the rows of it that the page shows:
//
//	go run ./lab/codecs -page docs/dependencies.md
package main

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"

	"golang.org/x/sys/unix"

	"strata/lab/internal/runs"
	"strata/tests/enzstdtest"
)

// sets are the data of the table: a chunk, one without structure, a chunk as Blosc shuffles it, and text.
var sets = []string{image, "noise 128³ float32", "image uint16, shuffled", "text"}

func main() {
	rounds := flag.Int("rounds", 20, "rounds of each measurement, in which both take a turn; the median counts")
	page := flag.String("page", "", "page whose table to replace, with the sheet beside it; \"\": print the sheet")
	flag.Parse()
	if err := run(*rounds, *page); err != nil {
		fmt.Fprintln(os.Stderr, "codecs:", err)
		os.Exit(1)
	}
}

func run(rounds int, page string) error {
	runtime.LockOSThread() // whose processor time is measured
	rows := [][]string{sheetHead}
	all := append(enzstdtest.Chunks(), enzstdtest.Small()...)
	for _, job := range jobs() {
		for _, name := range sets {
			i := slices.IndexFunc(all, func(s enzstdtest.Set) bool { return s.Name == name })
			if i < 0 {
				return fmt.Errorf("no set is named %q", name)
			}
			cells, err := job.measure(all[i].Bytes, rounds)
			if err != nil {
				return fmt.Errorf("%s, %s: %w", job.name, name, err)
			}
			rows = append(rows, append([]string{job.name, name, job.library}, cells...))
		}
	}
	said := fmt.Sprintf("Measured on %s: processor time of one thread, medians of %d rounds.", runs.Machine(), rounds)
	return write(page, rows, said)
}

// measure compares both ways to do a job with data, and returns the cells of the sheet from the fourth on.
func (j *job) measure(data []byte, rounds int) ([]string, error) {
	ours, theirs, sizes, err := j.prepare(data)
	if err != nil {
		return nil, err
	}
	times := max(1, 4<<20/len(data)) // small data several times in a row
	var seconds [2][]float64
	var ratios []float64
	for round := range rounds + 1 { // the first is not counted
		var took [2]float64
		for i, do := range []func() error{ours, theirs} {
			start := processorTime()
			for range times {
				if err := do(); err != nil {
					return nil, err
				}
			}
			took[i] = (processorTime() - start) / float64(times)
		}
		if round > 0 {
			seconds[0], seconds[1], ratios = append(seconds[0], took[0]), append(seconds[1], took[1]), append(ratios, took[1]/took[0])
		}
	}
	rate := func(t []float64) float64 { return float64(len(data)) / median(t) / 1e6 }
	size := ""
	if sizes != nil {
		a, b := sizes()
		size = fmt.Sprintf("%.3f", float64(a)/float64(b))
	}
	number := func(format string, v float64) string { return fmt.Sprintf(format, v) }
	return []string{number("%.0f", rate(seconds[0])), number("%.0f", rate(seconds[1])), number("%.2f", median(ratios)), number("%.2f", slices.Min(ratios)), number("%.2f", slices.Max(ratios)), size}, nil
}

func median[T cmp.Ordered](all []T) T { return slices.Sorted(slices.Values(all))[(len(all)-1)/2] }

// processorTime returns the seconds that this thread has taken.
func processorTime() float64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		panic(err)
	}
	return float64(t.Nano()) / 1e9
}
