package stack

import (
	"errors"
	"slices"
	"time"

	"strata/pkg/dtype"
	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/oct/compute/volume"
	"strata/pkg/zarr/store"
)

// assembly is a volume under construction: the planes from z = done on are in memory, the planes before are
// written.
type assembly struct {
	plan   *stackPlan
	mem    *place
	res    *oct.Resources
	result *Result

	done   int            // planes that are written
	window []volume.Plane // planes from done on; zero values if nothing has been placed there
	limits []int          // by slice: planes below are final once it is placed
}

// assemble reads the slices in order, places and blends them, and writes the volume.
func (p *stackPlan) assemble(mem *place, out store.Writer, layout oct.Layout, res oct.Resources, result *Result) error {
	a := &assembly{plan: p, mem: mem, res: &res, result: result, limits: p.limits()}
	canvas, err := p.image(layout, &res)
	if err != nil {
		return err
	}
	canvas.Out = out
	p.budget(canvas, a.limits)
	mem.Begin(canvas)
	mem.began = time.Now()
	for i, m := range p.all() {
		if err := a.next(m, a.limits[i]); err != nil {
			return err
		}
		m.slice.source.Finished(&res)
	}
	a.flush(p.depth)
	mem.Finish()
	return mem.Err()
}

// next blends and places a slice. Planes of the volume below limit are final afterwards.
func (a *assembly) next(m *movingSlice, limit int) error {
	if err := a.join(m.start); err != nil {
		return err
	}
	if m.place.Height() <= 0 || m.place.Width() <= 0 {
		a.flush(limit)
		return a.mem.Err()
	}
	blend, rest := a.plan.planes(m)
	if blend[0] < blend[1] {
		rest[0] = a.blend(m, blend, min(m.chunkEnd(blend[1]), rest[1]))
	}
	return a.put(m, rest, limit)
}

// put places planes k of a slice, in pieces that fit into memory, and writes final planes.
func (a *assembly) put(m *movingSlice, k [2]int, limit int) error {
	for k[0] < k[1] && a.mem.Err() == nil {
		z := m.start + k[0]
		room := a.mem.Room(a.missing(z, min(k[1], m.chunkEnd(k[0]+1))-k[0]))
		n := 0 // planes that are loaded at a time
		for ; n < k[1]-k[0]; n++ {
			if !a.at(z + n).There() {
				if room == 0 {
					break
				}
				room--
			}
		}
		if n == 0 && a.mem.Err() == nil {
			return errors.New("internal error: no room for a plane of the stack")
		}
		n = wholeChunks(m, k[0], k[0]+n, k[1]) - k[0]
		a.load(m, k[0], a.ready(z, n, m.place), m.gains)
		k[0] += n
		a.flush(min(limit, m.start+k[0]))
		if err := a.join(m.start + k[0]); err != nil {
			return err
		}
	}
	a.flush(limit)
	return a.mem.Err()
}

// join moves the assembly to a device that has come, before plane z is placed. Only the window's planes are in use.
func (a *assembly) join(z int) (err error) {
	if err = a.mem.Err(); err == nil {
		a.window, err = a.mem.join(z, a.plan.depth, a.window)
	}
	return err
}

// load loads planes of a slice, from the k-th used one on, into their part of the planes to, and multiplies them
// by their gains.
func (a *assembly) load(m *movingSlice, k int, to []volume.Plane, gains planeGains) {
	s, r := m.slice, m.place
	anew := k >= m.counted // else planes come again for another pass
	m.counted = max(m.counted, k+len(to))
	gain, same := gains.same()
	if m.resampled {
		a.turn(m, k, to, anew)
	} else {
		if !same {
			gain = 1
		}
		a.mem.Load(&volume.Box{
			Source: s.source, Start: [3]int{m.movingZ + k, r.Y0 - m.origin[0], r.X0 - m.origin[1]}, Shape: [3]int{len(to), r.Height(), r.Width()},
			To: to, Y: r.Y0, X: r.X0, Gain: gain, Anew: anew,
		})
	}
	if m.resampled || !same {
		a.mem.Scale(to, r, gains.of(k, len(to)))
	}
}

// turn loads planes of a slice and resamples them by its transform, some at a time.
func (a *assembly) turn(m *movingSlice, k int, to []volume.Plane, anew bool) {
	s := m.slice
	turn := volume.Turn{Rigid: m.laid, Warp: m.warp, NY: s.shape[1], NX: s.shape[2], Part: m.place, DY: m.origin[0], DX: m.origin[1]}
	raw := a.mem.Raw(turn.NY, turn.NX)
	for last := k + len(to); len(to) > 0 && a.mem.Err() == nil; {
		n := wholeChunks(m, k, min(k+len(raw), last), last) - k
		a.mem.Load(&volume.Box{
			Source: s.source, Start: [3]int{m.movingZ + k, 0, 0}, Shape: [3]int{n, turn.NY, turn.NX}, To: raw[:n], Gain: 1, Anew: anew,
		})
		a.mem.Turn(to[:n], raw[:n], turn)
		to, k = to[n:], k+n
	}
}

// at returns the canvas plane z, or the zero value if nothing has been placed there.
func (a *assembly) at(z int) volume.Plane {
	if i := z - a.done; i < len(a.window) {
		return a.window[i]
	}
	return volume.Plane{}
}

// missing returns how many of n canvas planes from z on do not exist yet.
func (a *assembly) missing(z, n int) (missing int) {
	for i := range n {
		if !a.at(z + i).There() {
			missing++
		}
	}
	return missing
}

// ready returns n canvas planes from z on. New ones are zero except for the rectangle covered, which is about to
// be overwritten.
func (a *assembly) ready(z, n int, covered oct.Rectangle) []volume.Plane {
	missing := a.missing(z, n)
	a.mem.Room(missing)
	made := a.mem.Take(missing)
	a.mem.Clear(made, covered)
	if a.mem.Err() != nil {
		return make([]volume.Plane, n)
	}
	for len(a.window) < z-a.done+n {
		a.window = append(a.window, volume.Plane{})
	}
	planes := a.window[z-a.done:][:n]
	for i, p := range planes {
		if !p.There() {
			planes[i], made = made[0], made[1:]
		}
	}
	return planes
}

// flush writes the planes below limit, in whole batches.
func (a *assembly) flush(limit int) {
	n := limit - a.done
	if limit < a.plan.depth {
		n = n / a.mem.Batch() * a.mem.Batch()
	}
	if n <= 0 {
		return
	}
	for len(a.window) < n {
		a.window = append(a.window, volume.Plane{})
	}
	planes := a.window[:n:n]
	a.window = append([]volume.Plane{}, a.window[n:]...)
	a.done += n
	a.mem.Write(planes)
}

// wholeChunks moves the end of a piece of a slice's planes back to the end of a chunk, unless the piece is the
// last or would become empty. Planes count from the first used one.
func wholeChunks(m *movingSlice, from, to, last int) int {
	depth := m.slice.chunk[0]
	if whole := (m.movingZ+to)/depth*depth - m.movingZ; to < last && whole > from {
		return whole
	}
	return to
}

// chunkEnd returns the first plane after those that share a chunk with plane k−1. Planes count from the first
// used one.
func (m *movingSlice) chunkEnd(k int) int {
	depth := m.slice.chunk[0]
	return (m.movingZ+k+depth-1)/depth*depth - m.movingZ
}

// image returns the canvas with the specification of the output.
func (p *stackPlan) image(layout oct.Layout, res *oct.Resources) (*volume.Canvas, error) {
	first := p.slices[0]
	spec := ngff.ImageSpec{
		Format: first.image.Levels[0].Array.Format(), Name: "stack", Shape: []int{p.depth, p.canvas[0], p.canvas[1]}, Chunks: oct.AnalysisChunk,
		DType: dtype.Float32, Axes: oct.ImageAxes(first.image), Scale: first.image.Levels[0].Scale, Omero: first.image.Omero.WithoutWindows(),
	}
	if um := p.opt.ZSpacingUM; um > 0 {
		spec.Scale = slices.Clone(spec.Scale)
		spec.Scale[0] *= um / first.image.VoxelSize[0]
	}
	levels, err := p.opt.Analysis.Apply(&spec, first.voxel, "the slices", layout, res)
	if err != nil {
		return nil, err
	}
	return &volume.Canvas{Image: spec, Levels: levels}, nil
}
