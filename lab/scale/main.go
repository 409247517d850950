// Command scale writes docs/scale.md: what the chain from raw frames to a volume costs per GB of raw frames, from the
// run records that scripts/scale.sh leaves, and what follows for 1 TB.
package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"strata/lab/internal/runs"
	"strata/tests/regions"
)

// form is the page with the regions of the figures.
const form = "docs/scale.md"

// The machine and the amount of data that the page extrapolates to.
const (
	cores    = 16
	terabyte = 1e12
)

// stage sums the runs of a program.
type stage struct {
	name          string
	runs          int
	cpu           float64
	resident      int64 // largest
	read, written int64 // bytes as stored
}

// input describes the raw frames for the page.
type input struct {
	about  string
	slices int
	raw    int64 // bytes
}

func main() {
	reports := flag.String("reports", "", "folder of the run records")
	cpu := flag.String("cpu", "", "table of their processor seconds: name of the record, tab, seconds")
	page := flag.String("page", "", "page to write, from docs/scale.md; \"\": standard output")
	var in input
	flag.StringVar(&in.about, "input", "", "what ran, in words")
	flag.IntVar(&in.slices, "slices", 0, "number of slices")
	flag.Int64Var(&in.raw, "raw", 0, "bytes of their raw frames")
	flag.Parse()
	if err := run(context.Background(), *reports, *cpu, *page, in); err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, reports, cpu, page string, in input) error {
	if in.raw <= 0 || in.slices <= 0 {
		return fmt.Errorf("-raw and -slices must be above 0")
	}
	f, err := os.Open(cpu)
	if err != nil {
		return err
	}
	defer f.Close()
	seconds := map[string]float64{}
	for lines := bufio.NewScanner(f); lines.Scan(); { // a step that ran again has a later line
		name, value, _ := strings.Cut(lines.Text(), "\t")
		if seconds[name], err = strconv.ParseFloat(value, 64); err != nil {
			return fmt.Errorf("%s: %w", cpu, err)
		}
	}
	stages, err := sum(ctx, reports, seconds)
	if err != nil {
		return err
	}
	return regions.Write(form, page, measured(stages, in))
}

// sum adds up the records of a folder by program, in the order in which programs first ran.
func sum(ctx context.Context, reports string, cpu map[string]float64) ([]stage, error) {
	records, err := runs.Read(ctx, reports)
	if err != nil {
		return nil, err
	}
	var all []stage
	first := map[string]time.Time{}
	for _, r := range records {
		base := filepath.Base(r.Path)
		seconds, ok := cpu[base]
		if !ok {
			return nil, fmt.Errorf("%s: its processor time is not known", r.Path)
		}
		tool := r.Program()
		if strings.HasPrefix(base, "estimate.") {
			tool += " --estimate_only"
		}
		i := slices.IndexFunc(all, func(s stage) bool { return s.name == tool })
		if i < 0 {
			i, all = len(all), append(all, stage{name: tool})
			first[tool] = r.Started
		}
		if s := &all[i]; true {
			s.runs, s.cpu = s.runs+1, s.cpu+seconds
			s.resident, s.read, s.written = max(s.resident, r.PeakResidentBytes), s.read+r.BytesRead, s.written+r.BytesWritten
		}
		if r.Started.Before(first[tool]) {
			first[tool] = r.Started
		}
	}
	slices.SortFunc(all, func(a, b stage) int { return first[a.name].Compare(first[b.name]) })
	return all, nil
}

// measured returns the regions of the page.
func measured(stages []stage, in input) map[string]string {
	gb := float64(in.raw) / 1e9
	var rows strings.Builder
	rows.WriteString("| | runs | processor, s | s per GB | resident, MiB | read, GB | written, GB |\n|---|---:|---:|---:|---:|---:|---:|\n")
	var total stage
	row := func(s stage) {
		fmt.Fprintf(&rows, "| %s | %d | %.1f | %.3f | %d | %.2f | %.2f |\n", s.name, s.runs, s.cpu, s.cpu/gb, s.resident>>20, float64(s.read)/1e9, float64(s.written)/1e9)
	}
	for _, s := range stages {
		row(s)
		total.runs, total.cpu = total.runs+s.runs, total.cpu+s.cpu
		total.resident, total.read, total.written = max(total.resident, s.resident), total.read+s.read, total.written+s.written
	}
	total.name = "**all**"
	row(total)
	factor := terabyte / float64(in.raw)
	compute := total.cpu * factor / cores
	traffic := float64(total.read+total.written) * factor
	return map[string]string{
		"input":    fmt.Sprintf("%.1f GB of raw frames of a virtual specimen (`phantom`), %s", gb, in.about),
		"machine":  fmt.Sprintf("%d slices on %s", in.slices, runs.Machine()),
		"programs": rows.String(),
		"resident": fmt.Sprintf("%d MiB", total.resident>>20),
		"model": fmt.Sprintf("- %.2f s per GB on %d cores of the same speed: **%s**;\n- %.1f TB read and written in all: storage that moves %.2f GB/s keeps up with the cores.\n",
			total.cpu/gb, cores, hours(compute), traffic/1e12, traffic/compute/1e9),
		"slices": fmt.Sprintf("%.0f slices", float64(in.slices)*factor),
	}
}

// hours formats seconds as minutes or hours.
func hours(s float64) string {
	if s < 2*3600 {
		return fmt.Sprintf("%.0f min", s/60)
	}
	return fmt.Sprintf("%.1f h", s/3600)
}
