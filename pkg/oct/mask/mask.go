// Package mask tells the specimen from what lies around it, the agarose, as a mask of a volume: voxels whose
// surroundings are brighter than Otsu's threshold, as the mask of bias-field has it, then the largest component without
// its holes.
package mask

import (
	"context"
	"fmt"
	"math"
	"sync"

	"strata/pkg/filter"
	"strata/pkg/mem"
	"strata/pkg/oct"
	"strata/pkg/oct/blocks"
)

// Options are the parameters of [Find].
type Options struct {
	Smoothing float64 // standard deviation in µm of the Gaussian before the threshold; 0: none
	Threshold float64 // of the smoothed voxels; NaN: Otsu's, of those above 0
	Largest   bool    // keep only the largest component
	Fill      Fill
	Median    int // side of the window in voxels of a median of the mask, odd; 1: none
}

// Fill says which holes are filled.
type Fill string

const (
	NoHoles Fill = "none"
	Volume  Fill = "volume" // what is enclosed in the volume
	Planes  Fill = "planes" // also what is enclosed in a plane across any axis, as linumpy fills
)

// Result holds what was found.
type Result struct {
	filter.Mask
	Threshold  float64
	Count      int64 // voxels in the mask
	Components int   // that there were, if only the largest was kept
}

// Find returns the mask of a volume. It reads the volume twice, in whole planes, and once with a threshold that is
// given. A voxel that is not finite counts as 0. Errors wrap [oct.ErrInput] where there is no mask.
func Find(ctx context.Context, v *blocks.Volume, o Options, res oct.Resources) (*Result, error) {
	r := &Result{Mask: filter.Mask{Shape: v.Shape}, Threshold: o.Threshold}
	voxels := mem.Product(v.Shape[0], v.Shape[1], v.Shape[2])
	held := int64(voxels)
	if o.Median > 1 {
		held *= 2
	}
	s, err := newSmoother(v, o.Smoothing, held, res)
	if err != nil {
		return nil, err
	}
	if math.IsNaN(o.Threshold) {
		if err := r.findThreshold(ctx, s); err != nil {
			return nil, err
		}
	}
	r.Voxels = make([]uint8, voxels)
	area := v.Shape[1] * v.Shape[2]
	err = s.visit(ctx, func(_, z int, plane []float32) error {
		out := r.Voxels[z*area:][:area]
		for i, f := range plane {
			if float64(f) >= r.Threshold {
				out[i] = 1
			}
		}
		return nil
	})
	if err == nil {
		err = r.tidy(ctx, v, o, res)
	}
	if err != nil {
		return nil, err
	}
	if r.Count = r.Mask.Count(); r.Count == 0 {
		return nil, oct.BadInput("%s: no specimen found: nothing reaches the threshold of %.6g over more than a few voxels", v.Where, r.Threshold)
	}
	return r, nil
}

// findThreshold finds Otsu's threshold of the smoothed voxels above 0.
func (r *Result) findThreshold(ctx context.Context, s *smoother) error {
	var mu sync.Mutex
	sketch := filter.NewOtsuSketch()
	err := s.visit(ctx, func(_, _ int, plane []float32) error {
		mu.Lock() // counting is cheap beside smoothing
		defer mu.Unlock()
		sketch.Add(plane)
		return nil
	})
	if err != nil {
		return err
	}
	t, ok := sketch.Threshold()
	if !ok {
		return oct.BadInput("%s: the voxels above 0 have one value: no threshold separates a specimen from what lies around it", s.Where)
	}
	r.Threshold = t
	return nil
}

// tidy keeps the largest component and fills holes.
func (r *Result) tidy(ctx context.Context, v *blocks.Volume, o Options, res oct.Resources) error {
	m := &r.Mask
	for _, value := range []uint8{0, 1} {
		if need := m.Runs(value) * filter.RunBytes; need > res.Mem-2*int64(len(m.Voxels)) || need/filter.RunBytes > math.MaxInt32 {
			return res.TooLittle(need+2*int64(len(m.Voxels)), "%s: a mask as ragged as this one (more --smoothing makes it smoother, a coarser level smaller)", v.Where)
		}
	}
	if o.Largest {
		r.Components = m.KeepLargest()
	}
	if o.Fill != NoHoles {
		m.FillHoles()
	}
	if o.Fill == Planes {
		for axis := range 3 {
			if err := fillPlanes(ctx, m, axis); err != nil {
				return err
			}
		}
		m.FillHoles()
	}
	if o.Median > 1 {
		m.Median(o.Median, make([]uint8, len(m.Voxels)))
	}
	return ctx.Err()
}

// fillPlanes fills holes in each plane across an axis.
func fillPlanes(ctx context.Context, m *filter.Mask, axis int) error {
	strides := [3]int{m.Shape[1] * m.Shape[2], m.Shape[2], 1}
	along, across := (axis+1)%3, (axis+2)%3
	if along > across {
		along, across = across, along
	}
	ny, nx := m.Shape[along], m.Shape[across]
	plane := filter.Mask{Voxels: make([]uint8, ny*nx), Shape: [3]int{1, ny, nx}}
	for k := range m.Shape[axis] {
		if err := ctx.Err(); err != nil {
			return err
		}
		each := func(f func(in, out *uint8)) {
			for y := range ny {
				at := k*strides[axis] + y*strides[along]
				for x := range nx {
					f(&m.Voxels[at+x*strides[across]], &plane.Voxels[y*nx+x])
				}
			}
		}
		each(func(in, out *uint8) { *out = *in })
		plane.FillHoles()
		each(func(in, out *uint8) { *in = *out })
	}
	return nil
}

// String says in a line what was found.
func (r *Result) String() string {
	text := fmt.Sprintf("%.3g %% of the voxels are specimen, threshold %.6g", 100*float64(r.Count)/float64(len(r.Voxels)), r.Threshold)
	switch {
	case r.Components == 2:
		text += ", one smaller component left out"
	case r.Components > 2:
		text += fmt.Sprintf(", %d smaller components left out", r.Components-1)
	}
	return text
}
