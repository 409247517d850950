package oct

import (
	"testing"
	"time"

	"strata/pkg/gpu"
)

// TestComingPass: the device of a pass is the one that comes, whenever that is known; only the CPU's time is shorter.
func TestComingPass(t *testing.T) {
	c := NewComing(time.Second, 2*time.Second, 6*time.Second)
	before := c.Pass(3)
	d := new(gpu.Device)
	c.Settle(func(r *Resources) { r.Device = d })
	for _, pass := range []*Coming{before, c.Pass(3)} {
		<-pass.Known()
		res, there := Resources{Coming: pass}.WithDevice()
		if !there || res.Device != d || pass.First != time.Second || pass.Piece != 2*time.Second || pass.Alone != 2*time.Second {
			t.Errorf("a device is there: %v; %+v", there, pass)
		}
	}
	if (*Coming)(nil).Pass(2) != nil {
		t.Error("a device of none")
	}
}
