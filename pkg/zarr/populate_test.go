package zarr

import (
	"testing"

	"strata/pkg/mem"
)

// While a call waits, the memory of its result is provided from the beginning, to its last piece; a chunk that
// arrives ends that.
func TestPopulating(t *testing.T) {
	dst := make([]byte, populateLeast+populateBytes+1)
	dst[len(dst)-1] = 9
	var p populating
	p.populate(dst, 3)
	p.touching.Wait()
	if err := p.end(); err != nil {
		t.Fatal(err)
	}
	if mem.Populate(dst) && int(p.taken.Load()) < len(dst) {
		t.Errorf("%d bytes of %d", p.taken.Load(), len(dst))
	}
	if dst[len(dst)-1] != 9 {
		t.Error("content changed")
	}
	for name, dst := range map[string][]byte{"small": make([]byte, populateLeast-1), "over": dst} {
		var p populating
		p.over.Store(name == "over")
		p.populate(dst, 3)
		if err := p.end(); err != nil || p.taken.Load() != 0 {
			t.Errorf("%s: %d bytes, %v", name, p.taken.Load(), err)
		}
	}
	var none *turns
	none.arrived() // calls that do not wait have none
}
