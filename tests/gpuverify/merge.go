package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"strata/tests/regions"
)

// page is the document with the results of all machines.
const page = "docs/gpu-verified.md"

// card holds what one GPU's records say. Its files in the folder of records are NAME.json, and NAME-stages.json and
// NAME-linumpy.json where they were measured apart.
type card struct {
	name    string // "h100"
	rec     *record
	runs    []timed
	linumpy []theirs
}

// theirs is a run of one of linumpy's programs.
type theirs struct {
	Program string  `json:"program"`
	Run     int     `json:"run"` // the second has compiled kernels and cached files
	RC      int     `json:"rc"`
	Wall    float64 `json:"wall_s"`
	Main    float64 `json:"main_s"` // without the start of Python and its imports
}

// merge puts the results of a machine, a folder that its gpu-verify.sh filled, among the records, unless it is "", and
// writes the page's tables from all records.
func merge(results, records, page string) error {
	if results != "" {
		if err := take(results, records); err != nil {
			return err
		}
	}
	all, err := cards(records)
	if err != nil {
		return err
	}
	return regions.Write(page, page, tables(all))
}

// take copies results under the name of the GPU.
func take(results, records string) error {
	file := filepath.Join(results, "gpu-verify.json")
	if _, err := os.Stat(file); err != nil {
		return err
	}
	r, err := load(file)
	if err != nil {
		return err
	}
	name, err := cardName(r.GPU.Name)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if err := r.save(filepath.Join(records, name+".json")); err != nil {
		return err
	}
	// What was timed apart is older than a record that has it, too.
	if slices.ContainsFunc(r.Runs, timed.sized) {
		if err := os.Remove(filepath.Join(records, name+"-stages.json")); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	traces, err := os.ReadFile(filepath.Join(results, "traces.txt"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(records, name+"-traces.txt"), traces, 0o666)
	}
	return err
}

// sized reports whether a run is of this form: records of older packs have others.
func (t timed) sized() bool { return t.Seconds > 0 && t.Tag != "" }

// cardName returns the file name for a GPU: its model without the maker and what comes in many sizes.
func cardName(gpu string) (string, error) {
	for _, word := range strings.FieldsFunc(gpu, func(c rune) bool { return c == ' ' || c == '-' }) {
		if word != "NVIDIA" && word != "Tesla" && word != "GeForce" {
			return strings.ToLower(word), nil
		}
	}
	return "", fmt.Errorf("it names no GPU: %q", gpu)
}

// cards reads the folder of records.
func cards(folder string) (all []card, err error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		name := strings.TrimSuffix(filepath.Base(f), ".json")
		if strings.Contains(name, "-") {
			continue
		}
		c := card{name: name}
		if c.rec, err = load(f); err != nil {
			return nil, err
		}
		for _, t := range c.rec.Runs {
			if t.sized() {
				c.runs = append(c.runs, t)
			}
		}
		if err := part(folder, name+"-stages.json", &c.runs); err != nil {
			return nil, err
		}
		var linumpy struct{ Runs []theirs }
		if err := part(folder, name+"-linumpy.json", &linumpy); err != nil {
			return nil, err
		}
		c.linumpy = linumpy.Runs
		all = append(all, c)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s has no records", folder)
	}
	return all, nil
}

// part reads a file of the records that need not be there.
func part(folder, name string, to any) error {
	b, err := os.ReadFile(filepath.Join(folder, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = json.Unmarshal(b, to)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// tables returns the page's regions.
func tables(all []card) map[string]string {
	var machines, sizes, linumpy strings.Builder
	machines.WriteString("| GPU | driver | commit | measured | stages, same voxels | kernels ≥ 0.8 of a copy | their median | up, GB/s | start delay |\n|---|---|---|---|---|---|--:|--:|--:|\n")
	for _, c := range all {
		r := c.rec
		same, good := 0, 0
		for _, s := range r.Stages {
			if s.Same {
				same++
			}
		}
		var shares []float64
		for _, k := range r.Kernels {
			shares = append(shares, k.OfCopy)
			if k.OfCopy >= 0.8 {
				good++
			}
		}
		slices.Sort(shares)
		median := "–"
		if len(shares) > 0 {
			median = fmt.Sprintf("%.2f", shares[len(shares)/2])
		}
		fmt.Fprintf(&machines, "| [%s](../tests/gpuverify/records/%s.json) | CUDA %s | %.8s | %s | %d of %d | %d of %d | %s | %.0f | %.2f s |\n", strings.TrimPrefix(r.GPU.Name, "NVIDIA "), c.name, r.Driver,
			r.Commit, r.Started.Format("January 2006"), same, len(r.Stages), good, len(r.Kernels), median, r.Figures["up"]/1e9, r.StartSeconds)
		c.sizes(&sizes)
		c.theirs(&linumpy)
	}
	return map[string]string{"machines": machines.String(), "sizes": strings.TrimPrefix(sizes.String(), "\n"), "linumpy": strings.TrimPrefix(linumpy.String(), "\n")}
}

// sizes writes the table of the stages on tiles of real size: a line for each stage and codec, a column for each place.
func (c card) sizes(b *strings.Builder) {
	if len(c.runs) == 0 {
		return
	}
	var tags, lines []string
	cells := map[[2]string]string{}
	for _, t := range c.runs {
		line := t.Stage + ", " + t.Codec
		if !slices.Contains(tags, t.Tag) {
			tags = append(tags, t.Tag)
		}
		if !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
		cell := fmt.Sprintf("%.2f", t.Seconds)
		if t.RC != 0 {
			cell = fmt.Sprintf("exit %d", t.RC)
		}
		cells[[2]string{line, t.Tag}] = cell
	}
	slices.Sort(tags)
	fmt.Fprintf(b, "\n| %s, s | %s |\n|---|%s\n", strings.TrimPrefix(c.rec.GPU.Name, "NVIDIA "), strings.Join(tags, " | "), strings.Repeat("--:|", len(tags)))
	for _, line := range lines {
		fmt.Fprintf(b, "| %s |", line)
		for _, tag := range tags {
			fmt.Fprintf(b, " %s |", cells[[2]string{line, tag}])
		}
		b.WriteString("\n")
	}
}

// theirs writes the table of linumpy's programs.
func (c card) theirs(b *strings.Builder) {
	if len(c.linumpy) == 0 {
		return
	}
	fmt.Fprintf(b, "\n| linumpy `--use_gpu`, %s | whole process, s | its main alone, s |\n|---|--:|--:|\n", strings.TrimPrefix(c.rec.GPU.Name, "NVIDIA "))
	for _, t := range c.linumpy {
		if t.Run == 2 && t.RC == 0 {
			fmt.Fprintf(b, "| `%s` | %.2f | %.2f |\n", filepath.Base(t.Program), t.Wall, t.Main)
		}
	}
}
