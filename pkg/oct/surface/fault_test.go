//go:build !nocuda

package surface

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"testing"

	"strata/pkg/gpu"
	"strata/pkg/mem"
	"strata/pkg/oct"
	"strata/pkg/zarr/codec"
	"strata/tests/cudaemu"
	"strata/tests/gputest"
	"strata/tests/octtest"
)

// TestSharedFaults: whatever call fails while host and device share a search or bring its seams together, the depths
// are the host's or there is an error, and all memory is given back.
func TestSharedFaults(t *testing.T) {
	if os.Getenv(gputest.FaultVariable) != "" {
		sharedFault(t)
		return
	}
	cudaemu.Use(t)
	if testing.Short() {
		t.Skip("a process for each fault")
	}
	for call, numbers := range map[string][]int{
		"cuMemHostAlloc": {1}, "cuLaunchKernel": {1, 9, 30}, "cuMemcpyDtoHAsync_v2": {1, 9, 20, 36, 40}, "cuStreamCreate": {1, 3, 8, 12}, // the last in what brings seams together
	} {
		for _, n := range numbers {
			fault := fmt.Sprintf("%s:%d:700s", call, n)
			c := exec.Command(os.Args[0], "-test.run=^TestSharedFaults$", "-test.count=1", "-test.v")
			c.Env = append(os.Environ(), gputest.FaultVariable+"=CUEMU_FAIL="+fault)
			out, err := c.CombinedOutput()
			if err != nil || !bytes.Contains(out, []byte("injected in "+call)) {
				t.Errorf("%s: %v\n%s", fault, err, out)
			}
		}
	}
}

// sharedFault searches while a call fails.
func sharedFault(t *testing.T) {
	in, _ := octtest.Made(t, []int{11, 29, 41}, []int{4, 8, 10}, nil, codec.Chain{codec.Zstd(1, false)}, octtest.Uneven[uint16])
	m, err := oct.OpenMosaic(in)
	if err != nil {
		t.Fatal(err)
	}
	list, err := gpu.Devices()
	if err != nil {
		t.Fatal(err)
	}
	before := mem.InUse()
	d, err := gpu.Open(list[0], gpu.Limits{Memory: 16 << 20, Pinned: 64 << 20})
	if err != nil {
		t.Fatal(err)
	}
	s := shared{sigma: 3, mine: -1, theirs: -1}
	if err := s.run(m, d, 20); err != nil {
		t.Fatal(err)
	}
	want := slices.Clone(s.depth)
	gputest.Fault()
	err = s.run(m, d, 10)
	if closed := d.Close(); closed != nil && d.Lost() == nil {
		t.Error(closed)
	}
	if n := mem.InUse() - before; n != 0 {
		t.Errorf("%d bytes of the host were not given back", n)
	}
	var call *gpu.Error
	switch {
	case err == nil && !slices.Equal(s.depth, want):
		t.Error("other depths")
	case err != nil && !errors.As(err, &call):
		t.Errorf("the device failed, but: %v", err)
	}
}
