package stack

import (
	"context"
	"fmt"
	"math"

	"strata/pkg/filter"
	"strata/pkg/filter/bspline"
	"strata/pkg/oct"
	"strata/pkg/oct/stack/tables"
)

// RepairShifts selects what happens to recorded shifts that the slices contradict.
type RepairShifts string

// Values of RepairShifts.
const (
	RepairOff  RepairShifts = "off"  // no check
	RepairWarn RepairShifts = "warn" // warn
	RepairFix  RepairShifts = "fix"  // warn, and use the shifts found in the pictures
)

// Repairs lists all values of [RepairShifts].
var Repairs = []string{string(RepairOff), string(RepairWarn), string(RepairFix)}

const (
	pictureUM     = 10   // approximate size of a picture's pixels
	pictureMost   = 1024 // maximum number of pixels along an axis: larger slices get larger pixels
	picturePlanes = 8    // number of planes averaged in a picture
	contrastUM    = 200  // size of the local mean that is divided out of pictures

	// pictureLeast is the correlation from which a picture's displacement is accepted. To override the recorded one,
	// it must correlate by pictureMore more. Phantoms reach 0.94 to 0.99 where they belong and less than 0.01 half a
	// millimetre away; tissue changes more from slice to slice.
	pictureLeast = 0.12
	pictureMore  = 0.08
	// pictureChance is the number of standard deviations above which a correlation is not accidental; they shrink with
	// the area, of which a twelfth of the pixels count as independent.
	pictureChance = 6
	// contradictionUM is the distance from which two displacements contradict each other: motors err by some
	// micrometres, and cut tissue bends.
	contradictionUM = 30
)

// displacement is the position (y, x) in pixels of a moving slice relative to the fixed one: point p of the moving
// slice lies at p + displacement in the fixed one.
type displacement struct {
	recorded, found [2]float64
	at, best        float64 // correlations
	least           float64 // minimum of an acceptable best; 0: there were no pictures to compare
}

// believed returns the displacement at which planes are compared.
func (d *displacement) believed() [2]float64 {
	if d.shown() && d.best >= d.at {
		return d.found
	}
	return d.recorded
}

// shown reports whether the pictures reliably show the slice's position.
func (d *displacement) shown() bool { return d.least > 0 && d.best >= d.least }

// contradicts reports whether the pictures clearly contradict the recorded displacement.
func (d *displacement) contradicts(voxel [3]float64) bool {
	far := math.Hypot((d.found[0]-d.recorded[0])*voxel[1], (d.found[1]-d.recorded[1])*voxel[2])
	return d.shown() && d.best >= d.at+pictureMore && far > contradictionUM
}

// pictureBin returns how many pixels (y, x) of the slices form one pixel of a picture.
func (p *stackPlan) pictureBin() (bin [2]int) {
	for d := range bin {
		longest := 0
		for _, s := range p.slices {
			longest = max(longest, s.shape[d+1])
		}
		bin[d] = max(micrometres(pictureUM, p.slices[0].voxel[d+1]), (longest+pictureMost-1)/pictureMost)
	}
	return bin
}

// compare finds the displacements of all pairs from pictures of their ends: planes in the middle of the expected
// overlap.
func (s *surveyor) compare(ctx context.Context) error {
	bin := s.plan.pictureBin()
	phase := filter.NewPhase()
	for _, m := range s.plan.moving {
		d := &m.displaced
		d.recorded = s.plan.displaced(m)
		d.found = d.recorded
		overlap := m.expected
		if m.search == nil {
			overlap = m.overlap
		}
		overlap = min(overlap, m.slice.shape[0]-m.movingZ, m.fixed.shape[0])
		if overlap < 1 {
			s.chooseTiles(m, filter.Picture{}, filter.Picture{}, bin)
			continue
		}
		n := min(overlap, picturePlanes)
		first := (overlap - n) / 2
		fixed, err := s.picture(ctx, m.fixed, m.fixed.shape[0]-overlap+first, n, bin, nil)
		if err != nil {
			return err
		}
		moving, err := s.picture(ctx, m.slice, m.movingZ+first, n, bin, m.motion())
		if err != nil {
			return err
		}
		d.pictures(phase, fixed, moving, bin)
		s.chooseTiles(m, fixed, moving, bin)
	}
	return nil
}

// picture returns the mean of n planes of a slice, reduced in size, resampled by its transform and relative to its
// local mean.
func (s *surveyor) picture(ctx context.Context, of *stackSlice, first, n int, bin [2]int, turn *bspline.Motion) (filter.Picture, error) {
	p := filter.Picture{NY: of.shape[1] / bin[0], NX: of.shape[2] / bin[1]}
	if p.NY == 0 || p.NX == 0 {
		return filter.Picture{}, nil
	}
	sums := make([]float64, p.NY*p.NX)
	strip := max(1, of.chunk[1]/bin[0]) // rows of the picture
	planes := make([][]float32, n)
	for y := 0; y < p.NY; y += strip {
		h := min(strip, p.NY-y)
		start, shape := [3]int{first, y * bin[0], 0}, [3]int{n, h * bin[0], p.NX * bin[1]}
		err := s.planes(ctx, of, start, shape, func(z int, v []float32) error {
			planes[z] = filter.Binned(planes[z], v, shape[1], shape[2], bin)
			return nil
		})
		if err != nil {
			return p, err
		}
		for _, v := range planes {
			filter.AddPlanes(sums[y*p.NX:][:h*p.NX], v[:h*p.NX])
		}
	}
	p.V = make([]float32, p.NY*p.NX)
	filter.Mean(p.V, sums, n)
	if turn != nil {
		p.V = turn.Binned(bin).Resample(p.V, p.NY, p.NX, [2]int{})
	}
	filter.LocalContrast(p.V, p.V, p.NY, p.NX, micrometres(contrastUM, of.voxel[1]*float64(bin[0]))|1)
	return p, nil
}

// pictures finds the displacement at which two pictures match.
func (d *displacement) pictures(phase *filter.Phase, fixed, moving filter.Picture, bin [2]int) {
	if len(fixed.V) == 0 || len(moving.V) == 0 {
		return
	}
	ny, nx := max(fixed.NY, moving.NY), max(fixed.NX, moving.NX)
	match := phase.Match(fixed.Within(ny, nx), moving.Within(ny, nx), ny, nx)
	at := [2]int{match.DY, match.DX}
	d.at = fixed.CorrelationAt(moving, [2]int{int(math.Round(d.recorded[0] / float64(bin[0]))), int(math.Round(d.recorded[1] / float64(bin[1])))})
	d.best = fixed.CorrelationAt(moving, at)
	rest := [2]float64{}
	a, b, h, w := fixed.Common(moving, at)
	if h > 0 {
		d.least = max(pictureLeast, pictureChance/math.Sqrt(float64(h*w)/12))
		if fit, ok := phase.SubPixel(a, b, h, w); ok && fit.Peak {
			rest = [2]float64{fit.DY, fit.DX}
		}
	}
	for k := range 2 {
		d.found[k] = (float64(at[k]) + rest[k]) * float64(bin[k])
	}
}

// displaced returns the recorded displacement (y, x) of a slice from the one before it.
func (p *stackPlan) displaced(m *movingSlice) [2]float64 {
	a, b := p.position[m.fixed.id], p.position[m.slice.id]
	return [2]float64{b[1] - a[1], b[0] - a[0]}
}

// repair warns about recorded shifts that the pictures contradict. With [RepairFix], it also moves the slice and
// all after it to the positions that the pictures show.
func (p *stackPlan) repair(res *oct.Resources) {
	if p.opt.RepairShifts == RepairOff {
		return
	}
	var moved [2]float64 // (x, y)
	for _, m := range p.moving {
		d := &m.displaced
		shift := tables.Shift{FixedID: m.fixed.id, MovingID: m.slice.id, AtRecorded: d.at, AtFound: d.best, Contradicted: d.contradicts(m.slice.voxel)}
		for k := range 2 {
			mm := m.slice.voxel[2-k] / 1000
			shift.Recorded[k], shift.Found[k] = d.recorded[1-k]*mm, d.found[1-k]*mm
		}
		if shift.Contradicted {
			what := "the recorded shift is used (--repair_shifts fix uses the other)"
			if p.opt.RepairShifts == RepairFix {
				what, shift.Repaired = "that is used", true
				p.centred = true // also slices that shared a frame
				moved[0] += d.found[1] - d.recorded[1]
				moved[1] += d.found[0] - d.recorded[0]
			}
			res.Warnf("slices %d and %d: recorded %s apart, where their pictures correlate by %.2f; they show %s, where they correlate by %.2f: %s",
				m.fixed.id, m.slice.id, millimetres(shift.Recorded), d.at, millimetres(shift.Found), d.best, what)
		}
		p.shifted = append(p.shifted, shift)
		at := p.position[m.slice.id]
		p.position[m.slice.id] = [2]float64{at[0] + moved[0], at[1] + moved[1]}
	}
}

func millimetres(v [2]float64) string { return fmt.Sprintf("(%.3f, %.3f) mm", v[0], v[1]) }
