package crop

import (
	"context"
	"errors"
	"fmt"

	"strata/pkg/oct"
	"strata/pkg/oct/compute"
)

// percentile returns the magnitude at which the search clips.
func (p *cropper) percentile(ctx context.Context) (value float32, err error) {
	m, res := p.Mosaic, p.res
	source, err := compute.NewSource(m, &res, res.Meter)
	if err != nil {
		return 0, err
	}
	q, err := source.NewPercentile(p.c.PercentileMax)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, q.Close()) }()
	side := func() compute.Side[oct.Rectangle, compute.Counter] {
		return p.counting(source, q, res.Mem-q.HostBytes())
	}
	if q.Looks() {
		ny, nx := m.Tiles()
		res.Progress = nil
		s := side()
		if err := compute.Run(ctx, s.Plan, compute.Each([]oct.Rectangle{m.Extent(ny/2, nx/2)}), s.Do); err != nil {
			return 0, err
		}
		res.Progress = p.res.Progress
	}
	for {
		more, err := q.Begin()
		if err != nil {
			return 0, err
		}
		if !more {
			p.nonFinite.Store(q.NonFinite())
			return q.Value(), nil
		}
		s := side()
		if q.Joins() {
			err = p.countBoth(ctx, q, s)
		} else {
			err = compute.Run(ctx, s.Plan, m.EachTile(), s.Do)
		}
		if err != nil {
			return 0, err
		}
		res.Progress = nil // of further passes
	}
}

// counting returns what host or device contributes to the count of all magnitudes, within mem bytes of host memory.
func (p *cropper) counting(source *compute.Source, q *compute.Percentile, mem int64) compute.Side[oct.Rectangle, compute.Counter] {
	return compute.Side[oct.Rectangle, compute.Counter]{
		Plan: &compute.Plan{What: fmt.Sprintf("cropping tiles of %v voxels", p.Mosaic.Tile()), Source: source, Memory: compute.Memory{Host: mem}, Operator: q},
		Do: func(w compute.Counter, tile oct.Rectangle) {
			for _, part := range source.Parts(tile) {
				w.Stream(part, func(_, _ int, planes compute.Block) { w.Count(planes) })
			}
		},
	}
}

// countBoth counts all magnitudes on the host and on a device that joins it.
func (p *cropper) countBoth(ctx context.Context, q *compute.Percentile, host compute.Side[oct.Rectangle, compute.Counter]) (err error) {
	var device *compute.Percentile
	defer func() {
		if device != nil {
			err = errors.Join(err, device.Close())
		}
	}()
	m := p.Mosaic
	ny, nx := m.Tiles()
	err = compute.RunBoth(ctx, host, ny*nx, m.EachTile(), func(res oct.Resources, mem int64) (side compute.Side[oct.Rectangle, compute.Counter], err error) {
		source, err := compute.NewSource(m, &res, res.Meter)
		if err != nil {
			return side, err
		}
		if device, err = q.Join(source); err != nil {
			return side, err
		}
		return p.counting(source, device, mem), nil
	})
	if err != nil || device == nil {
		return err
	}
	return q.Merge(device)
}
