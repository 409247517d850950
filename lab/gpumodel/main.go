// Command gpumodel predicts the benefit of a GPU without having one. It runs all stages on small phantoms, on the
// tests' software double of a GPU with its virtual clock and on the host, and writes the predicted times of both
// for larger inputs on several machines to docs/gpu-model.md and docs/gpu-model.csv.
//
//	make gpu-model                        # measures, and writes both
//	go run ./lab/gpumodel -measure=false  # writes both from what was measured last
//
// It fails if package cost would choose a machine that takes a tenth longer than the better one.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"strata/tests/cudaemu"
	"strata/tests/regions"
)

// form is the page with the regions of the figures, and table the file beside it that has all.
const (
	form  = "docs/gpu-model.md"
	table = "docs/gpu-model.csv"
)

func main() {
	bin := flag.String("bin", "bin", "folder of the programs")
	dir := flag.String("dir", "build/gpumodel", "folder for inputs and outputs")
	results := flag.String("results", "lab/results/gpumodel.json", "what was measured")
	again := flag.Bool("measure", true, "measure; else the page is made of what was")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *bin, *dir, *results, *again); err != nil {
		fmt.Fprintln(os.Stderr, "gpumodel:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, bin, dir, results string, again bool) error {
	if again {
		if err := measure(ctx, bin, dir, results); err != nil {
			return err
		}
	}
	b, err := os.ReadFile(results)
	if err != nil {
		return err
	}
	var all []measured
	if err := json.Unmarshal(b, &all); err != nil {
		return fmt.Errorf("%s: %w", results, err)
	}
	rows, err := predict(all)
	if err != nil {
		return err
	}
	texts, cells, worst, err := write(all, rows)
	if err != nil {
		return err
	}
	if err := regions.Write(form, form, texts); err != nil {
		return err
	}
	if err := os.WriteFile(table, []byte(cells), 0o666); err != nil {
		return err
	}
	if worst > tolerated {
		return errors.New("a choice takes longer than the better machine by more than it may: see " + table)
	}
	return nil
}

// measure runs all stages and stores the measurements.
func measure(ctx context.Context, bin, dir, results string) error {
	m := &machine{}
	var err error
	if m.plain, err = cudaemu.Build(); err != nil {
		return err
	}
	if m.traced, err = cudaemu.BuildTraced(); err != nil {
		return err
	}
	if m.bin, err = filepath.Abs(bin); err != nil {
		return err
	}
	if m.dir, err = filepath.Abs(dir); err != nil {
		return err
	}
	if err := m.inputs(ctx); err != nil {
		return err
	}
	var all []measured
	for _, s := range stages {
		for _, c := range codecs {
			one, err := m.measure(ctx, s, c)
			if err != nil {
				return fmt.Errorf("%s of %s: %w", s.name, c.name, err)
			}
			fmt.Fprintf(os.Stderr, "%s of %s: %.2f core-s/GB on the host, %.2f beside a GPU\n", s.name, c.name, one.Host, one.Beside)
			all = append(all, one)
		}
	}
	b, err := json.MarshalIndent(all, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(results, append(b, '\n'), 0o666)
}
