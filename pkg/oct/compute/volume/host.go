package volume

import (
	"context"

	"strata/pkg/dtype"
	"strata/pkg/mem"
	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/work"
)

// host is a [Memory] on the host.
type host struct {
	sticky
	ctx     context.Context
	res     *oct.Resources
	own     []growing // scratch of each worker
	readers int       // maximum number of workers that read at a time
	reader  int64     // bytes that each takes
	strips  [2]growing

	canvas *Canvas
	writer *ngff.PlaneWriter
	memory [][]byte // of the planes
	pool   []Plane  // free planes
	made   int      // planes allocated so far, free or not
	most   int      // maximum number of planes
	zero   []float32
	raw    []float32
}

// OpenHost opens a memory on the host, even if res has a device.
func OpenHost(ctx context.Context, sources []*Source, res *oct.Resources) Memory {
	h := &host{ctx: ctx, res: res, own: make([]growing, max(res.Workers, 1)), reader: 1}
	for _, s := range sources {
		h.reader = max(h.reader, s.ReaderBytes())
	}
	// a quarter of the memory at most, but one there must be
	h.readers = int(min(int64(len(h.own)), max(1, res.Mem/4/h.reader)))
	res.Crew(oct.Team{What: "reading slices", Workers: h.readers, Each: h.reader, All: 4 * int64(res.Busy(0)) * h.reader})
	return h
}

// reading returns the memory that reading takes.
func (h *host) reading() int64 { return h.reader * int64(h.readers) }

func (h *host) Close() error {
	if h.writer != nil {
		h.writer.Abort()
	}
	h.free()
	return nil
}

// free releases the memory.
func (h *host) free() {
	for i := range h.own {
		h.own[i].free()
	}
	for i := range h.strips {
		h.strips[i].free()
	}
	for _, b := range h.memory {
		mem.Free(b)
	}
	h.memory = nil
}

// each calls f for 0 to n−1, started in increasing order, on at most limit workers. Each worker has its own
// scratch memory.
func (h *host) each(n, limit int, f func(scratch *growing, i int) error) error {
	return work.Each(h.ctx, min(len(h.own), limit), n, func(worker, i int) error { return f(&h.own[worker], i) })
}

// growing is scratch memory outside the Go heap that grows on demand.
type growing struct{ b []byte }

// get returns n bytes of undefined content, valid until the next get.
func (g *growing) get(n int) ([]byte, error) {
	if len(g.b) < n {
		g.free()
		var err error
		if g.b, err = mem.Alloc(n); err != nil {
			return nil, err
		}
	}
	return g.b[:n], nil
}

func (g *growing) free() {
	mem.Free(g.b)
	g.b = nil
}

// alloc allocates memory that lives until Close.
func (h *host) alloc(elements int) ([]float32, error) {
	b, err := mem.Alloc(4 * elements)
	if err != nil {
		return nil, err
	}
	h.memory = append(h.memory, b)
	return dtype.Slice[float32](b), nil
}

// Begin plans with all remaining memory. Planes take memory only when they are first used.
func (h *host) Begin(c *Canvas) {
	h.try(func() (err error) {
		h.canvas = c
		if h.writer, err = ngff.CreatePlanes(h.ctx, c.Out, "", c.Image, c.Levels); err != nil {
			return err
		}
		area := int64(c.area())
		other := h.writer.Bytes() + 4*area + max(h.reading(), 4*c.RawArea*int64(len(h.own))) // and a plane of zeros
		if c.Refined {
			other += 72 * area // sums, means and spectra of two planes
		}
		size := func(planes, raw int) int64 { return other + 4*area*int64(planes) + 4*c.RawArea*int64(raw) }
		least := c.Least(h.Batch())
		if need := size(least, c.leastRaw()); need > h.res.Mem {
			return h.res.TooLittle(need, "%s", c.what(least))
		}
		var raw int
		h.most, raw = c.fit(least, c.planes()+least, c.RawDepth, max(size(least, c.leastRaw()), h.res.Spare()), size)
		if h.raw, err = h.alloc(raw * int(c.RawArea)); err != nil {
			return err
		}
		h.adopt(least)
		return nil
	})
}

// adopt divides the memory of the strips into planes, if that leaves room for at least least further planes: its
// pages need not be cleared again. Otherwise it frees the strips.
func (h *host) adopt(least int) {
	area := h.canvas.area()
	size := (4*area + 63) &^ 63
	for i := range h.strips {
		g := &h.strips[i]
		n := len(g.b) / size
		if n == 0 || h.most-1 < max(least, h.made+n) {
			g.free()
			continue
		}
		h.most-- // what is left of the strip
		for k := range n {
			h.pool = append(h.pool, Plane{host: dtype.Slice[float32](g.b[k*size:][: 4*area : 4*area]), pitch: h.canvas.Image.Shape[2]})
		}
		h.made += n
	}
}

func (h *host) Batch() int {
	if h.writer == nil {
		return 1
	}
	return h.writer.Batch()
}

func (h *host) Room(int) int { return h.most - h.made + len(h.pool) }

func (h *host) Take(n int) (out []Plane) {
	h.try(func() error {
		for range n {
			if k := len(h.pool); k > 0 {
				out = append(out, h.pool[k-1])
				h.pool = h.pool[:k-1]
				continue
			}
			v, err := h.alloc(h.canvas.area())
			if err != nil {
				return err
			}
			h.made++
			out = append(out, Plane{host: v, pitch: h.canvas.Image.Shape[2]})
		}
		return nil
	})
	return out
}

func (h *host) Give(planes []Plane) { h.pool = append(h.pool, planes...) }

func (h *host) Write(planes []Plane) {
	h.try(func() (err error) {
		v := make([][]float32, len(planes))
		for i, p := range planes {
			if v[i] = p.host; !p.There() {
				if h.zero == nil {
					if h.zero, err = h.alloc(h.canvas.area()); err != nil {
						return err
					}
				}
				v[i] = h.zero
				continue
			}
			h.pool = append(h.pool, p)
		}
		return h.writer.Write(h.ctx, v)
	})
}

func (h *host) Finish() {
	h.try(func() error { return h.writer.Close(h.ctx) })
}
