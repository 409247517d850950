package volume

import (
	"time"

	"strata/pkg/dtype"
	"strata/pkg/filter"
	"strata/pkg/gpu/kernels"
	"strata/pkg/meter"
	"strata/pkg/oct"
)

// averager averages planes, with the same bits on every machine.
type averager interface {
	// Means starts averaging two sets of planes over the given part of them.
	Means(part oct.Rectangle) Means
}

// Means averages two sets of planes.
type Means interface {
	// Add adds the same number of planes to both sets.
	Add(fixed, moving []Plane)
	// Values returns the mean planes on the host, without gaps between rows, or nil after an error. They are valid
	// until other means begin.
	Values() (fixed, moving []float32)
}

type hostMeans struct {
	*host
	part oct.Rectangle
	sums [2][]float64
	n    int
}

func (h *host) Means(part oct.Rectangle) Means {
	n := part.Area()
	return &hostMeans{host: h, part: part, sums: [2][]float64{make([]float64, n), make([]float64, n)}}
}

func (m *hostMeans) Add(fixed, moving []Plane) {
	r := m.part
	width := r.Width()
	m.n += len(fixed)
	m.try(func() error {
		return m.each(r.Height(), len(m.own), func(_ *growing, y int) error {
			start := time.Now()
			for i, set := range [2][]Plane{fixed, moving} {
				for _, p := range set {
					filter.AddPlanes(m.sums[i][y*width:(y+1)*width], p.row(r.Y0+y, r.X0, r.X1))
				}
			}
			m.res.Meter.Since(meter.Compute, start)
			return nil
		})
	})
}

func (m *hostMeans) Values() (fixed, moving []float32) {
	if m.err != nil {
		return nil, nil
	}
	start := time.Now()
	defer m.res.Meter.Since(meter.Compute, start)
	var mean [2][]float32
	for i := range mean {
		mean[i] = make([]float32, len(m.sums[i]))
		filter.Mean(mean[i], m.sums[i], m.n)
	}
	return mean[0], mean[1]
}

type deviceMeans struct {
	*device
	part oct.Rectangle
	n    int
}

func (d *device) Means(part oct.Rectangle) Means { return &deviceMeans{device: d, part: part} }

func (m *deviceMeans) Add(fixed, moving []Plane) {
	r := m.part
	for i, set := range [2][]Plane{fixed, moving} {
		m.try(func() error {
			return eachRun(set, r.Y0, r.X0, func(first, n int, at kernels.Planes) error {
				return kernels.SumPlanes(m.worker.Stream, m.sums[i], at, n, r.Height(), r.Width(), m.n+first == 0)
			})
		})
	}
	m.n += len(fixed)
}

func (m *deviceMeans) Values() (fixed, moving []float32) {
	n := int64(m.part.Area())
	var mean [2][]float32
	m.try(func() error {
		for i := range mean {
			if err := kernels.Mean(m.worker.Stream, m.mean, m.sums[i], m.n, n); err != nil {
				return err
			}
			m.worker.Stream.Download(m.means[i][:4*n], m.mean)
			mean[i] = dtype.Slice[float32](m.means[i][:4*n])
		}
		return m.wait()
	})
	if m.err != nil {
		return nil, nil
	}
	return mean[0], mean[1]
}
