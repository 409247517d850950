package qc

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

const sliceTable = "slice_id,use,exclude_reason,quality_score,interpolated,fault,fault_reason\n"

// Bad slices are named with what became of them, by the tables of a run: one says what is bad, another what was
// interpolated.
func TestBadSlices(t *testing.T) {
	dir := tree(t, map[string]string{
		"slice_config/slice_config.csv": "slice_id,use,exclude_reason\n0,false,first_slice_excluded\n1,true,\n2,true,\n",
		"slice_config/slice_config_assessed.csv": sliceTable + "0,false,first_slice_excluded,0.5,,,\n1,false,noise,,,noise,\"contrast of 0.01, <b>\"\n2,true,,,,,\n3,false,duplicate,,,duplicate,scanned twice\n4,true,,,,,\n" +
			"5,true,,,,grid,2 × 3 tiles\n6,false,saturated,,,saturated,58 %\n7,false,low_quality,0.123,,,\n8,false,no_tissue,,,no_tissue,contrast of 0.1\n",
		"slice_config/slice_config_final.csv": "slice_id,use,interpolated\n6,false,true\n",
		"volume/stacking_decisions.csv":       decisions + "2,0,False,automated,False,,left_out,0,0,0\n4,2,False,automated,False,,correlation,5,5,0.5\n5,4,False,automated,False,,correlation,5,5,0.5\n6,5,False,automated,False,,interpolated,5,5,0\n",
	})
	r := load(t, Sources{Run: dir})
	if len(r.Problems) > 0 {
		t.Errorf("problems: %q", r.Problems)
	}
	var text bytes.Buffer
	if err := r.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	html := write(t, r)
	for _, want := range []string{
		"slice 1: noise: contrast of 0.01, <b>; left out of the volume; the slicing interval places slice 2 behind it",
		"slice 3: duplicate: scanned twice; left out of the volume, in which it had no depth of its own",
		"slice 5: another grid of tiles: 2 × 3 tiles; kept: it is in the volume",
		"slice 6: saturated: 58 %; excluded; an interpolated slice takes its place in the volume",
		"slice 7: low quality: quality 0.123; left out: the volume begins or ends without it",
		"slice 8: no tissue: contrast of 0.1; left out: the volume begins or ends without it",
	} {
		if !strings.Contains(text.String(), "\n  "+want+"\n") {
			t.Errorf("no %q in %s", want, text.String())
		}
	}
	if strings.Contains(text.String(), "  slice 0:") || strings.Count(text.String(), "warning: slice ") != 6 {
		t.Error(text.String())
	}
	for _, want := range []string{`<a href="#bad">Bad slices</a>`, `<section id="bad">`, `<th scope="row">1</th><td>noise</td><td>contrast of 0.01, &lt;b&gt;</td>`, "slicing interval (slices left out)"} {
		if !strings.Contains(html, want) {
			t.Errorf("no %s in the page", want)
		}
	}
	// what slices assess said itself is not said again
	run := filepath.Join(dir, "reports", "slices.assess.json")
	r = load(t, Sources{Slices: filepath.Join(dir, "slice_config", "slice_config_assessed.csv"), Reports: []string{filepath.Dir(filepath.Join(tree(t, map[string]string{
		"reports/slices.assess.json": `{"tool":"slices","command":"assess","warnings":["slice 1: noise: contrast of 0.01, <b>: excluded"]}`}), "reports", filepath.Base(run)))}})
	text.Reset()
	if err := r.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(text.String(), "warning: slice 1"); n != 0 || !strings.Contains(text.String(), "warning: slices: slice 1: noise: ") || !strings.Contains(text.String(), "  slice 1: noise: contrast of 0.01, <b>; excluded\n") ||
		!strings.Contains(text.String(), "  slice 5: another grid of tiles: 2 × 3 tiles; kept\n") {
		t.Errorf("%d: %s", n, text.String())
	}
	// nothing bad, no section; no table, an error
	none := tree(t, map[string]string{"slice_config.csv": sliceTable + "1,true,,,,,\n", "broken.csv": "a,b\n"})
	if html := write(t, load(t, Sources{Run: none})); strings.Contains(html, "Bad slices") {
		t.Error("a section of no bad slices")
	}
	if _, err := Load(ctx, Sources{Slices: filepath.Join(none, "broken.csv")}, res); !errors.Is(err, ErrInput) || !strings.Contains(fmt.Sprint(err), "broken.csv:1: ") {
		t.Error(err)
	}
}
