//go:build !nocuda

package gputest

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"strata/pkg/gpu"
	"strata/tests/cudaemu"
)

func TestMain(m *testing.M) { cudaemu.Main(m) }

// TestHold: with a device that is held, those that tests open share its context.
func TestHold(t *testing.T) {
	if file := os.Getenv("CUEMU_CLOCK"); file != "" {
		d, err := held()
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			t.Run("", func(t *testing.T) { Stream(t, Device(t, gpu.Limits{Memory: 1 << 20, Pinned: 1 << 20})) })
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		return
	}
	NeedDouble(t)
	file := filepath.Join(t.TempDir(), "clock.json")
	c := exec.Command(os.Args[0], "-test.run=^TestHold$", "-test.count=1")
	c.Env = append(os.Environ(), "CUEMU_CLOCK="+file)
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var clock cudaemu.Clock
	if err := json.Unmarshal(b, &clock); err != nil || clock.Work["context"].Calls != 1 {
		t.Errorf("%v, %+v", err, clock.Work["context"])
	}
}
