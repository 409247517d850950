package kernels

import (
	"slices"

	"strata/pkg/dtype"
	"strata/pkg/filter"
	"strata/pkg/gpu"
)

// Phase makes the correlation surfaces of planes that lie on a device, as
// [filter.Phase] does. One stream at a time may use it.
type Phase struct {
	ny, nx, my, mx int // of the planes, and of the transform
	rows, cols     *fft
	tables, work   *gpu.Buffer
	py, px, wy, wx gpu.Span
	a, b           gpu.Span // complex128
	magnitudes     gpu.Span
	stats          gpu.Span
}

// statsBytes is the size of a Stats in phase.cu.
const statsBytes = 8 * 8

// PhaseBytes is the device memory that a [Phase] of planes of height × width takes,
// about.
func PhaseBytes(height, width int) int64 {
	ny, nx := filter.SurfaceSize(height, width)
	return int64(ny)*int64(nx)*(2*16+2) + 64*int64(ny+nx) + 4*histogramBytes
}

// NewPhase prepares for planes of height × width pixels, both at least 1.
func NewPhase(s *gpu.Stream, height, width int) (p *Phase, err error) {
	t := filter.NewPhaseTables(height, width)
	p = &Phase{ny: height, nx: width, my: t.NY, mx: t.NX}
	defer func() {
		if err != nil {
			p.Release()
			p = nil
		}
	}()
	if p.rows, err = newFFT(s, p.mx); err != nil {
		return nil, err
	}
	if p.cols, err = newFFT(s, p.my); err != nil {
		return nil, err
	}
	table := slices.Concat(t.Y[0], t.Y[1], t.Y[2], t.X[0], t.X[1], t.X[2], t.WindowY, t.WindowX)
	if p.tables, err = bring(s, dtype.Bytes(table)); err != nil {
		return nil, err
	}
	p.py, p.px = p.tables.From(0, 24*int64(height)), p.tables.From(24*int64(height), 24*int64(width))
	windows := p.tables.From(24*int64(height+width), 8*int64(height+width))
	p.wy, p.wx = windows.From(0, 8*int64(height)), windows.From(8*int64(height), 8*int64(width))
	n := int64(p.my) * int64(p.mx)
	half := int64(p.my) * int64(p.mx/2+1)
	if p.work, err = s.Device().Memory().Get(2*16*n + 2*statsBytes + 4*half); err != nil {
		return nil, err
	}
	p.a, p.b = p.work.From(0, 16*n), p.work.From(16*n, 16*n)
	p.stats, p.magnitudes = p.work.From(32*n, 2*statsBytes), p.work.From(32*n+2*statsBytes, 4*half)
	return p, nil
}

// Release gives the memory back.
func (p *Phase) Release() {
	p.rows.release()
	p.cols.release()
	p.tables.Release()
	p.work.Release()
}

// Surface adds the correlation surface of two planes of float32 to sum, float32 of
// the size that filter.SurfaceSize says: filter.Phase.Surface to 1e-6 of the surface's
// highest value (sums are by trees, two planes share a transform, and the 99th
// percentile of the magnitudes is rounded to float32). It waits for the stream. It is
// false, and adds nothing, where there is nothing to compare.
func (p *Phase) Surface(s *gpu.Stream, sum, fixed, moving gpu.Span) (bool, error) {
	ok, err := p.transform(s, fixed, moving)
	if !ok || err != nil {
		return false, err
	}
	n := int64(p.my) * int64(p.mx)
	ny, nx := int32(p.my), int32(p.mx)
	r, free := p.a, p.b
	if r, free, err = p.both(s, r, free, false); err != nil {
		return false, err
	}
	cross, err := get(s.Device(), "phase", "phase_cross")
	if err != nil {
		return false, err
	}
	grid, block := threads(1, p.my, p.mx)
	s.Launch(cross, grid, block, r, free, p.magnitudes, ny, nx)
	r, free = free, r
	half := p.magnitudes.Bytes() / 4
	floor, err := nth(s, p.magnitudes, half, half-1-half/100)
	if err != nil {
		return false, err
	}
	whiten, err := get(s.Device(), "phase", "phase_whiten")
	if err != nil {
		return false, err
	}
	grid, block = blocks(n)
	s.Launch(whiten, grid, block, r, float64(floor), n)
	if r, _, err = p.both(s, r, free, true); err != nil {
		return false, err
	}
	add, err := get(s.Device(), "phase", "phase_add")
	if err != nil {
		return false, err
	}
	s.Launch(add, grid, block, r, sum, 1/float64(n), n)
	return true, s.Wait()
}

// transform queues the flattening of two planes into p.a, and finds out whether there is
// something to compare.
func (p *Phase) transform(s *gpu.Stream, fixed, moving gpu.Span) (bool, error) {
	fit, err := get(s.Device(), "phase", "phase_fit")
	if err != nil {
		return false, err
	}
	window, err := get(s.Device(), "phase", "phase_window")
	if err != nil {
		return false, err
	}
	s.Launch(fit, gpu.Dim{2, 1, 1}, gpu.Dim{512, 1, 1}, fixed, moving, p.py, p.px, p.stats, int32(p.ny), int32(p.nx))
	grid, block := threads(1, p.my, p.mx)
	s.Launch(window, grid, block, fixed, moving, p.py, p.px, p.wy, p.wx, p.stats, p.a, int32(p.ny), int32(p.nx), int32(p.my), int32(p.mx))
	host, err := s.Device().Host(2 * statsBytes)
	if err != nil {
		return false, err
	}
	defer host.Release()
	s.Download(host.B, p.stats)
	if err := s.Wait(); err != nil {
		return false, err
	}
	v := dtype.Slice[float64](host.B)
	return v[1] > 0 && v[statsBytes/8+1] > 0, nil
}

// both queues the transforms along both axes.
func (p *Phase) both(s *gpu.Stream, v, free gpu.Span, inverse bool) (result, other gpu.Span, err error) {
	if v, free, err = p.rows.run(s, v, free, int64(p.my), 1, inverse); err != nil {
		return v, free, err
	}
	return p.cols.run(s, v, free, 1, int64(p.mx), inverse)
}
