//go:build !nocuda

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"strata/pkg/gpu/cost"
	"strata/tests/clitest"
	"strata/tests/cudaemu"
)

// onGPU is a command that sees a double of a GPU, with more of its environment.
func onGPU(t *testing.T, dir, name string, args []string, env ...string) *exec.Cmd {
	t.Helper()
	lib, err := cudaemu.Build()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute) // one that hangs is stuck for good
	t.Cleanup(cancel)
	c := exec.CommandContext(ctx, filepath.Join(bin, name), args...)
	c.Dir = dir
	c.Env = append(os.Environ(), "STRATA_LEASE_DIR="+t.TempDir())
	for variable, value := range cudaemu.Environment(lib) {
		c.Env = append(c.Env, variable+"="+value)
	}
	c.Env = append(c.Env, env...)
	return c
}

// Each call of the driver fails at its n-th time, with an error that is gone after it
// and with one that ends the context: the output is the CPU's, or, where
// the GPU is required, there is none and the exit code is 4.
func TestGPUFaults(t *testing.T) {
	dir := t.TempDir()
	run(t, dir, "phantom", "m", "--tiles", "2,2", "--tile", "24,32,32", "-q", "--slices", "2")
	if err := os.Mkdir(filepath.Join(dir, "slices"), 0o777); err != nil {
		t.Fatal(err)
	}
	for z := range 2 {
		run(t, dir, "resample", fmt.Sprintf("m/mosaic_grid_3d_z%02d.ome.zarr", z), fmt.Sprintf("slices/slice_z%02d.ome.zarr", z), "--n_levels", "0", "-q", "--no-use_gpu")
	}
	run(t, dir, "phantom", "raw", "--tiles", "2,2", "--tile", "24,32,32", "-q", "--codec", "raw")
	stages := map[string][]string{ // by the binary, and what tells one from another of the same
		"aip":      {"m/mosaic_grid_3d_z00.ome.zarr", "out.ome.zarr", "-q", "-f", "--n_levels", "1"},
		"resample": {"m/mosaic_grid_3d_z00.ome.zarr", "out.ome.zarr", "-q", "-f", "--n_levels", "1"},
		"stitch":   {"m/mosaic_grid_3d_z00.ome.zarr", "out.ome.zarr", "-q", "-f", "--n_levels", "1", "--codec", "raw", "--max_refinement_px", "2"},
		"stack": {"slices", "m/shifts_xy.csv", "out.ome.zarr", "-q", "-f", "--n_levels", "1", "--moving_z_first_index", "1", "--slicing_interval_mm", "0.03",
			"--search_range_mm", "0.02", "--z_overlap_min_corr", "0", "--blend", "--blend_refinement_px", "3"},
		"aip of raw chunks": {"raw/mosaic_grid_3d_z00.ome.zarr", "out.ome.zarr", "-q", "-f", "--n_levels", "1", "--gds_threshold", "0"},
		"focal":             {"m/mosaic_grid_3d_z00.ome.zarr", "out.ome.zarr", "-q", "-f", "--n_levels", "1", "--codec", "raw"},
		"aip of both ways":  {"m/mosaic_grid_3d_z00.ome.zarr", "out.ome.zarr", "-q", "-f", "--n_levels", "1", "-j", "1"},
		"crop":              {"m/mosaic_grid_3d_z00.ome.zarr", "out.ome.zarr", "-q", "-f", "--n_levels", "1", "--depth", "30"},
	}
	times := []int{1, 2, 7}
	if testing.Short() {
		times = times[:1]
	}
	// those of the driver, and of the libraries that read and decode
	calls := []string{"cuInit", "cuDevicePrimaryCtxRetain", "cuStreamCreate", "cuMemHostAlloc", "cuMemAlloc_v2", "cuModuleLoadDataEx",
		"cuModuleGetFunction", "cuMemcpyHtoDAsync_v2", "cuLaunchKernel", "cuMemcpyDtoHAsync_v2", "cuStreamSynchronize", "cuMemFree_v2", "cuMemsetD8Async",
		"cuEventCreate", "cuEventRecord", "cuStreamWaitEvent", "nvcompBatchedZstdDecompressAsync"}
	others := map[string][]string{
		"aip of raw chunks": {"cuFileDriverOpen", "cuFileHandleRegister", "cuFileRead", "cuMemcpyDtoDAsync_v2", "cuLaunchKernel", "cuStreamSynchronize"},
		"aip of both ways":  {"cuEventCreate", "cuEventRecord", "cuEventElapsedTime", "cuEventDestroy_v2", "cuStreamSynchronize", "nvcompBatchedZstdDecompressAsync", "nvcompBatchedZstdCompressAsync"},
	}
	for name, args := range stages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &faulty{dir: dir, out: t.TempDir(), args: args}
			f.stage, _, _ = strings.Cut(name, " ")
			if strings.HasSuffix(name, "both ways") {
				f.env = []string{cost.Variable + "=host.margin=-1e12,host.tries=1"}
			}
			run(t, dir, f.stage, append(f.to("out.ome.zarr"), "--no-use_gpu")...)
			f.want = contents(t, filepath.Join(f.out, "out.ome.zarr"))
			of, other := others[name]
			if !other {
				of = calls
			}
			for _, call := range of {
				for _, n := range times {
					if n > 1 && slices.Contains([]string{"cuInit", "cuDevicePrimaryCtxRetain", "cuFileDriverOpen"}, call) {
						continue // it is called once
					}
					for i, code := range []string{"2", "719s"} {
						if n > 1 && i != n%2 {
							continue // later calls fail in one way each: how they recover does not depend on the call before
						}
						f.fail(t, fmt.Sprintf("CUEMU_FAIL=%s:%d:%s", call, n, code))
					}
				}
			}
			for _, left := range remains(t, f.out) {
				t.Errorf("%s is left", left)
			}
		})
	}
}

// faulty is a stage that is run with faults, and what it is to make all the same.
type faulty struct {
	stage string
	args  []string // "out.ome.zarr" among them is the output
	dir   string   // where it runs
	out   string   // of outputs
	env   []string
	want  map[string][]byte
}

// to is the arguments for an output of that name.
func (f *faulty) to(name string) []string {
	args := slices.Clone(f.args)
	args[slices.Index(args, "out.ome.zarr")] = filepath.Join(f.out, name)
	return args
}

// fail runs the stage with a fault, where it may fall back to the CPU and where it may
// not.
func (f *faulty) fail(t *testing.T, fault string) {
	t.Helper()
	free, required := filepath.Join(f.out, "out.ome.zarr"), filepath.Join(f.out, "required.ome.zarr")
	for _, name := range []string{free, required} {
		if err := os.RemoveAll(name); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := onGPU(t, f.dir, f.stage, f.to("out.ome.zarr"), append(f.env, fault)...).CombinedOutput(); err != nil {
		t.Errorf("%s: %v\n%s", fault, err, out)
		return
	}
	if !sameContents(contents(t, free), f.want) {
		t.Errorf("%s: the output differs", fault)
	}
	c := onGPU(t, f.dir, f.stage, append(f.to("required.ome.zarr"), "--require_gpu"), append(f.env, fault)...)
	out, err := c.CombinedOutput()
	switch code := c.ProcessState.ExitCode(); {
	case code == 0 && sameContents(contents(t, required), f.want): // there was no n-th call, or it was one of giving back
	case code == 4:
		if _, err := os.Lstat(required); err == nil {
			t.Errorf("%s: an output of a failed run", fault)
		}
	default:
		t.Errorf("%s: %v\n%s", fault, err, out)
	}
}

// contents is what an output holds, however its chunks are encoded.
func contents(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	n, err := clitest.Numbers(dir)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func sameContents(a, b map[string][]byte) bool { return maps.EqualFunc(a, b, bytes.Equal) }

// remains lists hidden files, which unfinished outputs are.
func remains(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") {
			names = append(names, e.Name())
		}
	}
	return names
}

// SIGTERM while the GPU works: code 143, nothing left.
func TestGPUTerminated(t *testing.T) {
	dir := t.TempDir()
	run(t, dir, "phantom", "m", "--tiles", "6,6", "--tile", "96,96,96", "-q")
	c := onGPU(t, dir, "resample", []string{"m/mosaic_grid_3d_z00.ome.zarr", "out.ome.zarr", "--require_gpu", "-q"})
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); len(remains(t, dir)) == 0 && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	if err := c.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait()
	if code := c.ProcessState.ExitCode(); code != 143 {
		t.Errorf("exit code %d", code)
	}
	if left := remains(t, dir); left != nil {
		t.Errorf("left: %v", left)
	}
	if _, err := os.Lstat(filepath.Join(dir, "out.ome.zarr")); err == nil {
		t.Error("an output of a run that was ended")
	}
}
