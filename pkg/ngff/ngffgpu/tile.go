package ngffgpu

import (
	"strata/pkg/gpu"
	"strata/pkg/gpu/kernels"
	"strata/pkg/mem"
	"strata/pkg/zarr"
)

// tile is a tile on its way out of the device.
type tile struct {
	*Writer
	stream *gpu.Stream
	shape  []int
	src    gpu.Span

	chunks []zarr.Stored // once the stream has been waited for
	below  []byte        // likewise

	device []*gpu.Buffer // to be released
	host   []*mem.Buffer
	taps   *kernels.Downsampler
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
	if t.taps != nil {
		t.taps.Release()
	}
}

// make queues all that the device does for the tile, whose part of level 1 has that shape,
// and the copies that bring it down.
func (t *tile) make(below []int) error {
	if err := t.halve(below); err != nil {
		return err
	}
	raw, err := t.elements()
	if err != nil {
		return err
	}
	host, err := t.pinned(int64(len(raw)) * t.chunkBytes)
	if err != nil {
		return err
	}
	for i, r := range raw {
		b := host[int64(i)*t.chunkBytes:][:t.chunkBytes]
		t.stream.Download(b, r)
		t.chunks = append(t.chunks, zarr.Stored{Bytes: b})
	}
	return nil
}

// halve queues the making of the part of level 1.
func (t *tile) halve(shape []int) error {
	if shape == nil {
		return nil
	}
	n := t.tileBytes(shape)
	dst, err := t.memory(n)
	if err != nil {
		return err
	}
	if t.below, err = t.pinned(n); err != nil {
		return err
	}
	v, z := t.volumes(t.shape)
	if t.taps, err = kernels.NewDownsampler(t.stream, v, z, t.kind); err != nil {
		return err
	}
	if err := t.taps.Run(t.stream, dst, t.src); err != nil {
		return err
	}
	t.stream.Download(t.below, dst)
	return nil
}

// elements are the chunks of the tile, in C order, as the elements that are stored: those
// that do not lie so in the tile are gathered.
func (t *tile) elements() ([]gpu.Span, error) {
	grid, full := t.grid(t.shape), padded(t.shape, 1)
	var stride point // elements, in the tile
	for d, n := rank-1, 1; d >= 0; d-- {
		stride[d] = n
		n *= full[d]
	}
	var raw []gpu.Span
	var gathered gpu.Span
	for i := range grid.volume() {
		var valid point // shape of the chunk in the tile
		at := 0         // element of the tile
		for d, r := rank-1, i; d >= 0; d-- {
			lo := r % grid[d] * t.chunk[d]
			valid[d] = min(t.chunk[d], full[d]-lo)
			at += lo * stride[d]
			r /= grid[d]
		}
		from := int64(at) * int64(t.size)
		if valid == t.chunk && t.inRow(full) && from%16 == 0 {
			raw = append(raw, t.src.From(from, t.chunkBytes))
			continue
		}
		if gathered.Bytes() == 0 {
			var err error
			if gathered, err = t.memory(int64(grid.volume()) * t.chunkBytes); err != nil {
				return nil, err
			}
		}
		dst := gathered.From(int64(i)*t.chunkBytes, t.chunkBytes)
		if err := t.gather(dst, from, valid, stride); err != nil {
			return nil, err
		}
		raw = append(raw, dst)
	}
	return raw, nil
}

// gather queues the making of a chunk from what begins at a byte of the tile.
func (t *tile) gather(dst gpu.Span, from int64, valid, stride point) error {
	out := [3]int{t.chunk[2], t.chunk[3], t.chunk[4]}
	volume := int64(out[0]) * int64(out[1]) * int64(out[2]) * int64(t.size)
	for i := range t.chunk[0] {
		for j := range t.chunk[1] {
			box := [3]int{valid[2], valid[3], valid[4]}
			src := from + (int64(i)*int64(stride[0])+int64(j)*int64(stride[1]))*int64(t.size)
			if i >= valid[0] || j >= valid[1] {
				box, src = [3]int{}, 0
			}
			to := dst.From(int64(i*t.chunk[1]+j)*volume, volume)
			if err := kernels.Gather(t.stream, to, t.src.From(src, t.src.Bytes()-src), out, box, int64(stride[2]), int64(stride[3]), t.fill); err != nil {
				return err
			}
		}
	}
	return nil
}
