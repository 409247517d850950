package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"

	"strata/pkg/dtype"
	"strata/pkg/zarr"
	"strata/pkg/zarr/codec"
	"strata/pkg/zarr/store"
)

var types = []dtype.Type{dtype.Bool, dtype.Int8, dtype.Int16, dtype.Int32, dtype.Int64, dtype.Uint8, dtype.Uint16, dtype.Uint32, dtype.Uint64,
	dtype.Float16, dtype.Float32, dtype.Float64, dtype.Complex64, dtype.Complex128}

// writer writes arrays below a folder and records their contents.
type writer struct {
	dir  string
	st   *store.FolderStore
	list manifest
}

func write(ctx context.Context, dir, bin string) error {
	if err := os.MkdirAll(filepath.Join(dir, "values"), 0o777); err != nil {
		return err
	}
	w := &writer{dir: dir, st: store.Folder(dir)}
	for _, f := range []func(context.Context) error{w.dtypes, w.codecs, w.filters, w.layouts, w.fills, w.shards, w.metadata, w.groups, w.images,
		func(ctx context.Context) error { return w.stages(ctx, bin) }, w.device} {
		if err := f(ctx); err != nil {
			return err
		}
	}
	b, err := json.MarshalIndent(w.list, "", " ")
	if err != nil {
		return err
	}
	fmt.Printf("wrote %d arrays, %d groups, %d images\n", len(w.list.Arrays), len(w.list.Groups), len(w.list.Images))
	return os.WriteFile(filepath.Join(dir, "manifest.json"), b, 0o666)
}

// how is the way in which an array is written.
type how int

const (
	whole  how = iota // in one call
	pieces            // in boxes that intersect chunks
	partly            // one box; the rest has the fill value
	lossy             // in one call, through a filter that changes the values
)

// add writes an array with smooth or rough values.
func (w *writer) add(ctx context.Context, group string, spec zarr.Spec, smooth bool, how how, opts ...zarr.Option) error {
	n := len(w.list.Arrays)
	path := fmt.Sprintf("a/%03d", n)
	fail := func(err error) error { return fmt.Errorf("%s (%s, %v): %w", path, group, spec.DType, err) }
	a, err := zarr.CreateArray(ctx, w.st, path, spec, append(opts, zarr.Workers(2))...)
	if err != nil {
		return fail(err)
	}
	defer a.Close()
	all := values(spec.DType, spec.Shape, smooth, uint64(n))
	size := spec.DType.Size()
	switch how {
	case whole, lossy:
		err = a.Write(ctx, a.Bounds(), all)
	case pieces:
		err = eachPiece(spec.Shape, spec.Chunks, func(start, shape []int) error {
			return a.Write(ctx, zarr.Region{Start: start, Shape: shape}, box(all, size, spec.Shape, start, shape, nil))
		})
	case partly:
		start, shape := make([]int, len(spec.Shape)), make([]int, len(spec.Shape))
		for d, s := range spec.Shape {
			start[d], shape[d] = s/3, (s+1)/2
		}
		part := box(all, size, spec.Shape, start, shape, nil)
		all = bytes.Repeat(a.Fill(), len(all)/size)
		box(all, size, spec.Shape, start, shape, part)
		err = a.Write(ctx, zarr.Region{Start: start, Shape: shape}, part)
	}
	if err != nil {
		return fail(err)
	}
	again := make([]byte, len(all))
	if err := a.Read(ctx, a.Bounds(), again); err != nil {
		return fail(err)
	}
	if how == lossy {
		all = again
	} else if !bytes.Equal(all, again) {
		return fail(fmt.Errorf("reads back differently"))
	}
	e := array{Path: path, Group: group, Writer: "strata", Format: a.Format(), DType: spec.DType.String(), Shape: spec.Shape,
		Values: fmt.Sprintf("values/%03d", n), Order: string(a.Order()), BigEndian: spec.BigEndian, Sharded: spec.Shard != nil, Attributes: spec.Attributes}
	for _, c := range spec.Codecs {
		e.Codecs = append(e.Codecs, c.Name())
	}
	for _, name := range spec.DimensionNames {
		if name == "" {
			e.DimensionNames = append(e.DimensionNames, nil)
		} else {
			e.DimensionNames = append(e.DimensionNames, &name)
		}
	}
	if len(spec.Shape) == 0 {
		e.Shape = []int{}
	}
	w.list.Arrays = append(w.list.Arrays, e)
	return os.WriteFile(filepath.Join(w.dir, e.Values), all, 0o666)
}

// eachPiece divides a shape into boxes a little larger than a chunk, so that most chunks are written in parts.
func eachPiece(shape, chunks []int, f func(start, shape []int) error) error {
	start := make([]int, len(shape))
	for {
		box := make([]int, len(shape))
		for d := range shape {
			box[d] = min(chunks[d]+1, shape[d]-start[d])
		}
		if err := f(append([]int(nil), start...), box); err != nil {
			return err
		}
		d := len(shape) - 1
		for ; d >= 0; d-- {
			if start[d] += chunks[d] + 1; start[d] < shape[d] {
				break
			}
			start[d] = 0
		}
		if d < 0 {
			return nil
		}
	}
}

func must(c codec.Codec, err error) codec.Codec {
	if err != nil {
		panic(err) // the arguments are constants of this file
	}
	return c
}

func blosc(cname string, level int, shuffle codec.BloscShuffle, t dtype.Type, block int) codec.Codec {
	return must(codec.Blosc(cname, level, shuffle, t.Size(), block))
}

func (w *writer) dtypes(ctx context.Context) error {
	for _, format := range []int{2, 3} {
		for _, t := range types {
			for _, big := range []bool{false, true} {
				if big && t.Size() == 1 {
					continue
				}
				for _, chain := range []codec.Chain{nil, {blosc("lz4", 5, codec.ByteShuffle, t, 0)}} {
					spec := zarr.Spec{Format: format, Shape: []int{5, 17, 40}, Chunks: []int{3, 5, 16}, DType: t, Codecs: chain, BigEndian: big}
					if err := w.add(ctx, fmt.Sprintf("v%d data types", format), spec, true, pieces); err != nil {
						return err
					}
				}
			}
		}
	}
	return nil
}

// namedCodecs returns all compressors for elements of type t.
func namedCodecs(t dtype.Type) []codec.Chain {
	chains := []codec.Chain{
		nil,
		{codec.Gzip(0)}, {codec.Gzip(1)}, {codec.Gzip(6)}, {codec.Gzip(9)},
		{codec.Zstd(1, false)}, {codec.Zstd(3, true)}, {codec.Zstd(9, false)}, {codec.Zstd(19, true)}, {codec.Zstd(-5, false)},
		{codec.Zlib(1)}, {codec.Zlib(9)},
		{codec.LZ4(1)}, {codec.LZ4(9)},
		{codec.CRC32C()}, {codec.Zstd(1, false), codec.CRC32C()},
		{codec.CRC32()}, {codec.Adler32()},
		{codec.Shuffle(t.Size()), codec.Zlib(1)},
	}
	for _, cname := range []string{"lz4", "lz4hc", "zlib", "zstd"} {
		for _, shuffle := range []codec.BloscShuffle{codec.NoShuffle, codec.ByteShuffle, codec.BitShuffle} {
			for _, level := range []int{0, 1, 5, 9} {
				chains = append(chains, codec.Chain{blosc(cname, level, shuffle, t, 0)})
			}
		}
		chains = append(chains, codec.Chain{blosc(cname, 3, codec.ByteShuffle, t, 4096)}, codec.Chain{blosc(cname, 1, codec.AutoShuffle, t, 0)})
	}
	return append(chains, checkedCodecs(t)...)
}

// checkedCodecs returns the chains that --checksum makes for elements of type t.
func checkedCodecs(t dtype.Type) (chains []codec.Chain) {
	for _, name := range []string{"raw", "lz4", "zstd:1", "gzip:1", "blosc-lz4", "blosc-zstd:1"} {
		chain, err := codec.FromFlag(name+codec.ChecksumSuffix, t, 3)
		if err != nil {
			panic(err) // the names are ours
		}
		chains = append(chains, chain)
	}
	return chains
}

// has reports whether all codecs of a chain exist in a format.
func has(chain codec.Chain, format int) bool {
	for _, c := range chain {
		var err error
		if format == 2 {
			_, err = c.MetadataV2()
		} else {
			_, err = c.MetadataV3()
		}
		if err != nil {
			return false
		}
	}
	return true
}

func (w *writer) codecs(ctx context.Context) error {
	for _, format := range []int{2, 3} {
		for _, t := range []dtype.Type{dtype.Uint8, dtype.Uint16, dtype.Float32} {
			for i, chain := range namedCodecs(t) {
				if !has(chain, format) {
					continue
				}
				group := fmt.Sprintf("v%d codecs", format)
				// large enough for several Blosc blocks; rough values do not shrink
				spec := zarr.Spec{Format: format, Shape: []int{40, 50, 60}, Chunks: []int{33, 50, 31}, DType: t, Codecs: chain}
				if err := w.add(ctx, group, spec, i%2 == 0, whole); err != nil {
					return err
				}
				spec.Shape, spec.Chunks = []int{13}, []int{5} // smaller than any block
				if err := w.add(ctx, group, spec, i%2 == 1, whole); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// filters writes arrays with the filters of numcodecs that change elements.
func (w *writer) filters(ctx context.Context) error {
	for _, c := range []struct {
		config string
		t      dtype.Type
		how    how
	}{
		{`{"id":"delta","dtype":"<i4","astype":"<i4"}`, dtype.Int32, whole},
		{`{"id":"delta","dtype":"<u2","astype":"<u2"}`, dtype.Uint16, whole},
		{`{"id":"fixedscaleoffset","scale":10,"offset":-5,"dtype":"<f4","astype":"<i2"}`, dtype.Float32, lossy},
		{`{"id":"quantize","digits":2,"dtype":"<f8","astype":"<f4"}`, dtype.Float64, lossy},
		{`{"id":"bitround","keepbits":7}`, dtype.Float32, lossy},
		{`{"id":"packbits"}`, dtype.Bool, whole},
		{`{"id":"astype","encode_dtype":"<f8","decode_dtype":"<f4"}`, dtype.Float32, whole},
		{`{"id":"shuffle","elementsize":4}`, dtype.Int32, whole},
	} {
		f, err := codec.ParseV2(json.RawMessage(c.config), c.t)
		if err != nil {
			return err
		}
		for _, chain := range []codec.Chain{{f}, {f, codec.Zstd(1, false)}} {
			spec := zarr.Spec{Format: 2, Shape: []int{4, 23}, Chunks: []int{4, 9}, DType: c.t, Codecs: chain}
			if err := chain.ReadOnly(); err != nil {
				fmt.Printf("not written: %s (%v)\n", c.config, err)
				break
			}
			if err := w.add(ctx, "v2 filters", spec, true, c.how); err != nil {
				return err
			}
		}
	}
	return nil
}

// layouts writes arrays of various ranks, orders and separators, and with chunks that do not divide the shape.
func (w *writer) layouts(ctx context.Context) error {
	shapes := []struct{ shape, chunks []int }{
		{nil, nil}, {[]int{1}, []int{1}}, {[]int{7}, []int{100}}, {[]int{1000}, []int{999}}, {[]int{0}, []int{4}}, {[]int{3, 0, 2}, []int{2, 2, 2}},
		{[]int{12, 8}, []int{4, 8}}, {[]int{10, 11}, []int{4, 3}}, {[]int{6, 7, 8}, []int{5, 2, 8}}, {[]int{2, 3, 4, 5}, []int{1, 2, 3, 4}},
		{[]int{1, 2, 3, 6, 5}, []int{1, 1, 2, 4, 2}}, {[]int{2, 1, 2, 1, 3, 3, 2}, []int{1, 1, 1, 1, 2, 2, 2}},
	}
	for _, format := range []int{2, 3} {
		for _, s := range shapes {
			for _, order := range []byte{'C', 'F'} {
				for _, sep := range []string{".", "/"} {
					for i, chain := range []codec.Chain{nil, {codec.Zstd(1, false)}} {
						spec := zarr.Spec{Format: format, Shape: s.shape, Chunks: s.chunks, DType: []dtype.Type{dtype.Uint16, dtype.Float64}[i],
							Codecs: chain, Order: order, Separator: sep, BigEndian: order == 'F' && i == 1}
						how := pieces
						if len(s.shape) == 0 || s.shape[0] == 0 {
							how = whole
						}
						if err := w.add(ctx, fmt.Sprintf("v%d shapes, orders, separators", format), spec, true, how); err != nil {
							return err
						}
					}
				}
			}
		}
	}
	return nil
}

func (w *writer) fills(ctx context.Context) error {
	for _, format := range []int{2, 3} {
		for _, f := range []struct {
			t    dtype.Type
			fill any
		}{
			{dtype.Bool, true}, {dtype.Bool, false}, {dtype.Int8, -128}, {dtype.Int16, -2}, {dtype.Int32, math.MinInt32}, {dtype.Int64, int64(math.MinInt64)},
			{dtype.Uint8, 255}, {dtype.Uint16, 65535}, {dtype.Uint32, uint32(math.MaxUint32)}, {dtype.Uint64, uint64(math.MaxUint64)},
			{dtype.Float16, 1.5}, {dtype.Float16, math.NaN()}, {dtype.Float32, math.NaN()}, {dtype.Float32, math.Inf(1)}, {dtype.Float32, math.Inf(-1)},
			{dtype.Float32, math.Copysign(0, -1)}, {dtype.Float32, 0.1}, {dtype.Float64, math.NaN()}, {dtype.Float64, 5e-324}, {dtype.Float64, math.MaxFloat64},
			{dtype.Float64, 0.1}, {dtype.Complex64, complex(1.5, -2)}, {dtype.Complex128, complex(math.NaN(), math.Inf(-1))}, {dtype.Uint16, nil},
		} {
			for _, opts := range [][]zarr.Option{nil, {zarr.OmitFill()}} {
				spec := zarr.Spec{Format: format, Shape: []int{9, 10}, Chunks: []int{2, 3}, DType: f.t, Fill: f.fill, Codecs: codec.Chain{codec.Zstd(1, false)}}
				if err := w.add(ctx, fmt.Sprintf("v%d fill values", format), spec, true, partly, opts...); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (w *writer) shards(ctx context.Context) error {
	for i, t := range []dtype.Type{dtype.Uint8, dtype.Uint16, dtype.Float32, dtype.Complex128} {
		chains := []codec.Chain{nil, {codec.Zstd(1, false)}, {codec.Zstd(1, true)}, {codec.Gzip(5)}, {blosc("zstd", 1, codec.ByteShuffle, t, 0)}, {blosc("lz4", 5, codec.BitShuffle, t, 0), codec.CRC32C()}}
		for j, chain := range append(chains, checkedCodecs(t)...) {
			for k, s := range []struct{ shape, shard, chunks []int }{
				{[]int{16, 16, 16}, []int{8, 8, 8}, []int{4, 4, 4}},
				{[]int{11, 9, 13}, []int{6, 4, 8}, []int{3, 4, 2}}, // partial shards and chunks
				{[]int{5, 6, 7}, []int{16, 16, 16}, []int{8, 4, 16}},
				{[]int{9, 9, 9}, []int{3, 3, 3}, []int{3, 3, 3}},
				{[]int{30, 40, 1}, []int{30, 40, 1}, []int{2, 2, 1}},
			} {
				for _, how := range []how{whole, pieces, partly} {
					spec := zarr.Spec{Format: 3, Shape: s.shape, Shard: s.shard, Chunks: s.chunks, DType: t, Codecs: chain, Fill: 7,
						Order: "CF"[(i+j)%2], BigEndian: t.Size() > 1 && (i+k)%3 == 0}
					var opts []zarr.Option
					if how == partly && k%2 == 0 {
						opts = append(opts, zarr.OmitFill())
					}
					if t == dtype.Complex128 {
						spec.Fill = complex(7, -1)
					}
					if err := w.add(ctx, "v3 shards", spec, true, how, opts...); err != nil {
						return err
					}
				}
			}
		}
	}
	return nil
}

var attributes = map[string]any{
	"text": "µm „ü“ \u2028 <&> \"\\ \x01", "empty": "", "number": 1.5, "integer": 9007199254740991, "small": 1e-300, "true": true, "nothing": nil,
	"list": []any{1, "two", []any{}, map[string]any{}}, "nested": map[string]any{"a": map[string]any{"b": []any{1, 2, 3}}}, "": "no name", "a/b.c": 0,
}

func (w *writer) metadata(ctx context.Context) error {
	for _, format := range []int{2, 3} {
		spec := zarr.Spec{Format: format, Shape: []int{4, 5, 6}, Chunks: []int{2, 5, 3}, DType: dtype.Int16, Attributes: attributes}
		if err := w.add(ctx, fmt.Sprintf("v%d attributes", format), spec, true, whole); err != nil {
			return err
		}
	}
	for _, names := range [][]string{{"z", "y", "x"}, {"", "y", ""}, {"x", "x", "ü"}} {
		spec := zarr.Spec{Format: 3, Shape: []int{4, 5, 6}, Chunks: []int{2, 5, 3}, DType: dtype.Int16, DimensionNames: names}
		if err := w.add(ctx, "v3 dimension names", spec, true, whole); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) groups(ctx context.Context) error {
	for _, format := range []int{2, 3} {
		for _, consolidated := range []bool{false, true} {
			g := group{Path: fmt.Sprintf("g/%d-%v", format, consolidated), Group: fmt.Sprintf("v%d groups", format), Writer: "strata", Format: format,
				Attributes: attributes, Consolidated: consolidated}
			if _, err := zarr.CreateGroup(ctx, w.st, g.Path, format, attributes); err != nil {
				return err
			}
			for _, name := range []string{"a", "a/b", "a/b/c", "d"} {
				if _, err := zarr.CreateGroup(ctx, w.st, store.Join(g.Path, name), format, map[string]any{"me": name}); err != nil {
					return err
				}
				g.Members = append(g.Members, name)
			}
			for _, name := range []string{"a/x", "a/b/c/y", "z"} {
				a, err := zarr.CreateArray(ctx, w.st, store.Join(g.Path, name), zarr.Spec{Format: format, Shape: []int{3}, Chunks: []int{2}, DType: dtype.Uint8, Attributes: map[string]any{"me": name}})
				if err != nil {
					return err
				}
				if err := a.Write(ctx, a.Bounds(), []byte{1, 2, 3}); err != nil {
					return err
				}
				g.Members = append(g.Members, name)
			}
			if consolidated {
				if err := zarr.Consolidate(ctx, w.st, g.Path); err != nil {
					return err
				}
			}
			w.list.Groups = append(w.list.Groups, g)
		}
	}
	return nil
}
