package stack

import (
	"context"
	"time"

	"strata/pkg/oct"
	"strata/pkg/oct/compute/transfer"
	"strata/pkg/oct/compute/volume"
)

// place is the memory in which slices meet. A stack that begins on the host moves to a device that becomes available.
type place struct {
	volume.Memory
	ctx     context.Context
	sources []*volume.Source
	res     *oct.Resources
	began   time.Time // the assembly
}

// newPlace opens the memory for slices. The caller must Close it.
func newPlace(ctx context.Context, p *stackPlan, res *oct.Resources) (m *place, err error) {
	m = &place{ctx: ctx, res: res}
	for _, s := range p.slices {
		m.sources = append(m.sources, s.source)
	}
	m.Memory, err = volume.Open(ctx, m.sources, res)
	return m, err
}

// join moves the assembly to the device if it has come by now, before plane z of the canvas is placed. It returns the
// window of planes there. A device with too little memory does not join, with a warning, nor does one that comes when
// the host is about to end.
func (m *place) join(z, depth int, window []volume.Plane) ([]volume.Plane, error) {
	coming := m.res.Coming
	select {
	case <-coming.Known():
	default: // or none is on its way
		return window, nil
	}
	res, there := m.res.WithDevice()
	m.res.Coming = nil
	if !there || coming.Late(z, depth, time.Since(m.began)) {
		return window, nil
	}
	mem, moved, err := volume.TakeOver(m.ctx, m.Memory, m.sources, &res, window)
	if err != nil {
		return window, transfer.Unjoined(m.ctx, &res, err)
	}
	m.Memory, m.res = mem, &res
	res.Decided("the GPU goes on at plane %d of %d", z, depth)
	return moved, nil
}
