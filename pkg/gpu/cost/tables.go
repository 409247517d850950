package cost

import (
	_ "embed"
	"fmt"
	"strconv"
	"strings"
)

//go:embed figures.tsv
var figuresTable string

//go:embed stages.tsv
var stagesTable string

//go:embed host.tsv
var hostTable string

// table maps the first cell of each line to the others, by the heading of their column. A table that is embedded
// is right, which a test holds.
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

// number is the value of a cell in bytes per second, seconds, or as it is.
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

// Figures are named figures of the tables, in seconds and bytes per second.
type Figures map[string]float64

// get returns a figure; a name that no table has is a mistake of the program.
func (f Figures) get(name string) float64 {
	v, ok := f[name]
	if !ok {
		panic("cost: no figure " + name)
	}
	return v
}

func column(text, name string) Figures {
	f := Figures{}
	for figure, row := range table(text) {
		f[figure] = number(row[name], row["unit"])
	}
	return f
}

// models are the columns of figures.tsv.
var models = []string{"V100", "A100", "H100"}

// Models returns the names of the GPUs that have figures, the slowest first.
func Models() []string { return append([]string(nil), models...) }

// ForGPU returns the figures of a GPU by what the driver calls it, as "NVIDIA A100-SXM4-80GB". A GPU that
// has no column gets the figures of the slowest whose compute capability is not newer than its own.
func ForGPU(name string, major int) (model string, f Figures) {
	for _, m := range models {
		if strings.Contains(name, m) {
			return m, column(figuresTable, m)
		}
	}
	model = models[0]
	switch {
	case major >= 9:
		model = models[2]
	case major == 8:
		model = models[1]
	}
	return model, column(figuresTable, model)
}

// HostFigures returns what the host takes.
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
