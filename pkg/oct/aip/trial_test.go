//go:build !nocuda

package aip

import (
	"sort"
	"testing"

	"strata/pkg/gpu/trial"
	"strata/pkg/oct"
	"strata/pkg/zarr/codec"
	"strata/pkg/zarr/store"
	"strata/pkg/zarr/zarrgpu"
	"strata/tests/octtest"
)

// TestTrialNeedsNoMoreMemory: where both ways are tried, the host's decoders count under --mem, but the least of it
// that is enough without a trial is enough with one.
func TestTrialNeedsNoMoreMemory(t *testing.T) {
	in := folder(t, []int{16, 512, 1024}, []int{1, 512, 512}, nil, codec.Chain{codec.Zstd(1, false)})
	d := octtest.Device(t, 256<<20)
	run := func(mem int64, tries int) (*zarrgpu.Counts, *trial.Book, error) {
		res := oct.Resources{Workers: 1, Mem: mem, Device: d, Trials: trial.New(tries, 1), Ways: new(zarrgpu.Counts)}
		_, err := Run(octtest.Ctx, in, store.Memory(), oct.Layout{Codec: "raw"}, nil, res)
		return res.Ways, res.Trials, err
	}
	const step = 64 << 10
	least := int64(sort.Search(64<<20/step, func(i int) bool {
		_, _, err := run(int64(i+1)*step, 0)
		return err == nil
	})+1) * step
	for mem := least; mem < least+2<<20; mem += 4 * step {
		if ways, _, err := run(mem, 1); err != nil || ways.Bytes(zarrgpu.NVComp) == 0 {
			t.Errorf("%d bytes are enough, with a trial %d: %v", least, mem, err)
		}
	}
	ways, _, err := run(64<<20, 1)
	if err != nil || ways.Bytes(zarrgpu.Host) == 0 || ways.Bytes(zarrgpu.NVComp) == 0 {
		t.Errorf("with enough memory %d bytes came by the host, %d by nvCOMP: %v", ways.Bytes(zarrgpu.Host), ways.Bytes(zarrgpu.NVComp), err)
	}
}
