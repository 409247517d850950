// Command scale writes docs/scale.md: what the chain from raw frames to a volume costs per GB of raw frames, from the run records
// that scripts/scale.sh leaves, and what follows for 1 TB.
package main

import (
	"bufio"
	"context"
	_ "embed"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"strata/lab/internal/runs"
)

//go:embed page.md
var form string

// The machine and the amount of data that the page extrapolates to.
const (
	cores    = 16
	terabyte = 1e12
)

// stage sums the runs of a program.
type stage struct {
	name          string
	runs          int
	cpu, wall     float64
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
	page := flag.String("page", "", "page to write; \"\": standard output")
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
	text := write(stages, in)
	return runs.Write(page, text)
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
			s.runs, s.cpu, s.wall = s.runs+1, s.cpu+seconds, s.wall+r.WallSeconds
			s.resident, s.read, s.written = max(s.resident, r.PeakResidentBytes), s.read+r.BytesRead, s.written+r.BytesWritten
		}
		if r.Started.Before(first[tool]) {
			first[tool] = r.Started
		}
	}
	slices.SortFunc(all, func(a, b stage) int { return first[a.name].Compare(first[b.name]) })
	return all, nil
}

// write returns the page.
func write(stages []stage, in input) string {
	gb := float64(in.raw) / 1e9
	var rows strings.Builder
	var total stage
	row := func(s stage) {
		fmt.Fprintf(&rows, "| %s | %d | %.1f s | %.3f s | %.1f s | %d MiB | %.2f GB | %.2f GB |\n", s.name, s.runs, s.cpu, s.cpu/gb, s.wall, s.resident>>20, float64(s.read)/1e9, float64(s.written)/1e9)
	}
	for _, s := range stages {
		row(s)
		total.runs, total.cpu, total.wall = total.runs+s.runs, total.cpu+s.cpu, total.wall+s.wall
		total.resident, total.read, total.written = max(total.resident, s.resident), total.read+s.read, total.written+s.written
	}
	total.name = "**all**"
	row(total)
	factor := terabyte / float64(in.raw)
	compute := total.cpu * factor / cores
	traffic := float64(total.read+total.written) * factor
	var storage strings.Builder
	for _, speed := range []float64{0.2, 0.5, 1, 2, 5} {
		s := traffic / (speed * 1e9)
		bound := "the cores"
		if s > compute {
			bound = "storage"
		}
		fmt.Fprintf(&storage, "| %g GB/s | %s | %s | %s |\n", speed, hours(s), hours(max(s, compute)), bound)
	}
	return runs.Fill(form, "{{INPUT}}", in.about, "{{GB}}", fmt.Sprintf("%.1f", gb), "{{SLICES}}", strconv.Itoa(in.slices), "{{ROWS}}", rows.String(),
		"{{PER_GB}}", fmt.Sprintf("%.2f", total.cpu/gb), "{{RESIDENT}}", fmt.Sprint(total.resident>>20), "{{ALL_SLICES}}", fmt.Sprintf("%.0f", float64(in.slices)*factor),
		"{{COMPUTE}}", hours(compute), "{{TRAFFIC}}", fmt.Sprintf("%.1f", traffic/1e12), "{{NEEDED}}", fmt.Sprintf("%.2f", traffic/compute/1e9), "{{STORAGE}}", storage.String())
}

// hours formats seconds as minutes or hours.
func hours(s float64) string {
	if s < 2*3600 {
		return fmt.Sprintf("%.0f min", s/60)
	}
	return fmt.Sprintf("%.1f h", s/3600)
}
