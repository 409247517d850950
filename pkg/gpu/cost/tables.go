package cost

import (
	_ "embed"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

//go:embed figures.tsv
var figuresTable string

//go:embed stages.tsv
var stagesTable string

//go:embed host.tsv
var hostTable string

// table parses a tab-separated table with a heading: it maps the first cell of each line to the line's other cells, by
// column name. It does not check the format; a test checks the embedded tables.
func table(text string) map[string]map[string]string {
	out := map[string]map[string]string{}
	var heading []string
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" || line[0] == '#' {
			continue
		}
		cells := strings.Split(line, "\t")
		if heading == nil {
			heading = cells
			continue
		}
		row := map[string]string{}
		for i, c := range cells[:min(len(cells), len(heading))] {
			row[heading[i]] = c
		}
		out[cells[0]] = row
	}
	return out
}

// number returns the value of a cell in bytes per second, in seconds, or as a plain number.
func number(cell, unit string) float64 {
	v, err := strconv.ParseFloat(cell, 64)
	if err != nil {
		panic(fmt.Sprintf("cost: a table says %q where a number has to be", cell)) // a test reads all of them
	}
	if unit == "GB/s" {
		v *= 1e9
	}
	return v
}

// Figures maps names of figures in the tables to values, in seconds and bytes per second.
type Figures map[string]float64

// get returns a figure; a name that no table has is a mistake of the program.
func (f Figures) get(name string) float64 {
	v, ok := f[name]
	if !ok {
		panic("cost: no figure " + name)
	}
	return v
}

// With returns the figures, with those that others has replaced.
func (f Figures) With(others Figures) Figures {
	all := maps.Clone(f)
	for name, v := range others {
		if _, ok := all[name]; ok {
			all[name] = v
		}
	}
	return all
}

// Variable names the environment variable whose figures, parsed by [ParseFigures], replace those of the
// tables.
const Variable = "STRATA_GPU_FIGURES"

// ParseFigures parses figures that replace those of the tables, for a GPU and the host: NAME=VALUE and
// host.NAME=VALUE separated by commas, in the units of the tables.
func ParseFigures(text string) (gpu, host Figures, err error) {
	gpu, host = Figures{}, Figures{}
	if text == "" {
		return gpu, host, nil
	}
	ofGPU, ofHost := table(figuresTable), table(hostTable)
	for pair := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(pair, "=")
		known, to := ofGPU, gpu
		name, is := strings.CutPrefix(name, "host.")
		if is {
			known, to = ofHost, host
		}
		row, is := known[name]
		if !is {
			return nil, nil, fmt.Errorf("%q is not a figure: want NAME=VALUE between commas, such as init=0.4,host.storage=2 (pkg/gpu/cost has the names)", pair)
		}
		if v, err := strconv.ParseFloat(value, 64); err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, nil, fmt.Errorf("%q is not a number: want %s in %s", pair, name, row["unit"])
		}
		to[name] = number(value, row["unit"])
	}
	return gpu, host, nil
}

func column(text, name string) Figures {
	f := Figures{}
	for figure, row := range table(text) {
		f[figure] = number(row[name], row["unit"])
	}
	return f
}

// A Model is a model of GPU that has figures.
type Model struct {
	Name    string // its column of figures.tsv, and part of the driver's name for it
	Compute int    // compute capability, 70 for 7.0
}

// models have a column in figures.tsv each.
var models = []Model{{"V100", 70}, {"A100", 80}, {"H100", 90}}

// Models returns the models of GPU that have figures.
func Models() []Model { return slices.Clone(models) }

// ForGPU returns the figures of a GPU with the given driver name, such as "NVIDIA A100-SXM4-80GB". For an unknown name
// it goes by the compute capability: it returns the figures of the newest model that is not newer than the GPU, or else
// of the oldest model.
func ForGPU(name string, compute int) (model string, f Figures) {
	byCompute := func(a, b Model) int { return a.Compute - b.Compute }
	best := slices.MinFunc(models, byCompute)
	for _, m := range models {
		if strings.Contains(name, m.Name) {
			best = m
			break
		}
		if m.Compute <= compute && m.Compute > best.Compute {
			best = m
		}
	}
	return best.Name, column(figuresTable, best.Name)
}

// HostFigures returns the figures of the host.
func HostFigures() Figures { return column(hostTable, "value") }

// Stages returns the names of the stages that have a line.
func Stages() []string {
	var out []string
	for line := range strings.Lines(stagesTable) {
		if name, _, ok := strings.Cut(line, "\t"); ok && name != "stage" && name[0] != '#' {
			out = append(out, name)
		}
	}
	return out
}

func stage(name string) (Figures, error) {
	row, ok := table(stagesTable)[name]
	if !ok {
		return nil, fmt.Errorf("no figures of a stage %q; there are %s", name, strings.Join(Stages(), ", "))
	}
	f := Figures{}
	for k, v := range row {
		if k != "stage" {
			f[k] = number(v, "")
		}
	}
	return f, nil
}
