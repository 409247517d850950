//go:build !nocuda

package main

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"strata/pkg/gpu"
	"strata/tests/cudaemu"
)

// asked lists the kernels whose requests touch more than 1.2 times the sectors that they must touch, and how many times
// that. What caches would give them is counted, too.
var asked = map[string]float64{
	"along_f32": 3.53, "column_means": 2.12, "counts_u16": 1.50, "mix": 1.21, "place_u16": 1.25, "rigid": 2.89, "steepest8": 2.25,
}

// TestSectors counts what the measured kernels ask of memory, beside the sectors that they must touch, by the
// interpreter of the double: -v prints the table. It finds a kernel that gets worse.
func TestSectors(t *testing.T) {
	if testing.Short() {
		t.Skip("interprets every kernel")
	}
	const variable = "STRATA_TEST_SECTORS"
	if os.Getenv(variable) != "" {
		list, err := gpu.Devices()
		if err != nil {
			t.Fatal(err)
		}
		d, err := gpu.Open(list[0], gpu.Limits{Memory: 64 << 20, Pinned: 64 << 20})
		if err != nil {
			t.Fatal(err)
		}
		if err := measureKernels(d, &record{}, 64, 512<<10, 0); err != nil {
			t.Fatal(err)
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
		return
	}
	file := filepath.Join(t.TempDir(), "counts")
	child := exec.Command(os.Args[0], "-test.run=^TestSectors$", "-test.count=1")
	child.Env = append(os.Environ(), variable+"=1", "CUEMU_PTX=1", "CUEMU_COUNT="+file)
	if out, err := child.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	list, err := cudaemu.ReadCounts(file)
	if err != nil {
		t.Fatal(err)
	}
	sums := map[string]cudaemu.Counts{}
	for _, c := range list {
		s := sums[c.Kernel]
		s.Loaded += c.Sectors()
		s.Least += c.Least
		sums[c.Kernel] = s
	}
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		of := float64(sums[name].Loaded) / float64(sums[name].Least)
		t.Logf("%-20s %6.2f", name, of)
		most := 1.2
		if m, ok := asked[name]; ok {
			most = m * 1.05
		}
		if of > most {
			t.Errorf("%s asks for %.2f times the sectors that it must touch, at most %.2f were wanted", name, of, most)
		}
	}
}
