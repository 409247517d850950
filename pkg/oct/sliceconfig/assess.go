package sliceconfig

import (
	"context"
	"fmt"
	"math"
	"slices"

	"strata/pkg/dtype"
	"strata/pkg/mem"
	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/units"
)

// AssessOptions are the options of [Assess].
type AssessOptions struct {
	Depth int   // planes of each two slices that are compared
	Level int   // of the pyramid
	ROI   int   // width in pixels of the square in the middle of the planes that is compared; 0: whole planes
	Apart []int // IDs of slices that are compared with none
}

// DefaultAssessOptions returns the defaults.
func DefaultAssessOptions() AssessOptions { return AssessOptions{Depth: 5} }

// Slice is a slice to assess.
type Slice struct {
	ID    int
	Image *ngff.Image
}

// Score says how much a slice resembles its neighbours. All but Depth are 0 if it is not Judged.
type Score struct {
	ID      int
	Depth   int  // planes
	HasData bool // or else it is empty or constant
	Judged  bool // or else there is no slice with data to compare it with
	// SSIM is the mean structural similarity to the neighbours, Edge the correlation of edges (0 to 1), and Variance 1
	// if the values vary as much as the neighbours' (0 to 1). Quality is 0.5·SSIM + 0.3·Edge + 0.2·Variance.
	SSIM, Edge, Variance, Quality float64
}

// Assess compares slices, which are in order, with the nearest slice with data before and after each. It reads single
// planes.
func Assess(ctx context.Context, in []Slice, o AssessOptions, res oct.Resources) ([]Score, error) {
	a, err := newAssessor(in, o, res, 0)
	if err != nil {
		return nil, err
	}
	defer a.pool.Close()
	scores := make([]Score, len(in))
	var variances []float64 // of all slices so far
	var similar []float64   // of each two neighbours so far
	var data []int          // slices with data so far
	judged := 0             // of these
	for from := 0; from < len(in); from += a.together {
		to := min(from+a.together, len(in))
		facts, err := a.facts(ctx, from, to)
		if err != nil {
			return nil, err
		}
		for i, f := range facts {
			s := &scores[from+i]
			s.ID, s.Depth, s.HasData = in[from+i].ID, a.views[from+i].Shape[0], f.hasData
			if variances = append(variances, f.variance); f.hasData && !slices.Contains(o.Apart, in[from+i].ID) {
				data = append(data, from+i)
			}
		}
		more, err := a.similarities(ctx, data[min(len(similar), len(data)):])
		if err != nil {
			return nil, err
		}
		similar = append(similar, more...)
		ready := len(data) // of which both neighbours are known
		if to < len(in) {
			ready = max(ready-1, judged)
		}
		if err := a.each(ctx, ready-judged, func(b *buffers, k int) error {
			return a.judge(ctx, b, scores, data, judged+k, similar, variances)
		}); err != nil {
			return nil, err
		}
		if judged = ready; judged > 0 {
			a.drop(data[judged-1])
		}
	}
	return scores, nil
}

// judge completes the score of data[k].
func (a *assessor) judge(ctx context.Context, b *buffers, scores []Score, data []int, k int, similar, variances []float64) (err error) {
	s := &scores[data[k]]
	var near []int
	var similarity, variance float64
	if k > 0 {
		near, similarity = append(near, data[k-1]), similar[k-1]
	}
	if k+1 < len(data) {
		near, similarity = append(near, data[k+1]), similarity+similar[k]
	}
	if len(near) == 0 {
		return nil
	}
	for _, i := range near {
		variance += variances[i]
	}
	n := float64(len(near))
	s.Judged, s.SSIM, s.Variance = true, similarity/n, likeness(variances[data[k]], variance/n)
	if s.Edge, err = a.edges(ctx, b, data[k], near); err != nil {
		return err
	}
	s.Quality = float64(0.5*s.SSIM) + float64(0.3*s.Edge) + float64(0.2*s.Variance)
	return nil
}

// likeness returns 1 if two variances are equal within a factor of e, and less the more they differ.
func likeness(v, reference float64) float64 {
	if reference <= 0 {
		return 0
	}
	return min(1, max(0, 2/(1+math.Abs(math.Log(v/reference+1e-10)))))
}

// assessor reads planes of slices.
type assessor struct {
	options AssessOptions
	res     oct.Resources
	views   []*view
	planes  int   // that a worker holds
	bytes   int64 // that it needs
	area    int   // largest plane, in pixels
	element int   // bytes of the largest stored element; 0: all are float32

	workers  int
	together int // slices that are looked at before they are compared
	crew     *oct.Crew
	pool     *mem.Pool             // of planes that are kept
	kept     []map[int]*mem.Buffer // of each slice, by z, without numbers that are not finite
}

// newAssessor opens slices. Each worker needs more bytes of memory in addition to its planes.
func newAssessor(in []Slice, o AssessOptions, res oct.Resources, more int64) (*assessor, error) {
	a := &assessor{options: o, res: res}
	var scratch int64
	where := ""
	for _, s := range in {
		v, err := newView(s, o)
		if err != nil {
			return nil, err
		}
		a.views = append(a.views, v)
		chunk := mem.Product(v.DType.Size(), v.Chunk[0], v.Chunk[1], v.Chunk[2]) // with planes of several boxes
		scratch = max(scratch, int64(mem.Sum(int(v.Array.ScratchBytes(false)), chunk)))
		if n := v.size[0] * v.size[1]; n > a.area {
			a.area, where = n, v.Where
		}
		if v.DType != dtype.Float32 {
			a.element = max(a.element, v.DType.Size())
		}
	}
	need := func(planes int) int64 {
		return int64(mem.Sum(int(scratch), int(more), mem.Product(planes, a.area, 4+a.element)))
	}
	// All planes of two slices at once: a chunk is decoded once for all. If memory is short, fewer of them, then fewer
	// workers.
	for a.planes = 2 * min(max(o.Depth, 2), 64); a.planes > fewest+1 && need(a.planes) > res.Mem/int64(max(res.Workers, 1)); {
		a.planes -= 2
	}
	if a.bytes = need(a.planes); len(in) > 0 && a.bytes > res.Mem {
		return nil, res.TooLittle(a.bytes, "%s: comparing planes of %d pixels", where, a.area)
	}
	a.share()
	return a, nil
}

// share divides memory between workers and planes that are kept until both neighbours of their slice have been compared
// with it.
func (a *assessor) share() {
	a.workers = max(1, min(a.res.Workers, int(a.res.Mem/max(a.bytes, 1))))
	left := max(0, a.res.Mem-int64(a.workers)*a.bytes)
	left = min(left, a.res.Spare())
	a.pool = mem.NewPool(left)
	a.kept = make([]map[int]*mem.Buffer, len(a.views))
	slice := mem.Pooled(int64(mem.Product(4, max(a.area, 1)))) * int64(min(a.options.Depth, 1<<20)+1)
	a.together = max(a.workers, int(left/slice)-2)
	what := fmt.Sprintf("comparing %s, %d planes of %d slices", units.Count(len(a.views), "slice"), a.planes, min(a.together, len(a.views)))
	a.crew = a.res.Crew(oct.Team{What: what, Workers: a.workers, Pieces: len(a.views), Each: a.bytes, All: int64(a.res.Busy(len(a.views))) * a.bytes})
}

// keep returns memory for a plane of a slice, or nil if there is none left or it is kept already.
func (a *assessor) keep(n int) *mem.Buffer {
	b, _ := a.pool.TryGet(4 * n) // without it the plane is read again
	return b
}

// drop forgets the planes of slices before i.
func (a *assessor) drop(i int) {
	for k := range i {
		for _, b := range a.kept[k] {
			b.Release()
		}
		a.kept[k] = nil
	}
}

// each calls f for 0 to n−1 by as many workers as memory has room for, each with buffers of its own.
func (a *assessor) each(ctx context.Context, n int, f func(b *buffers, i int) error) error {
	if n == 0 {
		return nil
	}
	all := make([]*buffers, min(a.workers, n))
	return a.crew.Each(ctx, n, func(worker, i int) error {
		if all[worker] == nil {
			all[worker] = newBuffers(a.planes, a.area, a.planes*a.area*a.element)
		}
		b := all[worker]
		b.done = 0
		defer func() { a.res.Done(b.done) }()
		return f(b, i)
	})
}
