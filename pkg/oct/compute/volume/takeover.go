package volume

import (
	"context"
	"errors"

	"strata/pkg/dtype"
	"strata/pkg/oct"
)

// TakeOver opens a memory on the device of res in place of one on the host that has begun a volume, and closes that.
// The device goes on with the image: planes are those of the volume that are not written yet, and moved the same on the
// device, where the zero [Plane] stays what it is. All other planes must have been given back.
//
// Host memory holds both at a time: what the device needs for that is page-locked. After an error the host's memory is
// as it was.
func TakeOver(ctx context.Context, from Memory, sources []*Source, res *oct.Resources, planes []Plane) (to Memory, moved []Plane, err error) {
	h := from.(*host)
	m, err := openDevice(ctx, sources, res)
	if err != nil {
		return nil, nil, err
	}
	d := m.(*device)
	d.begin(h.canvas, h.writer)
	moved = d.bring(planes)
	if err := d.Err(); err != nil {
		if d.writer != nil {
			d.cancel()
			d.writer.running.Wait()
			d.writer.image = nil
		}
		return nil, nil, errors.Join(err, d.Close())
	}
	h.writer = nil
	h.free()
	return d, moved, nil
}

// bring returns planes with the voxels of the host's.
func (d *device) bring(planes []Plane) (moved []Plane) {
	d.try(func() error {
		n := 0
		for _, p := range planes {
			if p.There() {
				n++
			}
		}
		if n > d.pool.free {
			return d.noMemory(d.held+4*int64(n)*int64(d.canvas.area()), d.canvas.what(n))
		}
		through := dtype.Bytes(d.writer.planes[0]) // nothing is being written yet
		for i, to := 0, d.Take(n); i < len(planes); i++ {
			if !planes[i].There() {
				moved = append(moved, Plane{})
				continue
			}
			voxels := dtype.Bytes(planes[i].host)
			for at := 0; at < len(voxels); at += len(through) {
				k := copy(through, voxels[at:])
				d.worker.Stream.Upload(to[0].device.From(int64(at), int64(k)), through[:k])
				if err := d.wait(); err != nil {
					return err
				}
			}
			moved, to = append(moved, to[0]), to[1:]
		}
		return nil
	})
	return moved
}
