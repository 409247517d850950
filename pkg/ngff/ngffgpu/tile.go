package ngffgpu

import (
	"strata/pkg/gpu"
	"strata/pkg/gpu/kernels"
	"strata/pkg/mem"
	"strata/pkg/ngff"
	"strata/pkg/zarr"
)

// tile is a tile on its way out of the device.
type tile struct {
	*Writer
	stream *gpu.Stream
	shape  point
	src    gpu.Span
	list   []chunk

	gathered, parts, tables gpu.Span // device memory: see plan
	partsHost, tablesHost   []byte
	tabled                  int64 // of tables that are in use

	device []*gpu.Buffer // to be released
	host   []*mem.Buffer
}

// chunk is a chunk of a tile.
type chunk struct {
	valid point // its shape in the image
	from  int64 // byte of the tile
	start point // in the image
	part  ngff.Part
	raw   gpu.Span // its elements as they are stored

	made   int64   // byte of the tile's parts
	strips []int64 // likewise
}

// memory is device memory until release; nothing for no bytes.
func (t *tile) memory(n int64) (gpu.Span, error) {
	if n == 0 {
		return gpu.Span{}, nil
	}
	b, err := t.Writer.device.Memory().Get(n)
	if err != nil {
		return gpu.Span{}, err
	}
	t.device = append(t.device, b)
	return b.Span, nil
}

// pinned is page-locked memory until release.
func (t *tile) pinned(n int64) ([]byte, error) {
	if n == 0 {
		return nil, nil
	}
	b, err := t.Writer.device.Host(int(n))
	if err != nil {
		return nil, err
	}
	t.host = append(t.host, b)
	return b.B, nil
}

// release gives all memory back. Nothing uses it any more.
func (t *tile) release() {
	for _, b := range t.device {
		b.Release()
	}
	for _, b := range t.host {
		b.Release()
	}
}

// alignment is what every part of a buffer begins at a multiple of.
const alignment = 16

func aligned(n int64) int64 { return (n + alignment - 1) / alignment * alignment }

// plan finds the chunks, and takes memory for those that are gathered, for parts of level
// 1 with strips, and for tables.
func (t *tile) plan(start []int) (err error) {
	grid, origin := t.grid(t.shape), padded(start, 0)
	inRow, gathers := t.inRow(t.shape), false
	parts, boxes, taps := int64(0), 0, int64(0)
	for i := range grid.volume() {
		var c chunk
		var index point
		at, n := 0, 1
		for d, r := rank-1, i; d >= 0; d-- {
			lo := r % grid[d] * t.chunk[d]
			c.valid[d] = min(t.chunk[d], t.shape[d]-lo)
			c.start[d] = origin[d] + lo
			index[d] = c.start[d] / t.chunk[d]
			at += lo * n
			n *= t.shape[d]
			r /= grid[d]
		}
		c.from = int64(at) * int64(t.size)
		c.part = t.out.Part(index[rank-len(start):])
		if !inRow || c.valid != t.chunk || c.from%alignment != 0 {
			gathers = true
			boxes += 1 + rank
		}
		if c.part.Made.Shape != nil {
			c.made = parts
			parts += aligned(t.bytes(c.part.Made.Shape))
			h := t.halving(&c)
			taps += aligned(h.TableBytes())
		}
		for _, s := range c.part.Strips {
			c.strips = append(c.strips, parts)
			parts += aligned(t.bytes(s.Shape))
			boxes++
		}
		t.list = append(t.list, c)
	}
	if gathers {
		if t.gathered, err = t.memory(int64(len(t.list)) * aligned(t.chunkBytes)); err != nil {
			return err
		}
	}
	if t.parts, err = t.memory(parts); err != nil {
		return err
	}
	if t.partsHost, err = t.pinned(parts); err != nil {
		return err
	}
	n := taps + kernels.ScatterTable(boxes)
	if t.tables, err = t.memory(n); err != nil {
		return err
	}
	t.tablesHost, err = t.pinned(n)
	return err
}

// table is a part of the memory for tables.
func (t *tile) table(n int64) ([]byte, gpu.Span) {
	at := t.tabled
	t.tabled += aligned(n)
	return t.tablesHost[at : at+n], t.tables.From(at, n)
}

// halve queues the making of what the chunks give to level 1, and brings it down.
func (t *tile) halve() error {
	for i := range t.list {
		c := &t.list[i]
		if c.part.Made.Shape == nil {
			continue
		}
		h := t.halving(c)
		n := t.bytes(h.Out[:])
		if n == 0 {
			continue
		}
		table, onDevice := t.table(h.TableBytes())
		volume := int64(t.chunk[2]) * int64(t.chunk[3]) * int64(t.chunk[4]) * int64(t.size)
		at := c.made
		for k := range c.valid[0] {
			for l := range c.valid[1] {
				src := c.raw.From(int64(k*t.chunk[1]+l)*volume, volume)
				if err := h.Run(t.stream, t.parts.From(at, n), src, table, onDevice); err != nil {
					return err
				}
				at += n
			}
		}
	}
	if err := t.strips(); err != nil {
		return err
	}
	t.stream.Download(t.partsHost, t.parts)
	return nil
}

// halving is how a chunk's part of level 1 is made from the elements as they are stored.
func (t *tile) halving(c *chunk) kernels.Halving {
	made := padded(c.part.Made.Shape, 1)
	h := kernels.Halving{Kind: t.kind, Out: [3]int(made[2:]), In: [3]int(t.chunk[2:]), Origin: [3]int(c.start[2:])}
	for d, taps := range c.part.Taps {
		if at := rank - len(c.part.Taps) + d - 2; at >= 0 {
			h.Taps[at] = taps
		}
	}
	return h
}

// strips queues the copying of what neighbours of the chunks need.
func (t *tile) strips() error {
	var boxes []kernels.Part
	from := t.strides(t.shape)
	for i := range t.list {
		c := &t.list[i]
		for k, s := range c.part.Strips {
			shape, start := padded(s.Shape, 1), padded(s.Start, 0)
			src := c.from
			for d := range rank {
				src += int64(start[d]-c.start[d]) * from[d]
			}
			boxes = append(boxes, kernels.Part{Shape: shape[:], Src: src, Dst: c.strips[k], From: from, To: t.strides(shape)})
		}
	}
	return t.scatter(t.parts, boxes)
}

// gather queues the putting together of chunks that do not lie in the tile as they are
// stored: what lies beyond the image gets the fill value.
func (t *tile) gather() error {
	var boxes []kernels.Part
	from, to := t.strides(t.shape), t.strides(t.chunk)
	inRow := t.inRow(t.shape)
	for i := range t.list {
		c := &t.list[i]
		if inRow && c.valid == t.chunk && c.from%alignment == 0 {
			c.raw = t.src.From(c.from, t.chunkBytes)
			continue
		}
		at := int64(i) * aligned(t.chunkBytes)
		c.raw = t.gathered.From(at, t.chunkBytes)
		valid := c.valid
		boxes = append(boxes, kernels.Part{Shape: valid[:], Src: c.from, Dst: at, From: from, To: to})
		for d := range rank {
			if valid[d] == t.chunk[d] {
				continue
			}
			// behind the image along d, what is in it along the axes before
			fill := t.chunk
			copy(fill[:d], valid[:d])
			fill[d] -= valid[d]
			boxes = append(boxes, kernels.Part{Shape: fill[:], Src: -1, Dst: at + int64(valid[d])*to[d], To: to})
		}
	}
	return t.scatter(t.gathered, boxes)
}

func (t *tile) scatter(dst gpu.Span, boxes []kernels.Part) error {
	if len(boxes) == 0 {
		return nil
	}
	table, onDevice := t.table(kernels.ScatterTable(len(boxes)))
	return kernels.Scatter(t.stream, dst, t.src, boxes, t.fill, table, onDevice)
}

// strides are the distances in bytes between neighbours in a volume of a shape.
func (t *tile) strides(shape point) []int64 {
	s, n := make([]int64, rank), int64(t.size)
	for d := rank - 1; d >= 0; d-- {
		s[d] = n
		n *= int64(shape[d])
	}
	return s
}

// stored are the chunks for the image, once the parts are there.
func (t *tile) stored(chunks []zarr.Stored) []ngff.StoredChunk {
	out := make([]ngff.StoredChunk, len(t.list))
	for i := range t.list {
		c := &t.list[i]
		out[i].Stored = chunks[i]
		if c.part.Made.Shape != nil {
			out[i].Made = t.partsHost[c.made:][:t.bytes(c.part.Made.Shape)]
		}
		for k, s := range c.part.Strips {
			out[i].Strips = append(out[i].Strips, t.partsHost[c.strips[k]:][:t.bytes(s.Shape)])
		}
	}
	return out
}

// raw queues the copies that bring chunks down as their elements.
func (t *tile) raw() ([]zarr.Stored, error) {
	host, err := t.pinned(int64(len(t.list)) * t.chunkBytes)
	if err != nil {
		return nil, err
	}
	chunks := make([]zarr.Stored, len(t.list))
	for i := range t.list {
		b := host[int64(i)*t.chunkBytes:][:t.chunkBytes]
		t.stream.Download(b, t.list[i].raw)
		chunks[i].Bytes = b
	}
	return chunks, nil
}
