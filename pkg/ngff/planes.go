package ngff

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"strata/pkg/dtype"
	"strata/pkg/mem"
	"strata/pkg/work"
	"strata/pkg/zarr"
	"strata/pkg/zarr/store"
)

// PlaneWriter writes a float32 image (z, y, x) with an analysis pyramid from planes that arrive in z order,
// without holding the volume in memory. Level 0 is computed from these planes (the base), later levels from
// the stored level 0.
//
// Let f be the ratio of the voxel counts of an axis before and after. If f > 1 the axis is blurred by a
// Gaussian of sigma (f−1)/2 (truncated at 4 sigma, boundary "mirror"); then it is sampled linearly between
// voxel centres, repeating the outermost (stages specification, "OME-Zarr output and pyramids"). The passes
// go along Y, Z and X in float32, so that the numbers do not depend on workers or on how many planes come at
// a time. With [CreateMadePlanes] the caller's planes are level 0 itself. Only one goroutine at a time may
// call its methods.
type PlaneWriter struct {
	group   *zarr.Group
	attrs   map[string]any
	workers int
	shape   [3]int // of the base
	came    int    // planes of the base
	whole   bool   // level 0 is the base
	levels  []*planeLevel
	scratch []planeScratch // by worker
	failed  error
}

// planeLevel is a level under construction.
type planeLevel struct {
	array *zarr.Array
	shape [3]int
	chunk [3]int
	file  [3]int        // chunk file: shard, or chunk
	from  *planeResizer // nil: the planes are the base's

	layer  [][]float32 // planes that are made and not written
	first  int         // z of the first of them
	have   int         // how many are complete
	memory []byte
}

// CreatePlanes makes the group of an image at path and the arrays of its levels, for a base of the spec's
// Shape and Scale. levels come from [AnalysisLevels]; without any, the base itself is stored with the spec's
// scale. The spec's DType and Levels are ignored; its chunks and shards are clipped to each level. The caller
// must call Close or Abort.
func CreatePlanes(ctx context.Context, st store.Writer, path string, spec ImageSpec, levels [][]int) (*PlaneWriter, error) {
	w, err := createPlanes(ctx, st, path, spec, levels, false)
	if err != nil {
		return nil, fmt.Errorf("%s: create image: %w", st.Location(path), err)
	}
	return w, nil
}

// LeastPlanesBytes returns the least memory that an image by [CreatePlanes] takes: weights between its levels, and for
// each level that is resized a plane of it and a sum of planes. It allocates nothing, so that sizes that follow from
// metadata can be compared with a budget before anything is made of them. Sizes that overflow give a number above every
// budget.
func LeastPlanesBytes(shape []int, levels [][]int) int64 {
	sum, from := 0, [3]int(shape)
	for k, l := range levels {
		to := [3]int(l)
		if k > 0 || to != from {
			sum = mem.Sum(sum, int(planeWeightsBytes(from, to)), mem.Product(4, to[1], to[2]), mem.Product(4, to[1], from[2]))
		}
		if k == 0 {
			from = to
		}
	}
	return int64(sum)
}

// CreateMadePlanes works like [CreatePlanes] for a caller that computes level 0 itself and writes its planes
// instead of the base's.
func CreateMadePlanes(ctx context.Context, st store.Writer, path string, spec ImageSpec, levels [][]int) (*PlaneWriter, error) {
	w, err := createPlanes(ctx, st, path, spec, levels, true)
	if err != nil {
		return nil, fmt.Errorf("%s: create image: %w", st.Location(path), err)
	}
	return w, nil
}

func createPlanes(ctx context.Context, st store.Writer, path string, spec ImageSpec, levels [][]int, made bool) (*PlaneWriter, error) {
	if spec.Format == 0 {
		spec.Format = 3
	}
	spec.Levels, spec.DType = 0, dtype.Float32
	if err := spec.check(); err != nil {
		return nil, err
	}
	if len(spec.Shape) != 3 {
		return nil, fmt.Errorf("%d axes, want z, y, x", len(spec.Shape))
	}
	if len(levels) == 0 {
		levels = [][]int{spec.Shape}
	}
	w := &PlaneWriter{workers: workersOr(spec.Workers), shape: [3]int(spec.Shape)}
	w.scratch = make([]planeScratch, w.workers)
	w.whole = slices.Equal(levels[0], spec.Shape)
	scale := Multiscale{Name: spec.Name, Axes: spec.Axes}
	if len(levels) > 1 || !w.whole {
		scale.Type = "gaussian"
	}
	if made {
		w.shape, w.whole = [3]int(levels[0]), true
	}
	for k, l := range levels {
		scale.Datasets = append(scale.Datasets, Dataset{strconv.Itoa(k), levelTransform(Transform{spec.Scale, spec.Translation}, spec.Shape, l)})
	}
	if err := scale.readable(); err != nil {
		return nil, err
	}
	from := w.shape
	for k, l := range levels {
		g := geometry{shape: l}
		g.chunk, g.shard = levelChunks(l, spec.Chunks, spec.Shard)
		p := &planeLevel{shape: [3]int(l), chunk: [3]int(g.chunk), file: [3]int(g.chunk)}
		if g.shard != nil {
			p.file = [3]int(g.shard)
		}
		if k > 0 || !w.whole {
			p.from = newPlaneResizer(from, p.shape)
		}
		if k == 0 {
			from = p.shape
		}
		w.levels = append(w.levels, p)
		a := arraySpec(&spec, g)
		var err error
		if k == 0 {
			if w.group, err = zarr.CreateGroup(ctx, st, path, spec.Format, passed(spec.Attributes)); err != nil {
				return nil, err
			}
		}
		if p.array, err = zarr.CreateArray(ctx, st, store.Join(path, strconv.Itoa(k)), a, zarr.Workers(1), zarr.Meter(spec.Meter)); err != nil {
			return nil, err
		}
	}
	w.attrs = scale.attributes(spec.Format, spec.Omero, nil, spec.Attributes)
	return w, nil
}

// Made returns a writer of the same image to which the caller gives the planes of level 0, as by [CreateMadePlanes], in
// place of w. It returns w and false if planes have been written.
func (w *PlaneWriter) Made() (made *PlaneWriter, ok bool) {
	if w.came > 0 || w.failed != nil {
		return w, false
	}
	m, base := *w, *w.levels[0]
	base.from = nil
	m.shape, m.whole, m.levels = base.shape, true, slices.Clone(w.levels)
	m.levels[0] = &base
	return &m, true
}

// Bytes returns the memory that the writer needs: weights between levels, levels that wait to become chunks, sums of
// planes, and scratch of its workers (without that of codecs).
func (w *PlaneWriter) Bytes() int64 {
	sum, each := 0, 0
	for _, l := range w.levels {
		each = max(each, mem.Product(l.chunk[:]...))
		if l.from == nil {
			continue
		}
		sum = mem.Sum(sum, mem.Product(4, l.layerPlanes(), l.shape[1], l.shape[2]), mem.Product(4, l.from.slots, l.from.y.Out(), l.from.x.In()), int(l.from.weights))
		each = max(each, l.from.scratch())
	}
	return int64(min(mem.Sum(sum, mem.Product(8, each, w.workers)), math.MaxInt/4)) // the chunk, and encoded
}

// Batch returns the number of base planes that each [PlaneWriter.Write] must be a multiple of, except for the
// last one.
func (w *PlaneWriter) Batch() int {
	if w.whole {
		return w.levels[0].file[0]
	}
	return 1
}

// Level returns the array of a level. It is complete after Close.
func (w *PlaneWriter) Level(k int) *zarr.Array { return w.levels[k].array }

// Write stores the next planes of the base, each of y·x voxels in C order: a multiple of [PlaneWriter.Batch],
// or all remaining ones. They may be changed when it returns.
func (w *PlaneWriter) Write(ctx context.Context, planes [][]float32) error {
	if w.failed != nil {
		return fmt.Errorf("%s: %w", w.group.Location(), w.failed)
	}
	err := w.write(ctx, planes)
	if err != nil {
		w.failed = fmt.Errorf("an earlier write failed: %w", err)
	}
	return err
}

func (w *PlaneWriter) write(ctx context.Context, planes [][]float32) error {
	if end := w.came + len(planes); end > w.shape[0] || end < w.shape[0] && len(planes)%w.Batch() != 0 {
		return fmt.Errorf("%s: %d planes after %d of %d, want a multiple of %d", w.group.Location(), len(planes), w.came, w.shape[0], w.Batch())
	}
	for i, p := range planes {
		if len(p) != w.shape[1]*w.shape[2] {
			return fmt.Errorf("%s: plane %d has %d voxels, want %d × %d", w.group.Location(), w.came+i, len(p), w.shape[1], w.shape[2])
		}
	}
	base := w.levels[0]
	if w.whole {
		for len(planes) > 0 {
			n := min(base.file[0], len(planes))
			if err := w.store(ctx, base, w.came, planes[:n]); err != nil {
				return err
			}
			if err := w.feed(ctx, w.levels[1:], planes[:n], w.came); err != nil {
				return err
			}
			w.came += n
			planes = planes[n:]
		}
		return nil
	}
	at := w.came
	w.came += len(planes)
	return w.feed(ctx, w.levels[:1], planes, at)
}

// feed passes planes to the levels made from them, and writes those levels as far as they are complete.
// Planes of level 0 in turn feed the levels below it.
func (w *PlaneWriter) feed(ctx context.Context, levels []*planeLevel, planes [][]float32, at int) error {
	for len(planes) > 0 && len(levels) > 0 {
		// no further than some level has all planes of its chunks
		n := len(planes)
		for _, l := range levels {
			n = min(n, l.room(at))
		}
		type task struct {
			l          *planeLevel
			first, end int
		}
		var tasks []task
		for _, l := range levels {
			if err := l.alloc(); err != nil {
				return err
			}
			for r := 0; r < l.shape[1]; r += l.from.band {
				tasks = append(tasks, task{l, r, min(r+l.from.band, l.shape[1])})
			}
		}
		err := work.Each(ctx, w.workers, len(tasks), func(worker, i int) error {
			t := tasks[i]
			return t.l.from.rows(t.l, &w.scratch[worker], planes[:n], at, t.first, t.end)
		})
		if err != nil {
			return err
		}
		for _, l := range levels {
			made := l.from.complete(at+n) - l.first - l.have
			l.have += made
			if l == w.levels[0] {
				if err := w.feed(ctx, w.levels[1:], l.layer[l.have-made:l.have], l.first+l.have-made); err != nil {
					return err
				}
			}
			for l.have >= l.file[0] || l.have > 0 && l.first+l.have == l.shape[0] {
				m := min(l.file[0], l.have)
				if err := w.store(ctx, l, l.first, l.layer[:m]); err != nil {
					return err
				}
				l.layer = append(slices.Clone(l.layer[m:]), l.layer[:m]...)
				l.first, l.have = l.first+m, l.have-m
			}
		}
		planes, at = planes[n:], at+n
	}
	return nil
}

// layerPlanes returns the maximum number of planes of a level that wait in memory: those of a chunk file, and further
// ones that the same input plane completes.
func (l *planeLevel) layerPlanes() int { return min(l.file[0]+l.from.atOnce-1, l.shape[0]) }

// room returns how many planes from at on can come before chunk files are complete.
func (l *planeLevel) room(at int) int {
	if l.first == l.shape[0] {
		return l.from.z.In() // what is left is not needed
	}
	last := min(l.first+l.file[0], l.shape[0]) - 1
	return l.from.lastInput(last) + 1 - at
}

func (l *planeLevel) alloc() error {
	if l.layer != nil {
		return nil
	}
	size := l.shape[1] * l.shape[2]
	n := l.layerPlanes()
	b, err := mem.Alloc(4 * (size*n + l.from.sums()))
	if err != nil {
		return err
	}
	l.memory = b
	v := dtype.Slice[float32](b)
	for range n {
		l.layer = append(l.layer, v[:size:size])
		v = v[size:]
	}
	l.from.acc = v
	return nil
}

// store writes planes from z on, which are whole chunk files or reach the end.
func (w *PlaneWriter) store(ctx context.Context, l *planeLevel, z int, planes [][]float32) error {
	ny, nx := (l.shape[1]+l.file[1]-1)/l.file[1], (l.shape[2]+l.file[2]-1)/l.file[2]
	return work.Each(ctx, w.workers, ny*nx, func(worker, i int) error {
		file := []int{z / l.file[0], i / nx, i % nx}
		if l.file == l.chunk {
			return w.chunk(l, &w.scratch[worker], file, z, planes, func(data []byte) error { return l.array.WriteChunk(ctx, file, data) })
		}
		shard, err := l.array.NewShard(ctx, file)
		if err != nil {
			return err
		}
		defer shard.Abort()
		r := shard.Region()
		var lo, hi [3]int
		for d := range 3 {
			lo[d], hi[d] = r.Start[d]/l.chunk[d], (r.Start[d]+r.Shape[d]+l.chunk[d]-1)/l.chunk[d]
		}
		for a := lo[0]; a < hi[0]; a++ {
			for b := lo[1]; b < hi[1]; b++ {
				for c := lo[2]; c < hi[2]; c++ {
					index := []int{a, b, c}
					if err := w.chunk(l, &w.scratch[worker], index, z, planes, func(data []byte) error { return shard.WriteChunk(ctx, index, data) }); err != nil {
						return err
					}
				}
			}
		}
		return shard.Commit(ctx)
	})
}

// chunk gathers a chunk from planes that begin at z.
func (w *PlaneWriter) chunk(l *planeLevel, s *planeScratch, index []int, z int, planes [][]float32, write func([]byte) error) error {
	r, err := l.array.ChunkRegion(index)
	if err != nil {
		return err
	}
	n := r.Shape[2]
	data, err := s.get(r.Shape[0] * r.Shape[1] * n)
	if err != nil {
		return err
	}
	to := data
	for k := range r.Shape[0] {
		plane := planes[r.Start[0]+k-z]
		for y := range r.Shape[1] {
			copy(to[:n], plane[(r.Start[1]+y)*l.shape[2]+r.Start[2]:])
			to = to[n:]
		}
	}
	return write(dtype.Bytes(data))
}

// Close writes the NGFF metadata; the image is complete when it returns nil. A missing plane is an error. It
// releases the memory in any case.
func (w *PlaneWriter) Close(ctx context.Context) error {
	came, failed := w.came, w.failed
	w.Abort()
	switch {
	case failed != nil:
		return fmt.Errorf("%s: %w", w.group.Location(), failed)
	case came < w.shape[0]:
		return fmt.Errorf("%s: %d of %d planes were not written", w.group.Location(), w.shape[0]-came, w.shape[0])
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return w.group.SetAttributes(ctx, w.attrs)
}

// Abort ends writing without completing the image. After Close it does nothing.
func (w *PlaneWriter) Abort() {
	for _, l := range w.levels {
		mem.Free(l.memory)
		l.memory, l.layer = nil, nil
		l.array.Close()
	}
	for i := range w.scratch {
		mem.Free(w.scratch[i].b)
		w.scratch[i] = planeScratch{}
	}
	if w.failed == nil {
		w.failed = errors.New("the image writer is closed")
	}
}

// planeScratch is a worker's memory.
type planeScratch struct{ b []byte }

// get returns n numbers of undefined content, valid until the next get.
func (s *planeScratch) get(n int) ([]float32, error) {
	if len(s.b) < 4*n {
		mem.Free(s.b)
		s.b = nil
		var err error
		if s.b, err = mem.Alloc(4 * n); err != nil {
			return nil, err
		}
	}
	return dtype.Slice[float32](s.b)[:n], nil
}
