//go:build !nocuda

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"strata/pkg/gpu/lease"
)

// TestGPUsShared: of two GPUs a process takes the one that is free; when both are
// taken it says so, waits, and goes on when one is free again; killed while it waits, it
// leaves no place in the queue that anyone waits for.
func TestGPUsShared(t *testing.T) {
	dir, leases := t.TempDir(), t.TempDir()
	run(t, dir, "phantom", "m", "--tiles", "2,2", "--tile", "8,16,16", "-q")
	in := "m/mosaic_grid_3d_z00.ome.zarr"
	run(t, dir, "aip", in, "cpu.ome.zarr", "--no-use_gpu", "-q")
	want := contents(t, filepath.Join(dir, "cpu.ome.zarr"))
	env := []string{"CUEMU_DEVICES=2", "CUEMU_MEM=268435456", "STRATA_LEASE_DIR=" + leases}
	gpus := []lease.Device{
		{UUID: "GPU-01000000-0000-0000-0000-000000000000", Memory: 256 << 20},
		{UUID: "GPU-02000000-0000-0000-0000-000000000000", Memory: 256 << 20},
	}
	take := func(d lease.Device) *lease.Lease {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		l, err := lease.Acquire(ctx, leases, []lease.Device{d}, d.Grantable(), lease.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	// check looks at what a run left, which was to use that GPU.
	check := func(d lease.Device) {
		t.Helper()
		var record struct{ GPU struct{ UUID string } }
		b, err := os.ReadFile(filepath.Join(dir, "run.json"))
		if err == nil {
			err = json.Unmarshal(b, &record)
		}
		if err != nil || record.GPU.UUID != d.UUID {
			t.Errorf("on %q, want %s: %v", record.GPU.UUID, d.UUID, err)
		}
		if !sameContents(contents(t, filepath.Join(dir, "gpu.ome.zarr")), want) {
			t.Error("the output is not the CPU's")
		}
	}
	args := []string{in, "gpu.ome.zarr", "--require_gpu", "-f", "--progress", "none", "--report", "run.json"}
	for i, d := range gpus {
		l := take(gpus[1-i])
		if out, err := onGPU(t, dir, "aip", args, env...).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		check(d)
		if err := l.Release(); err != nil {
			t.Fatal(err)
		}
	}

	held := []*lease.Lease{take(gpus[0]), take(gpus[1])}
	killed := onGPU(t, dir, "aip", args, env...)
	if err := killed.Start(); err != nil {
		t.Fatal(err)
	}
	waiting(t, leases, 2) // a place on each device
	if err := killed.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = killed.Wait()
	var log bytes.Buffer
	c := onGPU(t, dir, "aip", args, env...)
	c.Stderr = &log
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	waiting(t, leases, 2)
	if err := held[1].Release(); err != nil {
		t.Fatal(err)
	}
	if err := c.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, log.String())
	}
	check(gpus[1])
	if !bytes.Contains(log.Bytes(), []byte("wait")) {
		t.Errorf("does not say that it waits: %s", log.String())
	}
	if err := held[0].Release(); err != nil {
		t.Fatal(err)
	}
	if left, err := lease.List(leases); err != nil || len(left) > 0 {
		t.Errorf("left: %v %v", left, err)
	}
}

// waiting waits until so many places are waited for.
func waiting(t *testing.T, leases string, n int) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		list, err := lease.List(leases)
		if err != nil {
			t.Fatal(err)
		}
		got := 0
		for _, e := range list {
			if e.Waiting {
				got++
			}
		}
		if got == n {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d wait, want %d: %v", got, n, list)
		}
	}
}
