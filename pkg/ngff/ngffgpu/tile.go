package ngffgpu

import (
	"cmp"
	"context"

	"strata/pkg/gpu"
	"strata/pkg/gpu/kernels"
	"strata/pkg/gpu/trial"
	"strata/pkg/mem"
	"strata/pkg/ngff"
	"strata/pkg/zarr"
)

// Tile is a tile being copied from the device to be stored. Only one goroutine at a time may use it.
type Tile struct {
	*Writer
	way         way // as the writer's, or whole
	start, dims []int
	shape       point
	src         gpu.Span
	elements    []byte // page-locked, of a tile that comes down as it is
	list        []chunk

	gathered, parts, tables       gpu.Span // device memory: see plan
	partsHost, tablesHost, chunks []byte   // page-locked
	tabled                        int64    // of tables that are in use

	device []*gpu.Buffer // to be released
	host   []*mem.Buffer

	holds bool // it is counted as holding memory

	piece *trial.Piece   // of a trial; nil: none
	watch [2]trial.Watch // of a piece that is timed
}

// watched asks the trial for the way of the tile, and watches work queued for it from now on. While the
// encoder's kernels are being loaded, the host encodes.
func (t *Tile) watched(s *gpu.Stream) {
	if t.trial == nil {
		return
	}
	if !t.warm.Load() {
		t.way = whole
		return
	}
	if t.piece = t.trial.Next(); t.piece.Way > 0 {
		t.way = whole
	}
	if t.piece.Timed() && t.watch[0].Begin(s) != nil {
		t.piece.Drop()
	}
}

// timed reports whether the trial wants to know how long the tile takes.
func (t *Tile) timed() bool { return t.piece != nil && t.piece.Timed() }

// Write stores the tile, once the stream that it began on has been waited for, and releases it. s may be
// another, idle stream.
func (t *Tile) Write(ctx context.Context, s *gpu.Stream) error {
	defer t.Release()
	if !t.timed() || t.watch[1].Begin(s) != nil {
		return t.write(ctx, s)
	}
	err := t.write(ctx, s)
	t.watch[1].End(s)
	if err = cmp.Or(err, s.Wait()); err != nil {
		return err
	}
	queued, err := t.watch[0].Seconds()
	written, other := t.watch[1].Seconds()
	if cmp.Or(err, other) == nil {
		t.piece.Took(t.bytes(t.dims), queued+written)
	}
	return nil
}

// write is the body of Write, without releasing the tile.
func (t *Tile) write(ctx context.Context, s *gpu.Stream) error {
	if t.elements != nil {
		return t.out.WriteTile(ctx, t.start, t.dims, t.elements)
	}
	chunks, release, err := t.stored(ctx, s)
	defer release()
	if err != nil {
		return err
	}
	return t.out.StoreTile(ctx, t.start, t.dims, t.complete(chunks))
}

// Release discards a tile, once the stream that it began on has been waited for. After Write, on a second
// call, and for nil it does nothing, so that it can be deferred.
func (t *Tile) Release() {
	if t == nil {
		return
	}
	t.free()
	t.piece.Drop()
	for i := range t.watch {
		_ = t.watch[i].Close() // a lost device has them no more
	}
	t.held.give(t)
}

// free releases the tile's memory.
func (t *Tile) free() {
	for _, b := range t.device {
		b.Release()
	}
	for _, b := range t.host {
		b.Release()
	}
	t.device, t.host = nil, nil
}

// begin queues the copy of the elements, from which the host makes everything else.
func (t *Tile) begin(s *gpu.Stream) (err error) {
	if t.elements, err = t.pinned(t.bytes(t.dims)); err == nil {
		s.Download(t.elements, t.src)
	}
	return err
}

// leave queues the work by which the tile leaves in stored form. After an error of memory it may still come
// down unencoded.
func (t *Tile) leave(s *gpu.Stream) error {
	if err := t.plan(); err != nil {
		t.free() // nothing is queued
		return err
	}
	if err := t.gather(s); err != nil {
		return err
	}
	if err := t.halve(s); err != nil {
		return err
	}
	if t.way == raw {
		for i := range t.list {
			s.Download(t.raw(i), t.list[i].raw)
		}
	}
	return nil
}

// raw returns the place where the elements of a chunk come down.
func (t *Tile) raw(i int) []byte { return t.chunks[int64(i)*t.chunkBytes:][:t.chunkBytes] }

// stored returns the chunks in stored form, valid until they are released.
func (t *Tile) stored(ctx context.Context, s *gpu.Stream) (chunks []zarr.Stored, release func(), err error) {
	if t.way == packed {
		return t.pack(ctx, s)
	}
	chunks = make([]zarr.Stored, len(t.list))
	for i := range t.list {
		if t.way == direct {
			chunks[i] = t.straightly(ctx, t.list[i].raw)
		} else {
			chunks[i].Bytes = t.raw(i)
		}
	}
	return chunks, func() {}, nil
}

// complete returns the chunks with their contributions to level 1.
func (t *Tile) complete(chunks []zarr.Stored) []ngff.StoredChunk {
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

// memory returns device memory until Release; nothing for 0 bytes.
func (t *Tile) memory(n int64) (gpu.Span, error) {
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

// pinned returns page-locked memory until Release.
func (t *Tile) pinned(n int64) ([]byte, error) {
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

// alignment is the alignment of every part of a buffer.
const alignment = 16

func aligned(n int64) int64 { return (n + alignment - 1) / alignment * alignment }

// page is the unit that cuFile moves straight, if files and memory are aligned alike.
const page = 4096

// step returns the alignment of gathered chunks.
func (w *Writer) step() int64 {
	if w.way == direct {
		return page
	}
	return alignment
}

// apart returns the distance of gathered chunks.
func (w *Writer) apart() int64 { return (w.chunkBytes + w.step() - 1) / w.step() * w.step() }

// gatheredBytes returns the room for n gathered chunks at any offset.
func (w *Writer) gatheredBytes(n int64) int64 { return n*w.apart() + w.step() - alignment }

// plan finds the chunks, and takes memory for those that are gathered, for parts of level
// 1 with strips, and for tables.
func (t *Tile) plan() (err error) {
	grid, origin := t.grid(t.shape), padded(t.start, 0)
	gathers := false
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
		c.part = t.out.Part(index[rank-len(t.start):])
		if !t.inPlace(&c) {
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
		n := int64(len(t.list))
		if t.gathered, err = t.memory(t.gatheredBytes(n)); err != nil {
			return err
		}
		ahead := (t.step() - int64(t.gathered.Address())%t.step()) % t.step()
		t.gathered = t.gathered.From(ahead, n*t.apart())
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
	if t.tablesHost, err = t.pinned(n); err != nil {
		return err
	}
	if t.way == raw {
		t.chunks, err = t.pinned(int64(len(t.list)) * t.chunkBytes)
	}
	return err
}

// inPlace reports whether a chunk lies in the tile in stored form, and is not needed once the tile is the
// caller's again.
func (t *Tile) inPlace(c *chunk) bool {
	return t.way == raw && t.inRow(t.shape) && c.valid == t.chunk && (int64(t.src.Address())+c.from)%alignment == 0
}

// table returns a part of the memory for tables.
func (t *Tile) table(n int64) ([]byte, gpu.Span) {
	at := t.tabled
	t.tabled += aligned(n)
	return t.tablesHost[at : at+n], t.tables.From(at, n)
}

// halve queues the computation of the chunks' part of level 1, and its copy to the host.
func (t *Tile) halve(s *gpu.Stream) error {
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
				if err := h.Run(s, t.parts.From(at, n), src, table, onDevice); err != nil {
					return err
				}
				at += n
			}
		}
	}
	if err := t.strips(s); err != nil {
		return err
	}
	s.Download(t.partsHost, t.parts)
	return nil
}

// halving returns the computation of a chunk's part of level 1 from its stored elements.
func (t *Tile) halving(c *chunk) kernels.Halving {
	made := padded(c.part.Made.Shape, 1)
	h := kernels.Halving{Kind: t.kind, Out: [3]int(made[2:]), In: [3]int(t.chunk[2:]), Origin: [3]int(c.start[2:])}
	for d, taps := range c.part.Taps {
		if at := rank - len(c.part.Taps) + d - 2; at >= 0 {
			h.Taps[at] = taps
		}
	}
	return h
}

// strips queues the copy of the parts that neighbours of the chunks need.
func (t *Tile) strips(s *gpu.Stream) error {
	var boxes []kernels.Part
	from := kernels.Strides(t.shape[:], t.size)
	for i := range t.list {
		c := &t.list[i]
		for k, strip := range c.part.Strips {
			shape, start := padded(strip.Shape, 1), padded(strip.Start, 0)
			src := c.from
			for d := range rank {
				src += int64(start[d]-c.start[d]) * from[d]
			}
			boxes = append(boxes, kernels.Part{Shape: shape[:], Src: src, Dst: c.strips[k], From: from, To: kernels.Strides(shape[:], t.size)})
		}
	}
	return t.scatter(s, t.parts, boxes)
}

// gather queues the assembly of chunks that do not lie in the tile in stored form. Elements beyond the image
// get the fill value.
func (t *Tile) gather(s *gpu.Stream) error {
	var boxes []kernels.Part
	from, to := kernels.Strides(t.shape[:], t.size), kernels.Strides(t.chunk[:], t.size)
	for i := range t.list {
		c := &t.list[i]
		if t.inPlace(c) {
			c.raw = t.src.From(c.from, t.chunkBytes)
			continue
		}
		at := int64(i) * t.apart()
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
	return t.scatter(s, t.gathered, boxes)
}

func (t *Tile) scatter(s *gpu.Stream, dst gpu.Span, boxes []kernels.Part) error {
	if len(boxes) == 0 {
		return nil
	}
	table, onDevice := t.table(kernels.ScatterTable(len(boxes)))
	return kernels.Scatter(s, dst, t.src, boxes, t.fill, table, onDevice)
}
