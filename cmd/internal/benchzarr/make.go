package benchzarr

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"strata/pkg/atomic"
	"strata/pkg/bench"
	"strata/pkg/cli"
	"strata/pkg/dtype"
	"strata/pkg/units"
	"strata/pkg/zarr"
	"strata/pkg/zarr/codec"
	"strata/pkg/zarr/store"
)

// plan describes an array to generate.
type plan struct {
	format int
	codec  string // as the flag --codec
	chunks []int
	shard  []int
	shape  []int
	content
}

// defaultChunks is the default edge of chunks.
const defaultChunks = 128

// planOf returns the plan that the flags describe, without a shape if none is given.
func planOf(r *cli.Run) (plan, error) {
	o := r.Options
	p := plan{format: o.ZarrFormat, codec: o.Codec, chunks: o.Chunks, shard: o.Shard, shape: r.Ints("shape")}
	p.ratio, p.seed = r.Float("ratio"), uint64(r.Int("seed"))
	if p.format == 0 {
		p.format = 3
	}
	var err error
	if p.elem, err = dtype.Parse(r.String("dtype")); err != nil {
		return p, cli.Usage("flag --dtype: %w", err)
	}
	if err := checkContent(p.elem); err != nil {
		return p, cli.Usage("flag --dtype: %w", err)
	}
	if p.chunks == nil {
		n := 3
		if p.shape != nil {
			n = len(p.shape)
		}
		p.chunks = slices.Repeat([]int{defaultChunks}, n)
	}
	return p, nil
}

// complete gives the plan a shape of at most the given size, if it has none, and checks it.
func (p *plan) complete(size int64) error {
	unit := p.chunks
	if p.shard != nil {
		unit = p.shard
	}
	if p.shape == nil {
		n := size / (int64(p.elem.Size()) * Volume(unit))
		if n < 1 {
			return cli.Usage("flag --size: %s is less than a chunk or shard of %v %s: want at least %s", units.FormatSize(size), unit, p.elem, units.FormatSize(int64(p.elem.Size())*Volume(unit)))
		}
		p.shape = block(unit, n)
	}
	if len(p.chunks) != len(p.shape) || p.shard != nil && len(p.shard) != len(p.shape) {
		return cli.Usage("the array has %d axes, its chunks %d and its shards %d: give the same number", len(p.shape), len(p.chunks), len(p.shard))
	}
	for d := range p.shard {
		if p.shard[d]%p.chunks[d] != 0 {
			return cli.Usage("shards of %v are not a multiple of chunks of %v", p.shard, p.chunks)
		}
	}
	if p.shard != nil && p.format == 2 {
		return cli.Usage("shards need Zarr format 3: change the format or leave the shards out")
	}
	if _, err := p.chain(); err != nil {
		return cli.Usage("codec %s in Zarr format %d: %w", p.codec, p.format, err)
	}
	return nil
}

// block returns the shape of n units, about as many along each axis.
func block(unit []int, n int64) []int {
	grid := slices.Repeat([]int64{1}, len(unit))
	all := int64(1)
	for d := len(unit) - 1; all*2 <= n; d = (d + len(unit) - 1) % len(unit) {
		grid[d] *= 2
		all *= 2
	}
	grid[0] = n / (all / grid[0])
	shape := make([]int, len(unit))
	for d := range shape {
		shape[d] = int(grid[d]) * unit[d]
	}
	return shape
}

func (p *plan) chain() (codec.Chain, error) { return codec.FromFlag(p.codec, p.elem, p.format) }

func (p *plan) spec() (zarr.Spec, error) {
	chain, err := p.chain()
	return zarr.Spec{Format: p.format, Shape: p.shape, Chunks: p.chunks, Shard: p.shard, DType: p.elem, Codecs: chain}, err
}

func (p *plan) bytes() int64 { return int64(p.elem.Size()) * Volume(p.shape) }

// axes returns the plan in the form of results.
func (p *plan) axes() bench.Axes {
	a := bench.Axes{{Name: "format", Value: "v" + strconv.Itoa(p.format)}, {Name: "codec", Value: p.codec}, {Name: "chunks", Value: cross(p.chunks)}}
	if p.shard != nil {
		a = append(a, bench.Axis{Name: "shard", Value: cross(p.shard)})
	}
	return a
}

// cross formats a shape for the axes of sweep: 64x64x64.
func cross(shape []int) string {
	var parts []string
	for _, n := range shape {
		parts = append(parts, strconv.Itoa(n))
	}
	return strings.Join(parts, "x")
}

// A Scratch is a temporary folder of the run. Remains of killed runs beside it are removed, too.
type Scratch struct {
	group *atomic.Group
	path  string
}

// NewScratch makes a folder in a place that has room for the needed bytes.
func NewScratch(r *cli.Run, tool, place string, need int64) (*Scratch, error) {
	info, err := os.Stat(place)
	switch {
	case err != nil:
		return nil, cli.BadInputf("%s: %w", place, reasonOf(err))
	case !info.IsDir():
		return nil, cli.Usage("%s is a file: want a folder in which arrays can be made", place)
	}
	var s unix.Statfs_t
	if err := unix.Statfs(place, &s); err == nil {
		if free := int64(s.Bavail) * int64(s.Bsize); free < need {
			return nil, fmt.Errorf("%s has %s free, %s are needed: choose another place or a smaller --size", place, units.FormatSize(free), units.FormatSize(need))
		}
	}
	g := atomic.NewGroup(atomic.Options{Warn: r.Warn})
	out, err := g.Folder(filepath.Join(place, tool+".tmp"), nil)
	if err != nil {
		return nil, err
	}
	return &Scratch{g, out.Work()}, nil
}

func reasonOf(err error) error {
	var p *os.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// File returns the path of a file in the folder.
func (s *Scratch) File(name string) string { return filepath.Join(s.path, name) }

// Remove removes the folder.
func (s *Scratch) Remove() { s.group.Abort() }

// create writes the metadata of the plan's array at a path.
func (p *plan) create(ctx context.Context, path string, sync bool, opts ...zarr.Option) (*zarr.Array, error) {
	spec, err := p.spec()
	if err != nil {
		return nil, err
	}
	return zarr.CreateArray(ctx, store.Folder(path, store.Sync(sync)), "", spec, opts...)
}

// StoredBytes returns the size of the files below a folder, without metadata.
func StoredBytes(ctx context.Context, folder string) (int64, error) {
	t := Target{Path: folder}
	list, err := t.files(ctx)
	n := int64(0)
	for _, path := range list {
		if base := filepath.Base(path); base == "zarr.json" || base == ".zarray" || base == ".zattrs" {
			continue
		}
		info, e := os.Stat(path)
		if e != nil {
			return 0, e
		}
		n += info.Size()
	}
	return n, err
}
