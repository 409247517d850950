// Command memory measures how much memory the programs of the workflow need for a large image. It makes the input, and writes docs/memory.md from
// the run records that scripts/memory.sh leaves.
package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"strata/pkg/host"
	"strata/pkg/record"
)

//go:embed page.md
var form string

func main() {
	dir := flag.String("make", "", "make the input in this folder")
	gb := flag.Float64("gb", 20, "its size in GB")
	reports := flag.String("reports", "", "folder of the run records")
	page := flag.String("page", "", "page to write; \"\": standard output")
	flag.Parse()
	if err := run(*dir, *gb, *reports, *page); err != nil {
		fmt.Fprintln(os.Stderr, "memory:", err)
		os.Exit(1)
	}
}

func run(dir string, gb float64, reports, page string) error {
	if dir != "" {
		return makeInput(context.Background(), dir, gb)
	}
	text, err := write(reports)
	if err != nil {
		return err
	}
	if page == "" {
		_, err = os.Stdout.WriteString(text)
		return err
	}
	return os.WriteFile(page, []byte(text), 0o666)
}

// write returns the page.
func write(reports string) (string, error) {
	files, err := filepath.Glob(filepath.Join(reports, "*.json"))
	if err != nil {
		return "", err
	}
	var all []record.Record
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			return "", err
		}
		var r record.Record
		if err := json.Unmarshal(text, &r); err != nil {
			return "", fmt.Errorf("%s: %w", name, err)
		}
		if r.ExitCode != 0 {
			return "", fmt.Errorf("%s: %s ended with %d", name, r.Tool, r.ExitCode)
		}
		all = append(all, r)
	}
	if len(all) == 0 {
		return "", fmt.Errorf("%s: no run records", reports)
	}
	slices.SortFunc(all, func(a, b record.Record) int { return a.Started.Compare(b.Started) })
	var rows strings.Builder
	largest := 0.0
	for _, r := range all {
		bytes := size(r)
		largest = max(largest, bytes)
		fmt.Fprintf(&rows, "| %s | %.1f GB | %d MiB | `%s` |\n", strings.TrimSpace(r.Tool+" "+r.Command), bytes/1e9, r.PeakResidentBytes>>20, command(r))
	}
	commit, _ := exec.Command("git", "rev-parse", "--short", "HEAD").Output() // a fact less
	return strings.NewReplacer("{{GB}}", fmt.Sprintf("%.0f", largest/1e9), "{{ROWS}}\n", rows.String()+"\n", "{{CORES}}", strconv.Itoa(runtime.NumCPU()), "{{CPU}}", host.CPUModel(),
		"{{COMMIT}}", strings.TrimSpace(string(commit)), "{{DATE}}", time.Now().UTC().Format("2006-01-02 15:04 MST"), "{{SLICE}}", times(sliceChunk), "{{VOLUME}}", times(volumeChunk)).Replace(form), nil
}

// size returns the bytes of a run's largest input, as decoded.
func size(r record.Record) (most float64) {
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
func command(r record.Record) string {
	words := []string{r.Tool}
	for i := 0; i < len(r.Arguments); i++ {
		switch a := r.Arguments[i].String(); a {
		case "--report":
			i++
		case "--quiet", "--overwrite":
		default:
			words = append(words, a)
		}
	}
	return strings.Join(words, " ")
}
