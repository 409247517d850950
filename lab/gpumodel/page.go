package main

import (
	"encoding/csv"
	"fmt"
	"slices"
	"strings"

	"strata/pkg/gpu/cost"
)

// The page shows this size and number of cores, for which a GPU may pay; the sheet has all.
const (
	shownSize  = int64(20e9)
	shownCores = 4
)

// tried are the sizes of which the page names the smallest that a GPU is chosen for, in GB.
var tried = []int64{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000}

// write returns the regions of the page, the sheet with all cells, and by how much the worst choice is worse than the
// better machine.
func write(all []measured, rows []row) (texts map[string]string, cells string, worst float64, err error) {
	shown, err := seconds(all, rows)
	if err != nil {
		return nil, "", 0, err
	}
	chosen, total := map[int]int{}, map[int]int{}
	for _, r := range rows {
		for i, c := range r.cells {
			total[cores[i]]++
			if c.chosen.GPU {
				chosen[cores[i]]++
			}
			worst = max(worst, c.worse)
		}
	}
	var of []string
	for _, n := range cores {
		of = append(of, fmt.Sprintf("%d of %d cases with %d cores", chosen[n], total[n], n))
	}
	said := fmt.Sprintf("For 1 and 20 GB of each input below on each GPU, the GPU is chosen in %s. The worst choice takes %.0f %% longer than the better machine would; up to %.0f %% is accepted.\n",
		strings.Join(of, ", "), 100*(worst-1), 100*(tolerated-1))
	cells, err = sheet(rows)
	return map[string]string{"choices": said, "seconds": shown}, cells, worst, err
}

// seconds returns the table of the page: for each stage and codec the seconds without and with each GPU, and the size
// from which it is chosen.
func seconds(all []measured, rows []row) (string, error) {
	var models []string
	for _, m := range cost.Models() {
		models = append(models, m.Name)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "| | CPU | %s | from, GB |\n|---|--:|%s--:|\n", strings.Join(models, " | "), strings.Repeat("--:|", len(models)))
	for _, m := range all {
		line, from := "", make([]string, 0, len(models))
		for _, model := range models {
			for _, r := range rows {
				if r.gpu != model || r.size != shownSize || r.of.Stage != m.Stage || r.of.Level != m.Level {
					continue
				}
				c := r.cells[slices.Index(cores, shownCores)]
				if line == "" {
					line = fmt.Sprintf("| %s, %s | %.1f |", m.Stage, m.Level, c.host)
				}
				line += fmt.Sprintf(" %.1f |", c.gpu)
				least, err := m.chosenFrom(model)
				if err != nil {
					return "", err
				}
				from = append(from, least)
			}
		}
		if line == "" {
			continue
		}
		if len(slices.Compact(slices.Clone(from))) == 1 {
			from = from[:1]
		}
		b.WriteString(line + " " + strings.Join(from, "/") + " |\n")
	}
	return b.String(), nil
}

// chosenFrom returns the smallest size, in GB, from which on the GPU is chosen, and "–" if there is none.
func (m measured) chosenFrom(model string) (string, error) {
	least := "–"
	for _, gb := range slices.Backward(tried) {
		c, err := m.compare(gb*1e9, cost.Host{Cores: shownCores}, device(model))
		if err != nil {
			return "", err
		}
		if !c.chosen.GPU {
			break
		}
		least = fmt.Sprint(gb)
	}
	return least, nil
}

// sheet returns all cells as CSV.
func sheet(rows []row) (string, error) {
	var b strings.Builder
	w := csv.NewWriter(&b)
	lines := [][]string{{"GPU", "GB", "stage", "input", "cores", "CPU, s", "limit", "GPU, s", "limit", "GPU does", "chosen"}}
	for _, r := range rows {
		for i, c := range r.cells {
			chosen := "CPU"
			if c.chosen.GPU {
				chosen = strings.TrimSpace("GPU " + how(r.of.Codec, c.chosen.DeviceDecodes, c.chosen.DeviceEncodes))
			}
			lines = append(lines, []string{r.gpu, fmt.Sprint(r.size / 1e9), r.of.Stage, r.of.Level, fmt.Sprint(cores[i]), fmt.Sprintf("%.1f", c.host), fmt.Sprint(c.hostLimit),
				fmt.Sprintf("%.1f", c.gpu), fmt.Sprint(c.gpuLimit), how(r.of.Codec, c.deviceDecodes, c.codes), chosen})
		}
	}
	err := w.WriteAll(lines)
	return b.String(), err
}
