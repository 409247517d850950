package benchtiff

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"strata/cmd/internal/benchkit"
	"strata/cmd/internal/benchzarr"
	"strata/pkg/bench/boxes"
	"strata/pkg/cli"
	"strata/pkg/filelayer"
	"strata/pkg/images"
	"strata/pkg/mem"
	"strata/pkg/settings"
	"strata/pkg/work"
	"strata/pkg/zarr"
	"strata/pkg/zarr/store"
)

// Strata's ways to read uncompressed tiles, besides those of bench-zarr and [benchzarr.Pool].
const (
	inPlace    = "preadv"
	tilesAlone = "tiles"
)

// ownWays lists these ways, which read whole levels only.
var ownWays = []string{inPlace, tilesAlone, benchzarr.Pool}

// tileReader reads a whole level in one of these ways.
type tileReader struct {
	setting benchzarr.Setting
	files   settings.Settings
}

func tileReaderOf(r *cli.Run, s benchzarr.Setting) benchzarr.Reader {
	if !slices.Contains(ownWays, s.Backend) {
		return nil
	}
	return &tileReader{s, r.Options.GPUFiles}
}

// Check reads the level once and returns the checksum of the data.
func (t *tileReader) Check(ctx context.Context, j *benchzarr.Job) (uint32, error) {
	var c benchzarr.Checksum
	err := t.read(ctx, j, func(box zarr.Region, data []byte) { j.Boxes.Check(&c, j.Target.Layout, box, data) })
	return c.Value(), err
}

// Round reads the level once and measures that.
func (t *tileReader) Round(ctx context.Context, j *benchzarr.Job) (benchkit.Sample, error) {
	defer benchkit.Processors(t.setting.Threads)()
	w := benchkit.Start()
	err := t.read(ctx, j, nil)
	s := w.Stop()
	s.Backend = t.setting.Backend
	return s, err
}

// tile is a tile of the level: its position in the file, and its part of the level.
type tile struct {
	off int64 // -1: it is not stored
	box zarr.Region
}

// level is a level whose tiles are read.
type level struct {
	job   *benchzarr.Job
	file  *os.File
	tiles []tile
	bytes int // of a tile
}

// read reads the level. take gets the parts of the image, or its tiles if no image is assembled, one at a time.
func (t *tileReader) read(ctx context.Context, j *benchzarr.Job, take func(zarr.Region, []byte)) (err error) {
	name, _ := images.Split(j.Target.Path)
	if name == "" {
		return benchkit.Unablef("--backend %s cannot read %s: it is not a local file; give host", t.setting.Backend, j.Target.Path)
	}
	l := &level{job: j}
	if l.file, err = os.Open(name); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.file.Close()) }()
	if err := l.locate(ctx, t.setting); err != nil {
		return err
	}
	if t.setting.Backend == tilesAlone {
		return t.alone(ctx, l, take)
	}
	return t.image(ctx, l, take)
}

// locate finds the tiles.
func (l *level) locate(ctx context.Context, s benchzarr.Setting) error {
	a, st, err := l.job.Target.Open(ctx, benchzarr.Setting{Backend: "host"})
	if err != nil {
		return err
	}
	defer st.Close()
	defer a.Close()
	if !l.job.Target.Raw || a.BigEndian() {
		return benchkit.Unablef("--backend %s reads tiles as they are stored: these are compressed, or in the other byte order", s.Backend)
	}
	layout := l.job.Target.Layout
	l.bytes = int(layout.Bytes(layout.Chunks))
	for _, box := range boxes.Split(layout.Shape, layout.Chunks) {
		index := make([]int, len(box.Start))
		for d, at := range box.Start {
			index[d] = at / layout.Chunks[d]
		}
		name := a.ChunkKey(index)
		o, err := st.Open(ctx, name)
		if errors.Is(err, fs.ErrNotExist) {
			l.tiles = append(l.tiles, tile{-1, box})
			continue
		}
		if err != nil {
			return err
		}
		f, ok := o.(store.FileObject)
		if !ok || o.Size() != int64(l.bytes) {
			return benchkit.Unablef("--backend %s cannot read %s: it is not stored whole", s.Backend, st.Location(name))
		}
		_, off := f.File()
		l.tiles = append(l.tiles, tile{off, box})
	}
	return nil
}

// inFlight returns the number of buffers or tiles in use at a time.
func (t *tileReader) inFlight(tiles int) int {
	n := t.setting.InFlight
	if n == 0 {
		n = t.setting.Threads
	}
	return max(1, min(n, tiles))
}

// alone reads tiles in batches, each with one call, into reused buffers.
func (t *tileReader) alone(ctx context.Context, l *level, take func(zarr.Region, []byte)) error {
	workers := min(t.setting.Threads, len(l.tiles))
	each := max(1, t.inFlight(len(l.tiles))/workers)
	buf, err := mem.Alloc(workers * each * l.bytes)
	if err != nil {
		return err
	}
	defer mem.Free(buf)
	var mu sync.Mutex
	return work.Each(ctx, workers, (len(l.tiles)+each-1)/each, func(worker, i int) error {
		batch := l.tiles[i*each : min((i+1)*each, len(l.tiles))]
		mine := buf[worker*each*l.bytes:]
		for n := 0; n < len(batch); {
			// tiles that lie one behind the other in the file
			var list [][]byte
			first := n
			for ; n < len(batch) && len(list) < mostVectors && (n == first || batch[n].off == batch[n-1].off+int64(l.bytes)); n++ {
				list = append(list, mine[n*l.bytes:][:l.bytes])
				if batch[n].off < 0 {
					clear(list[0])
				}
			}
			if batch[first].off >= 0 {
				if err := preadv(l.file, list, batch[first].off); err != nil {
					return err
				}
			}
		}
		if take == nil {
			return nil
		}
		mu.Lock()
		defer mu.Unlock()
		for n, x := range batch {
			r := l.rows(x.box)
			take(x.box, r.compact(mine[n*l.bytes:][:l.bytes]))
		}
		return nil
	})
}

// image reads tiles to their places in parts of the image.
func (t *tileReader) image(ctx context.Context, l *level, take func(zarr.Region, []byte)) (err error) {
	var pool *filelayer.Pool
	var file *filelayer.File
	workers := min(t.setting.Threads, len(l.tiles))
	if t.setting.Backend == benchzarr.Pool {
		s := t.files
		s.Compat, s.Threads = settings.On, t.setting.Threads
		if t.setting.Task > 0 {
			s.TaskSize = t.setting.Task
		}
		if pool, err = filelayer.NewPool(nil, s, nil); err != nil {
			return benchkit.Unablef("%v", err)
		}
		defer func() { err = errors.Join(err, pool.Close()) }()
		if file, err = pool.Open(l.file.Name(), os.O_RDONLY, 0); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, file.Close()) }()
		workers = t.inFlight(len(l.tiles))
	}
	scratch, err := mem.Alloc(workers * l.bytes)
	if err != nil {
		return err
	}
	defer mem.Free(scratch)
	var buf []byte
	defer func() { mem.Free(buf) }()
	layout := l.job.Target.Layout
	for _, part := range l.job.Boxes.List {
		n := int(layout.Bytes(part.Shape))
		if n > cap(buf) {
			mem.Free(buf)
			if buf, err = mem.Alloc(n); err != nil {
				return err
			}
		}
		buf = buf[:n]
		in := l.within(part)
		if err := work.Each(ctx, workers, len(in), func(worker, i int) error {
			r := l.rows(in[i].box)
			place := r.places(part, buf)
			b := scratch[worker*l.bytes:][:l.bytes]
			switch {
			case in[i].off < 0:
				clear(b)
				r.put(place, b)
			case file != nil:
				if err := file.ReadAt(ctx, b, in[i].off); err != nil {
					return err
				}
				r.put(place, b)
			default:
				return r.read(l.file, place, b, in[i].off)
			}
			return nil
		}); err != nil {
			return err
		}
		if take != nil {
			take(part, buf)
		}
	}
	return nil
}

// within returns the tiles of a part, which consists of whole tiles.
func (l *level) within(part zarr.Region) []tile {
	var out []tile
	for _, t := range l.tiles {
		ok := true
		for d, at := range t.box.Start {
			ok = ok && at >= part.Start[d] && at < part.Start[d]+part.Shape[d]
		}
		if ok {
			out = append(out, t)
		}
	}
	return out
}

// mostVectors is the maximum number of pieces of memory that one system call reads into.
const mostVectors = 1024

// preadv fills pieces of memory from an offset of a file.
func preadv(f *os.File, list [][]byte, off int64) error {
	for len(list) > 0 {
		now := list[:min(len(list), mostVectors)]
		n, err := unix.Preadv(int(f.Fd()), now, off)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return &os.PathError{Op: "preadv", Path: f.Name(), Err: err}
		case n == 0:
			return fmt.Errorf("%s: became shorter while it was read: %w", f.Name(), io.ErrUnexpectedEOF)
		}
		off += int64(n)
		for n > 0 && n >= len(list[0]) {
			n -= len(list[0])
			list = list[1:]
		}
		if n > 0 {
			list[0] = list[0][n:]
		}
	}
	return nil
}
