package bias

import (
	"context"
	"fmt"
	"math"
	"sync"

	"strata/pkg/filter"
	"strata/pkg/oct"
)

// survey makes two passes over the volume: for the thresholds of the mask, then for the mask, the histograms and the
// samples.
func (p *plan) survey(ctx context.Context) error {
	var mu sync.Mutex
	sketches := make([]*filter.OtsuSketch, len(p.sections))
	for i := range sketches {
		sketches[i] = filter.NewOtsuSketch()
	}
	err := p.visit(ctx, visitor{
		raw: func(_, _ int, plane []float32) {
			_, high, _ := filter.PositiveRange(plane)
			mu.Lock()
			defer mu.Unlock()
			p.high = max(p.high, high)
		},
		smooth: func(_, z int, plane []float32) error {
			mu.Lock() // counting is cheap beside smoothing
			defer mu.Unlock()
			sketches[p.sectionOf(z)].Add(plane)
			return nil
		},
	})
	if err != nil {
		return err
	}
	if err := p.findThresholds(sketches); err != nil {
		return err
	}
	p.mask.planes, p.histograms = make([]runs, p.Shape[0]), make([]profile, p.Shape[0])
	p.samples.alloc()
	masks := make([]*filter.BitPlane, p.workers)
	limits := p.bins()
	err = p.visit(ctx, visitor{
		raw: func(_, z int, plane []float32) {
			p.res.Meter.AddNonFinite(filter.CountNonFinite(plane))
			p.histograms[z] = limits.count(plane, float32(p.opt.Threshold))
			p.samples.take(z, plane, p.Shape[2])
		},
		smooth: func(worker, z int, plane []float32) error {
			if masks[worker] == nil {
				masks[worker] = filter.NewBitPlane(p.Shape[1], p.Shape[2])
			}
			return p.segment(masks[worker], z, plane)
		},
	})
	if err != nil {
		return err
	}
	if len(p.sections) > 1 {
		p.mask.closeAlongZ()
	}
	if p.mask.coverage() == 0 {
		return oct.BadInput("%s: no tissue found: nothing is brighter than its surroundings over more than a few voxels", p.Where)
	}
	p.match()
	return nil
}

// planMemory decides how many planes are in memory at a time, and refuses volumes that do not fit.
func (p *plan) planMemory(w *writers) error {
	p.samples = newSamples(p)
	plane := 4 * int64(p.area)
	levels := int64(len(p.sections))
	held := p.samples.bytes() + 16*2*int64(p.opt.Bins)*int64(p.Shape[0]) + 8*int64(p.opt.Bins)*int64(p.Shape[0]) +
		levels*filter.OtsuSketchBytes
	p.mask.most = p.res.Mem / 16
	left := p.res.Mem - held - 2*p.mask.most
	fit := p.fields.bytes(p)
	mask, scratch := filter.BitPlaneBytes(p.Shape[1], p.Shape[2])
	smoothing := filter.SeparableBytes(p.Shape[1], p.Shape[2], len(taps(p.opt.MaskSigma)))
	survey := func(layer, workers int) int64 {
		each := 2*plane + smoothing + mask + scratch // a smoothed plane, its mask as runs and as bits
		return p.LayerBytes(layer, workers) + int64(layer+2*reach)*plane + int64(workers)*each
	}
	p.workers, p.layer = max(1, p.res.Workers), p.Chunk[0]
	for survey(p.layer, p.workers) > left && p.layer > min(p.Chunk[0], max(8, p.workers)) {
		p.layer--
	}
	for survey(p.layer, p.workers) > left && p.workers > 1 {
		p.workers--
	}
	for survey(p.layer, p.workers) > left && p.layer > 1 {
		p.layer--
	}
	need := max(survey(p.layer, p.workers), fit, w.bytes(p, w.batch))
	if need > left {
		return p.res.TooLittle(p.res.Mem-left+need, "%s: correcting planes of %d × %d voxels with every %d-th voxel in memory (a larger --shrink_factor needs less)",
			p.Where, p.Shape[1], p.Shape[2], p.opt.Shrink)
	}
	for w.layer = w.batch; w.layer < p.Chunk[0] && w.bytes(p, w.layer+w.batch) <= left; {
		w.layer += w.batch
	}
	all := p.res.ForAll(survey(min(p.layer, max(8, p.res.Workers)), p.res.Busy(p.Shape[0])), left)
	p.res.Crew(oct.Team{What: fmt.Sprintf("%d planes at a time to survey, %d to correct, %d MiB of samples", p.layer, w.layer, p.samples.bytes()>>20),
		Workers: p.workers, Pieces: p.Shape[0], Each: survey(0, 1) - 2*reach*plane, All: all})
	p.res.Mem = max(left-need, 1) // what Hold may use half of
	return nil
}

// capped returns a product of sizes as int64, at most half of the largest.
func capped(v float64) int64 { return int64(min(v, math.MaxInt64/4)) }
