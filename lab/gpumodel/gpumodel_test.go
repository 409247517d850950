package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"strata/pkg/gpu/cost"
	"strata/tests/regions"
)

func stored(t *testing.T) (all []measured) {
	t.Helper()
	b, err := os.ReadFile("../results/gpumodel.json")
	if err == nil {
		err = json.Unmarshal(b, &all)
	}
	if err != nil || len(all) != len(stages)*len(codecs) {
		t.Fatal(len(all), err)
	}
	return all
}

// TestChoices: by what was measured last, what package cost chooses from its tables takes no more than a tenth longer
// than the better machine, in every row; and docs/gpu-model.md and the sheet beside it are what these tables make.
func TestChoices(t *testing.T) {
	all := stored(t)
	rows, err := predict(all)
	if err != nil {
		t.Fatal(err)
	}
	gpu := 0
	for _, r := range rows {
		for i, c := range r.cells {
			if c.worse > tolerated {
				t.Errorf("%s, %d GB, %s of %s, %d cores: %+v takes %.2f times the better of %.2f and %.2f s", r.gpu, r.size/1e9, r.of.Stage, r.of.Level, cores[i], c.chosen, c.worse, c.host, c.gpu)
			}
			if c.chosen.GPU {
				gpu++
			}
		}
	}
	if gpu == 0 || gpu == len(rows)*len(cores) {
		t.Errorf("the GPU is chosen in %d of %d cells: nothing is decided", gpu, len(rows)*len(cores))
	}
	texts, cells, _, err := write(all, rows)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile("../../" + table); err != nil || string(b) != cells {
		t.Errorf("%s is not what the tables make (go run ./lab/gpumodel -measure=false); %v", table, err)
	}
	page, err := os.ReadFile("../../" + form)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := regions.Fill(string(page), texts); err != nil || string(page) != text {
		t.Errorf("docs/gpu-model.md is not what the tables make (go run ./lab/gpumodel -measure=false); %v", err)
	}
}

// TestCompareFails: a choice of the worse machine is seen as one.
func TestCompareFails(t *testing.T) {
	m := stored(t)[0]
	for _, one := range stored(t) {
		if one.Stage == "aip" && one.Codec == cost.Blosc {
			m = one
		}
	}
	_, f := cost.ForGPU("A100", 80)
	d := &cost.Device{Model: "A100", Figures: f, Workers: 4}
	m.Host = 100 // a hundred times what the tables say of the stage
	c, err := m.compare(20e9, cost.Host{Cores: 4}, d)
	if err != nil || c.chosen.GPU || c.worse < tolerated {
		t.Errorf("%+v, %v", c, err)
	}
	_, cells, worst, err := write([]measured{m}, []row{{gpu: "A100", size: 20e9, of: m, cells: []cell{c}}})
	if err != nil || worst < tolerated || !strings.Contains(cells, "A100,20,aip,") || !strings.HasSuffix(cells, ",CPU\n") {
		t.Errorf("the sheet says\n%s%v, %v", cells, worst, err)
	}
}
