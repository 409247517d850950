package stage

import (
	"errors"
	"fmt"
	"syscall"
	"testing"

	"strata/pkg/cli"
	"strata/pkg/gpu"
	"strata/pkg/gpu/nvcomp"
	"strata/pkg/oct"
	"strata/pkg/zarr"
	"strata/pkg/zarr/zarrgpu"
)

// The exit code says whose fault an error is, whatever it is wrapped in.
func TestFailed(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want int
	}{
		"layout":                    {fmt.Errorf("x: %w", oct.ErrLayout), cli.ExitUsage},
		"input":                     {fmt.Errorf("x: %w", oct.ErrInput), cli.ExitBadInput},
		"format":                    {fmt.Errorf("x: %w", &zarr.FormatError{Path: "a", Err: errors.New("bad")}), cli.ExitBadInput},
		"disk":                      {fmt.Errorf("x: %w", syscall.EIO), cli.ExitFailed},
		"disk, in a chunk":          {&zarr.FormatError{Path: "a", Err: syscall.EIO}, cli.ExitFailed},
		"device":                    {fmt.Errorf("x: %w", &gpu.Error{Call: "cuLaunchKernel", Code: 700}), cli.ExitGPU},
		"backend":                   {fmt.Errorf("x: %w", &zarrgpu.BackendError{Backend: "gds", Reason: "no", Err: errors.New("no")}), cli.ExitUsage},
		"backend, disk":             {&zarrgpu.BackendError{Backend: "gds", Reason: "no", Err: fmt.Errorf("x: %w", syscall.EIO)}, cli.ExitFailed},
		"layout, disk":              {fmt.Errorf("%w: %w", oct.ErrLayout, syscall.ENOSPC), cli.ExitFailed},
		"backend on a broken GPU":   {&zarrgpu.BackendError{Backend: "nvcomp", Reason: "no", Err: &gpu.Error{Call: "cuCtxSynchronize", Code: 700}}, cli.ExitGPU},
		"backend, nvCOMP's failure": {&zarrgpu.BackendError{Backend: "nvcomp", Reason: "no", Err: fmt.Errorf("x: %w", &nvcomp.Error{Call: "c", Code: 11})}, cli.ExitGPU},
	} {
		if got := cli.ExitCode(Failed(c.err)); got != c.want {
			t.Errorf("%s: exit code %d, want %d", name, got, c.want)
		}
	}
}

// Page-locked memory is an eighth of what there is, of the control group or the machine, and no more than 4 GiB.
func TestPinnedMemory(t *testing.T) {
	group := func(n int64) *int64 { return &n }
	for _, c := range []struct {
		group         *int64
		machine, want int64
	}{
		{nil, 0, 4 << 30},
		{nil, 512 << 30, 4 << 30},
		{nil, 16 << 30, 2 << 30},
		{group(8 << 30), 512 << 30, 1 << 30},
		{group(512 << 30), 16 << 30, 2 << 30},
	} {
		if got := pinnedMemory(c.group, c.machine); got != c.want {
			t.Errorf("%v of %d: %d, want %d", c.group, c.machine, got, c.want)
		}
	}
}
