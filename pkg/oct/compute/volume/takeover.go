package volume

import (
	"context"
	"errors"

	"strata/pkg/dtype"
	"strata/pkg/oct"
)

// TakeOver opens a memory on the device of res that continues a volume which from, a memory on the host, has begun; it
// closes from. planes are the planes of the volume that are not written yet. moved are the same planes on the device; a
// zero [Plane] remains a zero Plane. All other planes must have been given back.
//
// During the move, host memory holds the planes of from and the page-locked buffers of the device. After an error, from
// is unchanged.
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
