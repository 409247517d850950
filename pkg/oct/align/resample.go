package align

import (
	"context"
	"fmt"
	"math"

	"strata/pkg/dtype"
	"strata/pkg/filter/mattes"
	"strata/pkg/mem"
	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/oct/blocks"
	"strata/pkg/work"
	"strata/pkg/zarr/store"
)

// grid is the output: where its voxels lie in the input.
type grid struct {
	in          *blocks.Volume
	o           orientation
	shape       [3]int     // (z, y, x)
	size        [3]float64 // of voxels, in µm
	first       [3]float64 // place of the first voxel, in mm from the template's
	translation []float64  // of the output, in the input's units
	// voxel o of the output lies at m·o + offset in the input, both as (z, y, x)
	m      [3][3]float64
	offset [3]float64
}

// grid plans the output.
func (r *Result) grid(v, t *blocks.Volume, kind Grid) (*grid, error) {
	o := r.orientations[0]
	g := &grid{in: v, o: o, size: turn(o, v.Voxel)}
	shape := turn(o, v.Shape)
	matrix, offset := r.Transform.Affine()
	low, high := [3]float64{}, [3]float64{} // of the output's box, in mm
	if kind == Whole {
		low, high = boxOf(shape, g.size, matrix, offset)
	} else {
		size, n := turn(r.orientations[1], t.Voxel), turn(r.orientations[1], t.Shape)
		for d := range 3 {
			low[d] = -size[d] / 2000
			high[d] = low[d] + float64(n[d])*size[d]/1000
		}
	}
	bytes := 4.0
	for d := range 3 {
		n := (high[d] - low[d]) * 1000 / g.size[d]
		if !(n <= math.MaxInt32) {
			return nil, oct.BadInput("%s: a box of %.3g voxels: the voxel sizes of the volume and the template do not fit", v.Where, n)
		}
		if g.shape[d] = max(1, int(math.RoundToEven(n))); kind == Whole {
			g.shape[d] = max(1, int(math.Ceil(n-1e-6)))
		}
		g.first[d] = low[d] + g.size[d]/2000
		bytes *= float64(g.shape[d])
	}
	if bytes > oct.VastBytes && bytes > 8*float64(v.Bytes()) {
		return nil, oct.BadInput("%s: the output has %v voxels of %v µm, %.3g times the volume's bytes: the voxel sizes of the volume and the template do not fit",
			v.Where, g.shape, g.size, bytes/float64(v.Bytes()))
	}
	for a := range 3 { // axis of the oriented volume; mattes counts x first
		i := o.axis[a]
		g.offset[i] = offset[2-a]
		for b := range 3 {
			g.m[i][b] = matrix[2-a][2-b] * g.size[b] / g.size[a]
			g.offset[i] += matrix[2-a][2-b] * g.first[b]
		}
		g.offset[i] *= 1000 / g.size[a]
		if o.flip[a] {
			g.offset[i] = float64(shape[a]-1) - g.offset[i]
			for b := range 3 {
				g.m[i][b] = -g.m[i][b]
			}
		}
	}
	g.place(t, r.orientations[1])
	return g, nil
}

// boxOf returns the box, along the template's axes, of the edges of a volume of the given shape.
func boxOf(shape [3]int, size [3]float64, matrix mattes.Mat, offset mattes.Vec) (low, high [3]float64) {
	back := matrix.Transpose()
	for d := range 3 {
		low[d], high[d] = math.Inf(1), math.Inf(-1)
	}
	for corner := range 8 {
		var p mattes.Vec
		for d := range 3 {
			p[2-d] = (float64(corner>>d&1*shape[d]) - 0.5) * size[d] / 1000
			p[2-d] -= offset[2-d]
		}
		p = back.Apply(p)
		for d := range 3 {
			low[d], high[d] = min(low[d], p[2-d]), max(high[d], p[2-d])
		}
	}
	return low, high
}

// place computes the output's translation: where the template's says that its first voxel lies, and how far from it the
// output begins.
func (g *grid) place(t *blocks.Volume, o orientation) {
	level := t.Image.Levels[0]
	for d, i := range o.axis {
		um := 0.0
		if level.Translation != nil && !o.flip[d] {
			um = level.Translation[i] * t.Voxel[i] / level.Scale[i]
		}
		scale := g.in.Image.Levels[0].Scale[g.o.axis[d]]
		g.translation = append(g.translation, (um+1000*g.first[d])*scale/g.size[d])
	}
}

// spec returns the specification of the output: the input's axes by their orientation.
func (g *grid) spec() ngff.ImageSpec {
	s := g.in.Spec(dtype.Float32)
	s.Shape, s.Translation, s.Scale = g.shape[:], g.translation, nil
	axes := oct.ImageAxes(g.in.Image)
	for d, i := range g.o.axis {
		s.Axes[d].Unit = axes[i].Unit
		s.Scale = append(s.Scale, g.in.Image.Levels[0].Scale[i])
	}
	s.Chunks = nil
	for d, n := range oct.AnalysisChunk {
		s.Chunks = append(s.Chunks, min(n, g.shape[d]))
	}
	return s
}

// write resamples the input and writes the output.
func (g *grid) write(ctx context.Context, out store.Writer, a oct.Analysis, layout oct.Layout, res oct.Resources) error {
	spec := g.spec()
	levels, err := a.Apply(&spec, g.size, "the volume", layout, &res)
	if err != nil {
		return err
	}
	w, err := ngff.CreatePlanes(ctx, out, "", spec, levels)
	if err != nil {
		return err
	}
	defer w.Abort()
	layer, side, workers, err := g.plan(w, res)
	if err != nil {
		return err
	}
	area := g.shape[1] * g.shape[2]
	b, err := mem.Alloc(4 * layer * area)
	if err != nil {
		return err
	}
	defer mem.Free(b)
	all := dtype.Slice[float32](b)
	scratch := make([]*sampler, workers)
	defer func() {
		for _, s := range scratch {
			if s != nil {
				mem.Free(s.memory)
			}
		}
	}()
	nx := (g.shape[2] + side - 1) / side
	tiles := (g.shape[1] + side - 1) / side * nx
	total, done := g.in.Bytes(), int64(0)
	for z := 0; z < g.shape[0]; z += layer {
		n := min(layer, g.shape[0]-z)
		err := work.Each(ctx, workers, tiles, func(worker, i int) error {
			if scratch[worker] == nil {
				s, err := g.newSampler([3]int{layer, side, side})
				if err != nil {
					return err
				}
				scratch[worker] = s
			}
			from := [3]int{z, i / nx * side, i % nx * side}
			shape := [3]int{n, min(side, g.shape[1]-from[1]), min(side, g.shape[2]-from[2])}
			return scratch[worker].fill(ctx, all[from[1]*g.shape[2]+from[2]:], from, shape)
		})
		if err != nil {
			return err
		}
		planes := make([][]float32, n)
		for i := range planes {
			planes[i] = all[i*area:][:area:area]
		}
		if err := w.Write(ctx, planes); err != nil {
			return err
		}
		now := int64(float64(total) * float64(z+n) / float64(g.shape[0]))
		res.Done(now - done)
		done = now
	}
	return w.Close(ctx)
}

// plan chooses how many planes are made at a time, of tiles of how many voxels along y and x, by how many workers.
func (g *grid) plan(w *ngff.PlaneWriter, res oct.Resources) (layer, side, workers int, err error) {
	need := func(layer, side, workers int) float64 {
		each := g.boxVoxels([3]int{layer, side, side})*float64(4+g.in.DType.Size()) + float64(g.in.Array.ScratchBytes(false))
		return float64(w.Bytes()) + 4*float64(layer)*float64(g.shape[1])*float64(g.shape[2]) + float64(workers)*each
	}
	batch := w.Batch()
	side, workers = 128, max(1, res.Workers)
	room := float64(res.Mem)
	for workers > 1 && need(batch, side, workers) > room {
		workers--
	}
	for side > 16 && need(batch, side, workers) > room {
		side /= 2
	}
	if n := need(batch, side, workers); n > room {
		return 0, 0, 0, res.TooLittle(int64(min(n, math.MaxInt64/4)), "%s: resampling planes of %d × %d voxels", g.in.Where, g.shape[1], g.shape[2])
	}
	for layer = batch; layer < 64 && layer < g.shape[0] && need(layer+batch, side, workers) <= room; {
		layer += batch
	}
	tiles := mem.Product((g.shape[1]+side-1)/side, (g.shape[2]+side-1)/side)
	res.Crew(oct.Team{What: fmt.Sprintf("resampling %d planes at a time in tiles of %d × %d voxels", layer, side, side), Workers: workers, Pieces: tiles,
		Each: int64(need(0, side, 1)) - int64(w.Bytes()), All: int64(min(need(batch, 128, res.Busy(tiles)), math.MaxInt64/4))})
	return layer, side, workers, nil
}

// boxVoxels returns how many voxels of the input a box of the output needs at most.
func (g *grid) boxVoxels(shape [3]int) float64 {
	n := 1.0
	for i := range 3 {
		reach := 3.0
		for b := range 3 {
			reach += math.Abs(g.m[i][b]) * float64(shape[b]-1)
		}
		n *= min(reach, float64(g.in.Shape[i]))
	}
	return n
}

// sampler is a worker's memory: a box of the input.
type sampler struct {
	*grid
	memory []byte
	voxels []float32
	raw    []byte
}

func (g *grid) newSampler(shape [3]int) (*sampler, error) {
	n := int(g.boxVoxels(shape))
	b, err := mem.Alloc(n * (4 + g.in.DType.Size()))
	if err != nil {
		return nil, err
	}
	return &sampler{g, b, dtype.Slice[float32](b[:4*n]), b[4*n:]}, nil
}

// at returns the place of an output voxel along axis i of the input.
func (g *grid) at(i, z, y, x int) float64 {
	return g.offset[i] + float64(g.m[i][0]*float64(z)) + float64(g.m[i][1]*float64(y)) + float64(g.m[i][2]*float64(x))
}

// fill makes a box of the output. dst begins at its first voxel and has the output's rows and planes.
func (s *sampler) fill(ctx context.Context, dst []float32, from, shape [3]int) error {
	var low, size [3]int
	for i := range 3 {
		a, b := math.Inf(1), math.Inf(-1)
		for corner := range 8 {
			p := s.at(i, from[0]+corner>>2&1*(shape[0]-1), from[1]+corner>>1&1*(shape[1]-1), from[2]+corner&1*(shape[2]-1))
			a, b = min(a, p), max(b, p)
		}
		n := float64(s.in.Shape[i])
		low[i] = int(min(max(math.Floor(a), 0), n))
		size[i] = int(min(max(math.Floor(b)+2, 0), n)) - low[i]
		if a > n-0.5 || b < -0.5 || size[i] < 1 {
			size[i] = 0
		}
	}
	empty := size[0]*size[1]*size[2] == 0
	if !empty {
		if err := s.in.Read(ctx, s.voxels, s.raw, low, size); err != nil {
			return err
		}
	}
	for z := range shape[0] {
		for y := range shape[1] {
			row := dst[(z*s.shape[1]+y)*s.shape[2]:][:shape[2]]
			if empty {
				clear(row)
				continue
			}
			for x := range row {
				row[x] = s.sample(low, size, from[0]+z, from[1]+y, from[2]+x)
			}
		}
	}
	return nil
}

// sample returns the input at an output voxel: linear between voxels, the outermost repeated by half a voxel, 0
// outside.
func (s *sampler) sample(low, size [3]int, z, y, x int) float32 {
	var i, j [3]int
	var t [3]float64
	for d := range 3 {
		p, last := s.at(d, z, y, x), s.in.Shape[d]-1
		if !(p >= -0.5 && p <= float64(last)+0.5) {
			return 0
		}
		p = min(max(p, 0), float64(last))
		k := int(p)
		t[d] = p - float64(k)
		i[d], j[d] = k-low[d], min(k+1, last)-low[d]
	}
	row := func(z, y int) float64 {
		r := s.voxels[(z*size[1]+y)*size[2]:]
		return mix(float64(r[i[2]]), float64(r[j[2]]), t[2])
	}
	return float32(mix(mix(row(i[0], i[1]), row(i[0], j[1]), t[1]), mix(row(j[0], i[1]), row(j[0], j[1]), t[1]), t[0]))
}

func mix(a, b, t float64) float64 { return a + float64((b-a)*t) }
