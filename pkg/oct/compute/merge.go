package compute

import (
	"errors"
	"time"

	"strata/pkg/gpu"
	"strata/pkg/meter"
	"strata/pkg/oct"
)

// mergedAtATime is the approximate number of bytes of a seam that are downloaded at a time.
const mergedAtATime = 1 << 20

// Merge copies parts of a seam from a device to a seam of the same box on the host. from is the device's side of the
// search. No worker may be gathering either. It returns false if there is no page-locked memory for a plane.
func (p *Search) Merge(to Voxels, from *Search, seam Voxels, parts []oct.Rectangle) (merged bool, err error) {
	d, kind, start := from.source.res.Device, p.source.mosaic.DType, time.Now()
	plane := int64(seam.Box.Area()) * int64(kind.Size())
	n := int(max(1, min(mergedAtATime/plane, int64(from.planes))))
	b, err := d.Host(n * int(plane))
	if errors.Is(err, gpu.ErrMemory) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer b.Release()
	s, err := d.Stream()
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	for z := 0; z < from.planes; z += n {
		n := min(n, from.planes-z)
		planes := b.B[:n*int(plane)]
		s.Download(planes, seam.block.device.From(int64(z)*plane, int64(len(planes))))
		if err := s.Wait(); err != nil {
			return false, err
		}
		for _, part := range parts {
			magnitudes[kind](p, to, z, n, planes, seam.Box, part)
		}
	}
	p.source.res.Meter.Since(meter.Compute, start)
	return true, nil
}
