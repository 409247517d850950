package e2e

import (
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// steps runs scripts/steps.sh with the programs of this test: from a copy, beside which there is no bin/.
func steps(t *testing.T, dir, input, results string) string {
	t.Helper()
	text, err := os.ReadFile("../../scripts/steps.sh")
	if err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(dir, "scripts", "steps.sh")
	if err := os.MkdirAll(filepath.Dir(script), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(script, text, 0o755); err != nil {
		t.Fatal(err)
	}
	c := exec.Command(script, "none", input, results)
	c.Dir = dir
	c.Env = append(os.Environ(), "INTERVAL=0.1", "DEPTH=130")
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

// stepsWithout runs scripts/steps.sh on four slices of a phantom without the missing ones. It returns the folder that
// holds results/, and the script's output.
func stepsWithout(t *testing.T, missing string) (dir, said string) {
	t.Helper()
	if testing.Short() {
		t.Skip("runs every stage a dozen times")
	}
	t.Parallel()
	dir = t.TempDir()
	run(t, dir, "phantom", "raw", "--raw", "--slices", "4", "--missing_slices", missing, "--interval", "100", "--tiles", "2,2", "--tile", "64,80,80", "-q")
	return dir, steps(t, dir, "raw", "results")
}

// The chain without an engine makes up for a slice that is missing between two others, as the workflow does: the volume
// is as deep as the specimen, and not by an interval less.
func TestStepsFillAGap(t *testing.T) {
	dir, said := stepsWithout(t, "2")
	if !strings.Contains(said, "interpolate: slice_z02\n") {
		t.Errorf("slice 2 was not interpolated:\n%s", said)
	}
	b, err := os.ReadFile(filepath.Join(dir, "results/volume/volume.ome.zarr/0/zarr.json"))
	if err != nil {
		t.Fatal(err)
	}
	var array struct{ Shape []int }
	if err := json.Unmarshal(b, &array); err != nil {
		t.Fatal(err)
	}
	// Voxels of 5 µm; the last slice begins 3 intervals below the first and is 130 µm deep.
	if depth, want := 5*float64(array.Shape[0]), 3*100.0+130; math.Abs(depth-want) > 50 {
		t.Errorf("the volume is %v µm deep, want %v within half an interval", depth, want)
	}
}

// Two slices in a row that are missing are named, and nothing is made up for them.
func TestStepsKeepWiderGaps(t *testing.T) {
	_, said := stepsWithout(t, "1,2")
	if want := "steps.sh: 2 slices are missing before slice 3: none is made up for\n"; !strings.Contains(said, want) || strings.Contains(said, "interpolate:") {
		t.Errorf("want %q:\n%s", want, said)
	}
}
