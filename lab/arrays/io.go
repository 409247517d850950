package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"strata/pkg/bench/boxes"
	"strata/pkg/mem"
	"strata/pkg/ngff"
	"strata/pkg/tile/zarrsource"
	"strata/pkg/zarr"
	"strata/pkg/zarr/store"
)

// io does the I/O that a stage cannot avoid: it reads and decodes level 0 of the images at path (comma-separated),
// once for each of passes, and encodes and writes all levels of another image, a finished output of that stage,
// which is in memory before the clock starts; or of several (comma-separated). With frames, the files below path are
// read. It computes nothing.
func (b *bench) io(ctx context.Context, like string, passes []pass, frames bool) error {
	var img *output
	err := b.outside(func() (err error) {
		img, err = loadOutput(ctx, like)
		return err
	})
	if err != nil {
		return err
	}
	defer img.free()
	if err := b.outside(func() error { return os.RemoveAll(b.out) }); err != nil {
		return err
	}
	for _, p := range passes {
		for path := range strings.SplitSeq(b.path, ",") {
			read := func() error { return b.readAll(ctx, path, p, img) }
			if frames {
				read = func() error { return b.readFiles(path) }
			}
			if err := read(); err != nil {
				return err
			}
		}
	}
	for k := range img.levels {
		if err := b.writeLevel(ctx, fmt.Sprintf("%s/%d", b.out, k), &img.levels[k]); err != nil {
			return err
		}
	}
	b.bytes = 0 // input and output differ in size: seconds are what counts
	return b.outside(func() error { return os.RemoveAll(b.out) })
}

// pass is one pass of a stage over its input: a fraction of the planes, from the first, plus some; or as many as
// its output has.
type pass struct {
	part     float64
	more     int
	asOutput bool
}

// parsePasses parses "1,0.5+8,out": all planes, half of them and 8 more, as many as the output has.
func parsePasses(s string) (all []pass, err error) {
	for text := range strings.SplitSeq(s, ",") {
		p := pass{asOutput: text == "out"}
		if part, more, ok := strings.Cut(text, "+"); !p.asOutput {
			if p.part, err = strconv.ParseFloat(part, 64); err == nil && ok {
				p.more, err = strconv.Atoi(more)
			}
			if err != nil || !(p.part > 0 && p.part <= 1) {
				return nil, fmt.Errorf("pass %q: want a part of the planes, a part and so many planes (0.5+8), or out", text)
			}
		}
		all = append(all, p)
	}
	return all, nil
}

func (p pass) planes(depth int, like *output) int {
	n := int(p.part*float64(depth)+1e-9) + p.more
	if p.asOutput && len(like.levels) > 0 {
		n = like.levels[0].spec.Shape[0]
	}
	return max(1, min(n, depth))
}

// readAll reads planes of level 0 of an image in the pieces in which stages read.
func (b *bench) readAll(ctx context.Context, path string, p pass, like *output) error {
	img, err := ngff.Open(ctx, store.Folder(path), "")
	if err != nil {
		return err
	}
	a := img.Levels[0].Array.With(zarr.Workers(1))
	defer a.Close()
	shape := a.Shape()
	if planes := p.planes(shape[0], like); planes < shape[0] {
		return b.readPlanes(ctx, a, planes)
	}
	src, err := zarrsource.New(a, zarrsource.PieceBytes(b.piece))
	if err != nil {
		return err
	}
	return b.columns(ctx, src, shape)
}

// readFiles reads all files below a folder.
func (b *bench) readFiles(dir string) error {
	var files []string
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files = append(files, name)
		}
		return err
	})
	if err != nil {
		return err
	}
	return b.workers(len(files), b.piece, func(i int, buf []byte) (n int, err error) {
		f, err := os.Open(files[i])
		if err != nil {
			return 0, err
		}
		defer f.Close()
		for {
			k, err := f.Read(buf)
			if n += k; errors.Is(err, io.EOF) {
				return n, nil
			} else if err != nil {
				return n, err
			}
		}
	})
}

// readPlanes reads the first planes of an array (z, y, x), chunk by chunk, and decodes no more than the codec
// must.
func (b *bench) readPlanes(ctx context.Context, a *zarr.Array, planes int) error {
	shape, chunk := a.Shape(), a.Chunks()
	elem := a.DType().Size()
	raw := len(a.Codecs()) == 0
	columns := boxes.Split([]int{planes, shape[1], shape[2]}, chunk)
	return b.workers(len(columns), elem*volume(chunk), func(i int, buf []byte) (int, error) {
		r := columns[i]
		plane := elem * r.Shape[1] * r.Shape[2]
		n := r.Shape[0] * plane
		switch {
		case raw:
			for end, k := r.Start[0]+r.Shape[0], max(1, b.piece/plane); r.Start[0] < end; r.Start[0] += k {
				r.Shape[0] = min(k, end-r.Start[0])
				if err := a.Read(ctx, r, buf[:r.Shape[0]*plane]); err != nil {
					return 0, err
				}
			}
			return n, nil
		case a.InBlocks():
			return n, a.ReadPlanes(ctx, r, buf[:min(len(buf), max(plane, b.piece))], func(int, []byte) error { return nil })
		}
		return n, a.ReadFront(ctx, r, buf)
	})
}

// output is an image in memory.
type output struct{ levels []level }

type level struct {
	spec   zarr.Spec
	chunks []zarr.Region
	data   [][]byte // of each chunk, dense
}

func loadOutput(ctx context.Context, paths string) (*output, error) {
	out := &output{}
	if paths == "" { // the stage writes next to nothing
		return out, nil
	}
	for path := range strings.SplitSeq(paths, ",") {
		if err := out.load(ctx, path); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// load adds the levels of an image.
func (o *output) load(ctx context.Context, path string) error {
	img, err := ngff.Open(ctx, store.Folder(path), "")
	if err != nil {
		return err
	}
	for _, l := range img.Levels {
		a := l.Array
		lev := level{spec: zarr.Spec{Format: a.Format(), Shape: a.Shape(), Chunks: a.Chunks(), Shard: a.Shard(), DType: a.DType(), Codecs: a.Codecs()}}
		unit := a.Chunks()
		if s := a.Shard(); s != nil {
			unit = s
		}
		for _, r := range boxes.Split(a.Shape(), unit) {
			buf, err := mem.Alloc(a.DType().Size() * volume(r.Shape))
			if err != nil {
				return err
			}
			lev.chunks, lev.data = append(lev.chunks, r), append(lev.data, buf)
			if err := a.Read(ctx, r, buf); err != nil {
				return err
			}
		}
		o.levels = append(o.levels, lev)
	}
	return nil
}

func (o *output) free() {
	for _, l := range o.levels {
		for _, b := range l.data {
			mem.Free(b)
		}
	}
}

// writeLevel stores one level of an output.
func (b *bench) writeLevel(ctx context.Context, path string, l *level) error {
	a, err := zarr.CreateArray(ctx, store.Folder(path), "", l.spec, zarr.Workers(1))
	if err != nil {
		return err
	}
	defer a.Close()
	return b.workers(len(l.chunks), 0, func(i int, _ []byte) (int, error) {
		return len(l.data[i]), a.Write(ctx, l.chunks[i], l.data[i])
	})
}
