// Command memory measures how much memory the programs of the workflow need for a large image. It makes the input, and
// writes docs/memory.md from the run records that scripts/memory.sh leaves.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"strata/lab/internal/runs"
	"strata/pkg/runrecord"
	"strata/tests/regions"
)

// form is the page with the regions of the figures.
const form = "docs/memory.md"

func main() {
	dir := flag.String("make", "", "make the input in this folder")
	gb := flag.Float64("gb", 20, "its size in GB")
	reports := flag.String("reports", "", "folder of the run records")
	cores := flag.String("cores", "", "folder of the programs: have them say how much memory keeps so many cores busy")
	page := flag.String("page", "", "page to write, from docs/memory.md; \"\": standard output")
	flag.Parse()
	var err error
	if *cores != "" {
		err = writeCores(context.Background(), *cores, *page)
	} else {
		err = run(context.Background(), *dir, *gb, *reports, *page)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "memory:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, dir string, gb float64, reports, page string) error {
	if dir != "" {
		return makeInput(ctx, dir, gb)
	}
	texts, err := measured(ctx, reports)
	if err != nil {
		return err
	}
	return regions.Write(form, page, texts)
}

// measured returns the regions of the page.
func measured(ctx context.Context, reports string) (map[string]string, error) {
	all, err := runs.Read(ctx, reports)
	if err != nil {
		return nil, err
	}
	for _, r := range all {
		if r.ExitCode != 0 {
			return nil, fmt.Errorf("%s: %s ended with %d", r.Path, r.Tool, r.ExitCode)
		}
	}
	slices.SortFunc(all, func(a, b runs.Run) int { return a.Started.Compare(b.Started) })
	rows := strings.Builder{}
	rows.WriteString("| | input | resident | command |\n|---|---:|---:|---|\n")
	largest := 0.0
	for _, r := range all {
		bytes := size(r.Record)
		largest = max(largest, bytes)
		fmt.Fprintf(&rows, "| %s | %.1f GB | %d MiB | `%s` |\n", r.Program(), bytes/1e9, r.PeakResidentBytes>>20, command(r.Record))
	}
	return map[string]string{"input": fmt.Sprintf("%.0f GB", largest/1e9), "programs": rows.String(), "machine": runs.Machine(), "slice": times(sliceChunk), "volume": times(volumeChunk)}, nil
}

// size returns the bytes of a run's largest input, as decoded.
func size(r *runrecord.Record) (most float64) {
	for _, in := range r.Inputs {
		n := float64(in.Bytes)
		if len(in.Shape) > 0 {
			n = 4
			for _, k := range in.Shape {
				n *= float64(k)
			}
		}
		most = max(most, n)
	}
	return most
}

func times(shape [3]int) string {
	var words []string
	for _, n := range shape {
		words = append(words, strconv.Itoa(n))
	}
	return strings.Join(words, "×")
}

// command returns the command line without what has to do with the measurement only.
func command(r *runrecord.Record) string {
	words := []string{r.Tool}
	for i := 0; i < len(r.Arguments); i++ {
		switch a := r.Arguments[i].String(); a {
		case "--report", "--mem":
			i++
		case "--quiet", "--overwrite":
		default:
			words = append(words, a)
		}
	}
	return strings.Join(words, " ")
}
