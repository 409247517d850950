package stack

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"time"

	"strata/pkg/dtype"
	"strata/pkg/filter"
	"strata/pkg/mem"
	"strata/pkg/meter"
	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/zarr/codec"
	"strata/pkg/zarr/store"
)

// stackChunk is the shape of the output's chunks where nothing else is asked
// for: few planes, since planes are what waits in memory.
var stackChunk = []int{8, 256, 256}

// unreadable marks an input that may not be read as the input's fault.
func unreadable(err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return oct.InputFault(err)
	}
	return err
}

// tooLittle says how much memory is missing.
func tooLittle(res oct.Resources, need int64, format string, args ...any) error {
	return fmt.Errorf("%s needs %d MiB of buffers, --mem grants %d MiB", fmt.Sprintf(format, args...), need>>20+1, res.Mem>>20)
}

// assembly is a volume under construction: the planes from z = done on are in
// memory, those before are written.
type assembly struct {
	plan   *stackPlan
	res    oct.Resources
	result *Result
	writer *ngff.PlaneWriter
	crew   *crew
	ny, nx int

	done   int         // planes that are written
	window [][]float32 // planes from done on; nil: nothing was placed there
	limits []int       // by slice: planes below stay as they are once it is placed

	pool    [][]float32 // free planes
	made    int         // planes that there are, free or not
	most    int         // that there may be
	size    int         // elements of a plane buffer
	readers int         // workers that read at a time
	zero    []float32
	all     [][]byte // memory of the planes
}

// assemble reads the slices in order, places and blends them, and writes the
// volume. The strips are memory that may be used; the caller frees it.
func assemble(ctx context.Context, p *stackPlan, strips *[2]growing, out store.Writer, layout oct.Layout, res oct.Resources, result *Result) error {
	w, _, err := createStack(ctx, p, out, layout, res, ngff.CreatePlanes)
	if err != nil {
		return err
	}
	defer w.Abort()
	a := &assembly{plan: p, res: res, result: result, writer: w, crew: newCrew(res.Workers), ny: p.canvas[0], nx: p.canvas[1]}
	defer a.close()
	need, err := a.budget()
	if err != nil {
		return err
	}
	a.adopt(strips, need)
	if err := a.first(ctx); err != nil {
		return err
	}
	p.slices[0].finished(&a.res)
	for i, m := range p.moving {
		if err := a.next(ctx, m, a.limits[i+1]); err != nil {
			return err
		}
		m.slice.finished(&a.res)
	}
	if err := a.flush(ctx, p.depth); err != nil {
		return err
	}
	return w.Close(ctx)
}

// stackWriter is how the output image is started.
type stackWriter func(ctx context.Context, st store.Writer, path string, spec ngff.ImageSpec, levels [][]int) (*ngff.PlaneWriter, error)

// createStack starts the output image, of which it returns the shape of level 0.
func createStack(ctx context.Context, p *stackPlan, out store.Writer, layout oct.Layout, res oct.Resources, create stackWriter) (*ngff.PlaneWriter, [3]int, error) {
	first := p.slices[0]
	shape := []int{p.depth, p.canvas[0], p.canvas[1]}
	levels := ngff.AnalysisLevels(shape, first.voxel[:], p.opt.PyramidResolutions, p.opt.MakeIsotropic)
	if len(levels) == 0 {
		res.Warnf("no voxel size of the pyramid is as coarse as that of the slices, %v µm: the volume is kept as it is, without a pyramid", slices.Min(first.voxel[:]))
	}
	levels = levels[:min(len(levels), layout.Levels+1)]
	if layout.Format == 0 {
		layout.Format = first.array.Format()
	}
	chunks := layout.Chunks
	if chunks == nil {
		chunks = stackChunk
	}
	level := [3]int(shape)
	if len(levels) > 0 {
		level = [3]int(levels[0])
	}
	if err := layout.Check(chunks); err != nil {
		return nil, level, err
	}
	spec := ngff.ImageSpec{
		Format: layout.Format, Name: "stack", Shape: shape, Chunks: chunks, Shard: layout.Shard, DType: dtype.Float32,
		Scale: first.image.Levels[0].Scale, Workers: res.Workers, Meter: res.Meter,
	}
	for d, axis := range first.image.Axes {
		axis.Unit = first.image.Unit[d]
		spec.Axes = append(spec.Axes, axis)
	}
	var err error
	if spec.Codecs, err = codec.FromFlag(layout.CodecFlag(), spec.DType, spec.Format); err != nil {
		return nil, level, err
	}
	w, err := create(ctx, out, "", spec, levels)
	return w, level, err
}

// touches is the first plane of the canvas that a slice changes.
func (p *stackPlan) touches(m *movingSlice) int {
	if p.blends(m) {
		return max(0, m.from-m.mix)
	}
	return max(0, m.start)
}

// blends reports whether the slice's overlap is blended, not overwritten.
func (p *stackPlan) blends(m *movingSlice) bool {
	return p.opt.Blend && m.mix > 0 && m.start < m.from
}

// resampled reports whether the slice's planes are resampled.
func (m *movingSlice) resampled() bool { return m.action == "rotation" || m.action == "full" }

// planes are the planes of a slice, from its first used one on, that reach the
// canvas: those that are blended, and those that are put there.
func (p *stackPlan) planes(m *movingSlice) (blend, put [2]int) {
	lo := max(0, -m.start)
	hi := max(0, m.end-m.start)
	if !p.blends(m) {
		return [2]int{}, [2]int{lo, max(lo, hi)}
	}
	mid := min(m.overlap, hi)
	first := max(lo, m.overlap-m.mix)
	return [2]int{min(first, mid), mid}, [2]int{max(lo, mid), max(lo, mid, hi)}
}

// budget divides the memory: the writer's, the readers', and planes with the
// rest; of these some are needed at a time.
func (a *assembly) budget() (need int, err error) {
	p := a.plan
	a.limits = p.limits()
	a.size = a.ny * a.nx
	other := a.writer.Bytes() + 4*int64(a.size) // and a plane of zeros
	reader, work := int64(0), int64(0)
	for i, s := range p.slices {
		reader = max(reader, s.readerBytes())
		if i > 0 && p.moving[i-1].resampled() {
			plane := s.shape[1] * s.shape[2]
			a.size = max(a.size, plane)
			work = max(work, 4*int64(plane)*int64(a.res.Workers))
		}
	}
	if p.opt.Blend && p.opt.BlendRefinementPx > 0 {
		other += 72 * int64(a.ny) * int64(a.nx) // sums, means and spectra of two planes
	}
	a.readers = int(min(int64(a.res.Workers), max(1, a.res.Mem/4/reader)))
	other += max(work, reader*int64(a.readers))
	need = p.planesNeeded(a.limits, a.writer.Batch(), true)
	a.most = int((a.res.Mem - other) / (4 * int64(a.size)))
	if a.most < need {
		return 0, tooLittle(a.res, other+int64(need)*4*int64(a.size), "blending up to %d planes of %d × %d pixels", need, a.ny, a.nx)
	}
	return need, nil
}

// leastPiece is the number of planes to be blended that must be in memory
// beside those that they are blended with.
const leastPiece = 4

// limits are the planes of the canvas below which none changes once a slice is placed,
// by slice.
func (p *stackPlan) limits() []int {
	v := make([]int, len(p.moving)+1)
	v[len(p.moving)] = p.depth
	for i := len(p.moving) - 1; i >= 0; i-- {
		v[i] = min(v[i+1], p.touches(p.moving[i]))
	}
	return v
}

// planesNeeded is the number of planes that must be in memory at a time when
// the slices are read in pieces: with those beside the canvas, or without.
func (p *stackPlan) planesNeeded(limits []int, batch int, beside bool) int {
	done, top, most := 0, 0, 0
	put := func(z, limit, extra int) {
		top = max(top, z+1)
		most = max(most, top-done+extra)
		done += max(0, (min(limit, z+1)-done)/batch*batch)
	}
	for z := range min(p.slices[0].shape[0], p.depth) {
		put(z, limits[0], 0)
	}
	for i, m := range p.moving {
		blend, rest := p.planes(m)
		top = max(top, m.start+blend[1])
		extra := 0
		if beside {
			extra = min(blend[1]-blend[0], leastPiece)
		}
		most = max(most, top-done+extra)
		extra = 0
		if beside && m.resampled() {
			extra = 1
		}
		for k := rest[0]; k < rest[1]; k++ {
			put(m.start+k, limits[i+1], extra)
		}
	}
	return max(most, min(batch, p.depth)) + 1
}

// adopt makes planes of memory that is there already, whose pages need not be
// cleared again, where that leaves room for the planes that are needed.
func (a *assembly) adopt(strips *[2]growing, need int) {
	size := (4*a.size + 63) &^ 63
	for i := range strips {
		g := &strips[i]
		n := len(g.b) / size
		if n == 0 || a.most-1 < max(need, a.made+n) {
			g.free()
			continue
		}
		a.most-- // what is left of the strip
		for k := range n {
			a.pool = append(a.pool, dtype.Slice[float32](g.b[k*size:][:4*a.size:4*a.size]))
		}
		a.made += n
	}
}

func (a *assembly) close() {
	a.crew.close()
	for _, b := range a.all {
		mem.Free(b)
	}
}

// take returns a plane of undefined content; there is one: see free.
func (a *assembly) take() ([]float32, error) {
	if n := len(a.pool); n > 0 {
		v := a.pool[n-1]
		a.pool = a.pool[:n-1]
		return v, nil
	}
	b, err := mem.Alloc(4 * a.size)
	if err != nil {
		return nil, err
	}
	a.all = append(a.all, b)
	a.made++
	return dtype.Slice[float32](b), nil
}

func (a *assembly) free() int { return a.most - a.made + len(a.pool) }

func (a *assembly) giveBack(planes ...[]float32) { a.pool = append(a.pool, planes...) }

// at is the canvas plane z, nil where nothing was placed yet.
func (a *assembly) at(z int) []float32 {
	if i := z - a.done; i < len(a.window) {
		return a.window[i]
	}
	return nil
}

// set makes a buffer the canvas plane z.
func (a *assembly) set(z int, v []float32) {
	for len(a.window) <= z-a.done {
		a.window = append(a.window, nil)
	}
	a.window[z-a.done] = v
}

// flush writes the planes below limit, as far as they are whole batches.
func (a *assembly) flush(ctx context.Context, limit int) error {
	n := limit - a.done
	if limit < a.plan.depth {
		n = n / a.writer.Batch() * a.writer.Batch()
	}
	if n <= 0 {
		return nil
	}
	a.set(a.done+n-1, a.at(a.done+n-1))
	planes := make([][]float32, n)
	for i, v := range a.window[:n] {
		if v == nil {
			if a.zero == nil {
				b, err := mem.Alloc(4 * a.ny * a.nx)
				if err != nil {
					return err
				}
				a.all = append(a.all, b)
				a.zero = dtype.Slice[float32](b)
			}
			v = a.zero
		} else {
			a.giveBack(v)
		}
		planes[i] = v[:a.ny*a.nx]
	}
	a.window = slices.Clone(a.window[n:])
	a.done += n
	return a.writer.Write(ctx, planes)
}

// first places the first slice.
func (a *assembly) first(ctx context.Context) error {
	m := a.plan.firstSlice()
	return a.put(ctx, m, [2]int{0, m.end}, a.limits[0])
}

// next blends or puts a moving slice.
func (a *assembly) next(ctx context.Context, m *movingSlice, limit int) error {
	blend, rest := a.plan.planes(m)
	if m.place.empty() {
		return a.flush(ctx, limit)
	}
	n := blend[1] - blend[0]
	switch {
	case n == 0:
	case a.free() < n: // in pieces, read again for each pass
		if err := a.blend(ctx, m, blend, func(f func(at int, planes [][]float32) error) error {
			for k, to := blend[0], 0; k < blend[1]; k = to {
				to = wholeChunks(m, k, min(k+a.free(), blend[1]), blend[1])
				planes, err := a.load(ctx, m, k, to)
				if err == nil {
					err = f(k-blend[0], planes)
				}
				if err != nil {
					return err
				}
				a.giveBack(planes...)
			}
			return nil
		}); err != nil {
			return err
		}
	default: // all at once when there is room, so that chunks are decoded once
		to := blend[1]
		if a.free() >= rest[1]-blend[0] {
			to = rest[1]
		}
		planes, err := a.load(ctx, m, blend[0], to)
		if err != nil {
			return err
		}
		if err := a.blend(ctx, m, blend, func(f func(at int, planes [][]float32) error) error { return f(0, planes[:n]) }); err != nil {
			return err
		}
		a.giveBack(planes[:n]...)
		for i, v := range planes[n:] {
			z := m.start + blend[1] + i
			if old := a.at(z); old != nil {
				a.giveBack(old)
				a.keep(old, v, m.place)
			}
			a.set(z, v)
		}
		if to > blend[1] {
			if err := a.scale(ctx, m, [2]int{blend[1], to}); err != nil {
				return err
			}
			rest[0] = to
		}
	}
	return a.put(ctx, m, rest, limit)
}

// wholeChunks moves the end of a piece of a slice's planes back to where a chunk
// ends, unless it is the last or would be empty. Planes count from the first used.
func wholeChunks(m *movingSlice, from, to, last int) int {
	depth := m.slice.chunk[0]
	if whole := (m.movingZ+to)/depth*depth - m.movingZ; to < last && whole > from {
		return whole
	}
	return to
}

// keep copies what lies outside a rectangle.
func (a *assembly) keep(old, v []float32, r rect) {
	a.around(r, func(from, to int) { copy(v[from:to], old[from:to]) })
}

// around calls f for the ranges of a plane that lie outside a rectangle.
func (a *assembly) around(r rect, f func(from, to int)) {
	at := 0
	for y := r.y0; y < r.y1; y++ {
		if from := y*a.nx + r.x0; from > at {
			f(at, from)
		}
		at = y*a.nx + r.x1
	}
	if end := a.ny * a.nx; end > at {
		f(at, end)
	}
}

// put places planes k of a slice, in pieces for which there is room, and writes
// what is settled.
func (a *assembly) put(ctx context.Context, m *movingSlice, k [2]int, limit int) error {
	for k[0] < k[1] {
		n := 0 // planes that are loaded at a time
		for room := a.free(); n < k[1]-k[0]; n++ {
			if a.at(m.start+k[0]+n) == nil || m.resampled() {
				if room == 0 {
					break
				}
				room--
			}
		}
		if n == 0 {
			return errors.New("internal error: no room for a plane of the stack")
		}
		n = wholeChunks(m, k[0], k[0]+n, k[1]) - k[0]
		planes, err := a.load(ctx, m, k[0], k[0]+n)
		if err != nil {
			return err
		}
		for i, v := range planes {
			a.set(m.start+k[0]+i, v)
		}
		if err := a.scale(ctx, m, [2]int{k[0], k[0] + n}); err != nil {
			return err
		}
		k[0] += n
		if err := a.flush(ctx, min(limit, m.start+k[0])); err != nil {
			return err
		}
	}
	return a.flush(ctx, limit)
}

// scale multiplies what a slice put on the canvas.
func (a *assembly) scale(ctx context.Context, m *movingSlice, k [2]int) error {
	if gain, same := m.gains.same(); same && gain == 1 {
		return nil
	}
	return a.crew.each(ctx, k[1]-k[0], a.res.Workers, func(_ *workMemory, i int) error {
		start := time.Now()
		plane, gain := a.at(m.start+k[0]+i), m.gains.at(k[0]+i)
		for y := m.place.y0; y < m.place.y1; y++ {
			row := plane[y*a.nx+m.place.x0 : y*a.nx+m.place.x1]
			filter.Combine(row, row, 0, []float32{gain})
		}
		a.res.Meter.Since(meter.Compute, start)
		return nil
	})
}

// load reads planes k0 … k1−1 of a slice, counted from its first used one, and
// places them on canvas planes: those that are there for put planes, else new
// ones, which are zero outside the slice.
func (a *assembly) load(ctx context.Context, m *movingSlice, k0, k1 int) ([][]float32, error) {
	s, r := m.slice, m.place
	blend, _ := a.plan.planes(m)
	whole := r.y0 == 0 && r.x0 == 0 && r.y1 == a.ny && r.x1 == a.nx
	planes := make([][]float32, k1-k0) // the result
	raw := planes                      // where to read to
	if m.resampled() {
		raw = make([][]float32, k1-k0)
	}
	var blank [][]float32
	for i := range planes {
		var v []float32
		if k := k0 + i; k >= blend[1] && !a.plan.blendsAhead(m, k0) {
			v = a.at(m.start + k)
		}
		if v == nil || m.resampled() {
			n, err := a.take()
			if err != nil {
				return nil, err
			}
			if m.resampled() {
				raw[i] = n
			}
			if v == nil {
				v = n
				if !whole && !m.resampled() {
					blank = append(blank, n)
				}
			}
		}
		planes[i] = v
	}
	err := a.crew.each(ctx, len(blank), a.res.Workers, func(_ *workMemory, i int) error {
		a.around(r, func(from, to int) { clear(blank[i][from:to]) })
		return nil
	})
	if err != nil {
		return nil, err
	}
	from := rect{y0: r.y0 - r.dy, y1: r.y1 - r.dy, x0: r.x0 - r.dx, x1: r.x1 - r.dx} // in the slice
	stride, dy, dx := a.nx, r.dy, r.dx
	if m.resampled() {
		from = rect{y1: s.shape[1], x1: s.shape[2]}
		stride, dy, dx = s.shape[2], 0, 0
	}
	start, shape := [3]int{m.movingZ + k0, from.y0, from.x0}, [3]int{len(raw), from.y1 - from.y0, from.x1 - from.x0}
	count := k0 >= m.counted // not when planes come again for another pass
	m.counted = max(m.counted, k1)
	err = a.crew.read(ctx, s, start, shape, a.readers, &a.res, count, func(z, y, x int) []float32 {
		return raw[z-start[0]][(y+dy)*stride+x+dx:]
	})
	if err != nil {
		return nil, err
	}
	s.progress(&a.res, int64(shape[0]*shape[1]*shape[2])*int64(s.dtype.Size()))
	if m.resampled() {
		if err := a.resample(ctx, m, raw, planes); err != nil {
			return nil, err
		}
	}
	return planes, nil
}

// blendsAhead reports whether the blending of a slice is still to come when it
// is loaded from plane k on: what it puts must not reach the canvas before.
func (p *stackPlan) blendsAhead(m *movingSlice, k int) bool {
	blend, _ := p.planes(m)
	return k < blend[1]
}

// resample turns raw planes of a slice by its transform and puts them in place.
// Outside is the 1st percentile of the plane's positive values.
func (a *assembly) resample(ctx context.Context, m *movingSlice, raw, planes [][]float32) error {
	s, r := m.slice, m.place
	ny, nx := s.shape[1], s.shape[2]
	err := a.crew.each(ctx, len(raw), a.res.Workers, func(scratch *workMemory, i int) error {
		b, err := scratch.get(4 * ny * nx)
		if err != nil {
			return err
		}
		start := time.Now()
		v := dtype.Slice[float32](b)
		fill := positivePercentile(raw[i][:ny*nx], v, 1)
		m.rigid.Resample(v, raw[i][:ny*nx], ny, nx, 0, ny, fill)
		to := planes[i]
		if &to[0] == &raw[i][0] {
			clear(to[:a.ny*a.nx])
		}
		for y := r.y0; y < r.y1; y++ {
			copy(to[y*a.nx+r.x0:y*a.nx+r.x1], v[(y-r.dy)*nx+r.x0-r.dx:])
		}
		a.res.Meter.Since(meter.Compute, start)
		return nil
	})
	for i := range raw {
		if &planes[i][0] != &raw[i][0] {
			a.giveBack(raw[i])
		}
	}
	return err
}

// positivePercentile is a percentile of the values of v above 0; 0 if there are
// none. scratch has the length of v.
func positivePercentile(v, scratch []float32, percent float64) float32 {
	n := 0
	for _, f := range v {
		scratch[n] = f
		if f > 0 && !math.IsInf(float64(f), 1) {
			n++
		}
	}
	if n == 0 {
		return 0
	}
	return float32(filter.Percentiles(scratch[:n], percent)[0])
}
