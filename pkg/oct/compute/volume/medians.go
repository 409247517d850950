package volume

import (
	"math"
	"time"

	"strata/pkg/dtype"
	"strata/pkg/filter"
	"strata/pkg/gpu"
	"strata/pkg/gpu/kernels"
	"strata/pkg/meter"
	"strata/pkg/oct"
)

// medianFinder finds medians, with the same result on every machine.
type medianFinder interface {
	// Medians begins the medians of two sets of the given number of planes.
	Medians(part oct.Rectangle, planes int) Medians
}

// Medians finds the exact medians of two sets of planes over the voxels of a part that are above 0 in both. All
// planes must be added in each pass:
//
//	for m := memory.Medians(part, n); m.Next(); {
//		m.Add(0, fixed, moving)
//	}
type Medians interface {
	// Next begins a pass. It returns false when the medians are found, or after an error.
	Next() bool
	// Add adds planes of both sets; the first has index at.
	Add(at int, fixed, moving []Plane)
	// Values returns both medians and the number of voxels that they are taken over. Without voxels the medians are 0
	// or NaN.
	Values() (n int64, fixed, moving float64)
}

const (
	// sampled is the approximate number of voxels from which a median is estimated.
	sampled = 1 << 17
	// margin is the largest distance of the median from the estimate, as a fraction of the voxels: seven standard
	// deviations.
	margin = 0.01
	// bracketed is the maximum number of voxels near the median that are kept.
	bracketed = 4 << 20
)

// hostMedians estimates the medians from a sample. One pass over all voxels then counts those below and keeps
// those near the estimate. If the sample was misleading, two passes over histograms follow.
type hostMedians struct {
	*host
	part     oct.Rectangle
	pass     int
	brackets [2][]*filter.Bracket // by plane
	guessed  bool
	exact    [2]*filter.Quantiles
	n        int64
	values   [2]float64
}

func (h *host) Medians(part oct.Rectangle, planes int) Medians {
	return &hostMedians{host: h, part: part, brackets: [2][]*filter.Bracket{make([]*filter.Bracket, planes), make([]*filter.Bracket, planes)}}
}

func (m *hostMedians) Next() bool {
	m.pass++
	switch {
	case m.err != nil:
		return false
	case m.pass == 2:
		var ok [2]bool
		for i, brackets := range m.brackets {
			m.values[i], ok[i] = filter.BracketMedian(brackets)
		}
		for _, b := range m.brackets[0] {
			m.n += b.Count()
		}
		if ok[0] && ok[1] {
			return false
		}
		m.brackets = [2][]*filter.Bracket{}
		m.exact = [2]*filter.Quantiles{filter.NewQuantiles(50), filter.NewQuantiles(50)}
	case m.pass == 3:
		m.exact[0].Refine()
		m.exact[1].Refine()
	case m.pass == 4:
		m.values = [2]float64{m.exact[0].Value(0), m.exact[1].Value(0)}
		return false
	}
	return true
}

func (m *hostMedians) Add(at int, fixed, moving []Plane) {
	if m.err == nil && m.pass == 1 && !m.guessed {
		m.guess(fixed, moving)
	}
	r := m.part
	m.try(func() error {
		return m.each(len(fixed), len(m.own), func(_ *growing, i int) error {
			start := time.Now()
			var both [2][]float32
			for y := r.Y0; y < r.Y1; y++ {
				v, w := fixed[i].row(y, r.X0, r.X1), moving[i].row(y, r.X0, r.X1)
				if m.pass == 1 {
					filter.AddCommon(v, w, m.brackets[0][at+i], m.brackets[1][at+i])
					continue
				}
				both[0], both[1] = both[0][:0], both[1][:0]
				for x, f := range v {
					if f > 0 && w[x] > 0 {
						both[0], both[1] = append(both[0], f), append(both[1], w[x])
					}
				}
				m.exact[0].Add(both[0])
				m.exact[1].Add(both[1])
			}
			m.res.Meter.Since(meter.Compute, start)
			return nil
		})
	})
}

func (m *hostMedians) Values() (n int64, fixed, moving float64) {
	return m.n, m.values[0], m.values[1]
}

// guess brackets the two medians with estimates from evenly spaced voxels.
func (m *hostMedians) guess(fixed, moving []Plane) {
	m.guessed = true
	r := m.part
	var v [2][]float32
	height, width := r.Height(), r.Width()
	total := len(fixed) * height * width
	for i := 0; i < total; i += max(1, total/sampled) {
		k, y, x := i/width/height, r.Y0+i/width%height, r.X0+i%width
		a, b := fixed[k].host[y*fixed[k].pitch+x], moving[k].host[y*moving[k].pitch+x]
		if a > 0 && b > 0 {
			v[0], v[1] = append(v[0], a), append(v[1], b)
		}
	}
	for i, brackets := range m.brackets {
		lo, hi := float32(0), float32(math.Inf(1)) // all, where there are too few to judge
		if len(v[i]) >= sampled/16 {
			q := filter.Percentiles(v[i], 50-100*margin, 50+100*margin)
			lo, hi = float32(q[0]), float32(q[1])
		}
		for j := range brackets {
			brackets[j] = &filter.Bracket{Lo: lo, Hi: hi, Cap: bracketed / len(brackets)}
		}
	}
}

// deviceMedians selects the medians digit by digit.
type deviceMedians struct {
	*device
	part oct.Rectangle
	pass int
}

func (d *device) Medians(part oct.Rectangle, _ int) Medians {
	return &deviceMedians{device: d, part: part}
}

func (m *deviceMedians) Next() bool {
	m.try(func() error {
		for _, s := range m.medians {
			if m.pass == 0 {
				s.Begin(m.worker.Stream)
			} else if err := s.Next(m.worker.Stream); err != nil {
				return err
			}
		}
		m.pass++
		if m.pass <= kernels.Passes {
			return nil
		}
		for i, v := range []gpu.Span{m.medians[0].Values, m.medians[1].Values, m.medians[0].Numbers} {
			m.worker.Stream.Download(m.numbers[8*i:8*i+8], v)
		}
		return m.wait()
	})
	return m.err == nil && m.pass <= kernels.Passes
}

func (m *deviceMedians) Add(_ int, fixed, moving []Plane) {
	m.try(func() error {
		return eachPair(fixed, moving, m.part.Y0, m.part.X0, func(_, n int, a, b kernels.Planes) error {
			if err := m.medians[0].Add(m.worker.Stream, a, b, n, m.part.Height(), m.part.Width()); err != nil {
				return err
			}
			return m.medians[1].Add(m.worker.Stream, b, a, n, m.part.Height(), m.part.Width())
		})
	})
}

func (m *deviceMedians) Values() (n int64, fixed, moving float64) {
	if m.err != nil {
		return 0, 0, 0
	}
	v := dtype.Slice[float64](m.numbers)
	return int64(dtype.Slice[uint64](m.numbers)[2]), v[0], v[1]
}
