package zarrtool

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"strata/pkg/cli"
	"strata/pkg/dtype"
	"strata/pkg/zarr"
	"strata/pkg/zarr/codec"
	"strata/pkg/zarr/store"
)

// storage describes how converted arrays are stored. Zero values keep the array's own settings.
type storage struct {
	format        int
	codec         string // "": the array's codecs
	checksum      *bool  // nil: as the array has it, or as codec says
	chunks, shard []int
	dtype         dtype.Type
	separator     string
	omitFill      bool
}

// storageFlags returns the flags of [storage] besides those of cli.Layout.
func storageFlags() []cli.Flag {
	return []cli.Flag{
		{Name: "dtype", Value: "TYPE", Usage: "element type of the output, such as uint16; values are rounded half to even and clamped"},
		{Name: "separator", Choices: []string{".", "/"}, Note: "the input's, else /", Usage: "separator between the numbers in chunk keys"},
		{Name: "omit_fill", Kind: cli.Bool, Usage: "do not store chunks that contain only the fill value"},
	}
}

func storageOf(r *cli.Run) (storage, error) {
	s := storage{format: r.Options.ZarrFormat, chunks: r.Options.Chunks, shard: r.Options.Shard,
		separator: r.String("separator"), omitFill: r.Bool("omit_fill")}
	if r.IsSet("codec") {
		s.codec = r.Options.Codec
	}
	if r.IsSet("checksum") {
		s.checksum = &r.Options.Checksum
	}
	if name := r.String("dtype"); name != "" {
		t, err := dtype.Parse(name)
		if err != nil {
			return s, cli.Usage("--dtype: %w", err)
		}
		s.dtype = t
	}
	return s, nil
}

// spec returns the specification with which an array is stored again.
func (s *storage) spec(a *zarr.Array, names []string) (zarr.Spec, error) {
	spec := zarr.Spec{
		Format: a.Format(), Shape: a.Shape(), Chunks: a.Chunks(), Shard: a.Shard(), DType: a.DType(), NumpyType: a.NumpyType(), Fill: a.Fill(),
		Order: a.Order(), Separator: a.Separator(), DimensionNames: a.DimensionNames(), Attributes: rawMap(a.Attributes()),
	}
	if s.format != 0 {
		spec.Format = s.format
	}
	if spec.Order == 'T' { // dimensions in an order of their own, which nothing written here has
		spec.Order = 'C'
	}
	if s.chunks != nil {
		if len(s.chunks) != len(spec.Shape) {
			return spec, cli.Usage("--chunks has %d axes, %s has %d", len(s.chunks), a.Location(), len(spec.Shape))
		}
		spec.Chunks = s.chunks
		if s.shard == nil {
			spec.Shard = nil
		}
	}
	if s.shard != nil {
		if len(s.shard) != len(spec.Shape) {
			return spec, cli.Usage("--shard has %d axes, %s has %d", len(s.shard), a.Location(), len(spec.Shape))
		}
		spec.Shard = s.shard
	}
	for d, n := range spec.Shard {
		if n%spec.Chunks[d] != 0 {
			return spec, cli.Usage("--shard: %v is not a multiple of the chunks %v of %s: give --chunks as well", spec.Shard, spec.Chunks, a.Location())
		}
	}
	if spec.Format == 2 && s.shard != nil {
		return spec, cli.Usage("--shard: Zarr format 2 has no shards: add --zarr_format 3")
	}
	if spec.Format == 2 {
		spec.Shard, spec.DimensionNames = nil, nil
	} else if spec.DimensionNames == nil {
		spec.DimensionNames = names
	}
	if s.separator != "" {
		spec.Separator = s.separator
	}
	if s.dtype != dtype.Invalid && (s.dtype != spec.DType || spec.NumpyType != "") {
		fill := make([]byte, s.dtype.Size())
		if err := dtype.Convert(fill, s.dtype, a.Fill(), a.DType()); err != nil {
			return spec, cli.Usage("--dtype of %s: %w", a.Location(), err)
		}
		spec.DType, spec.NumpyType, spec.Fill = s.dtype, "", fill
	}
	var err error
	if spec.Codecs, err = s.codecs(a, spec); err != nil {
		return spec, err
	}
	delete(spec.Attributes, zarr.AccountKey) // of the input's chunks
	spec.Complete = !s.omitFill
	return spec, nil
}

// codecs returns the codecs with which an array is stored again in the format and type of spec.
func (s *storage) codecs(a *zarr.Array, spec zarr.Spec) (codec.Chain, error) {
	chain := a.Codecs()
	bare := chain.Bare()
	name, given := strings.CutSuffix(s.codec, codec.ChecksumSuffix)
	had := len(bare) < len(chain)
	sum := given || had && spec.Format == 3 // format 2 has it for zstd alone, on request
	if s.checksum != nil {
		sum = *s.checksum
	}
	switch {
	case name != "":
	case spec.DType != a.DType() || spec.Format != a.Format() || chain.ReadOnly() != nil || sum && spec.Format == 2:
		name = like(bare)
	case sum == had:
		return chain, nil
	case sum:
		return append(bare, codec.CRC32C()), nil
	default:
		return bare, nil
	}
	if sum {
		name += codec.ChecksumSuffix
	}
	chain, err := codec.FromFlag(name, spec.DType, spec.Format)
	if err != nil {
		return nil, cli.Usage("%s: %w", a.Location(), err)
	}
	return chain, nil
}

// like names, in the syntax of [codec.FromFlag], the same kind of compression for another format or type.
func like(chain codec.Chain) string {
	if len(chain) == 0 {
		return "raw"
	}
	last := chain[len(chain)-1]
	if b, ok := last.(interface{ Compressor() string }); ok && b.Compressor() == "lz4" {
		return "blosc-lz4"
	}
	if name := map[string]string{"zstd": "zstd", "gzip": "gzip", "zlib": "gzip", "lz4": "lz4"}[last.Name()]; name != "" {
		return name
	}
	return "blosc-zstd:1"
}

func rawMap(m map[string]json.RawMessage) map[string]any {
	out := map[string]any{}
	for k, v := range m {
		out[k] = v
	}
	return out
}

// copyArray stores an array again with another specification. Each block is a whole number of the new array's
// files, and written once.
func copyArray(ctx context.Context, r *cli.Run, from *zarr.Array, st store.Writer, path string, spec zarr.Spec, omitFill bool, done func(int64)) (*zarr.Array, error) {
	opts := []zarr.Option{zarr.Workers(1), zarr.Meter(r.Meter)}
	if omitFill {
		opts = append(opts, zarr.OmitFill())
	}
	to, err := zarr.CreateArray(ctx, st, path, spec, opts...)
	if err != nil {
		return nil, err
	}
	unit := to.Shard()
	if unit == nil {
		unit = to.Chunks()
	}
	err = eachBlock(ctx, from, nil, unit, r.Options.Threads, r.Options.Mem/2, func(ctx context.Context, region zarr.Region, data []byte) error {
		n := len(data)
		data, err := converted(data, from, spec.DType)
		if err != nil {
			return err
		}
		err = to.Write(ctx, region, data)
		done(int64(n))
		return err
	})
	if err == nil && omitFill {
		err = to.WriteAccount(ctx)
	}
	return to, err
}

// ngffMembers lists the attributes that NGFF 0.5 keeps under "ome".
var ngffMembers = []string{"multiscales", "omero", "labels", "image-label", "plate", "well", "bioformats2raw.layout", "series"}

// convertAttributes moves NGFF metadata between the places where 0.4 (Zarr v2) and 0.5 (Zarr v3) keep it. Other
// attributes stay unchanged.
func convertAttributes(attrs map[string]json.RawMessage, from, to int) (map[string]any, error) {
	out := rawMap(attrs)
	switch {
	case from == 2 && to == 3:
		ome := map[string]any{}
		for _, k := range ngffMembers {
			v, ok := attrs[k]
			if !ok {
				continue
			}
			moved, err := withoutVersion(v, k)
			if err != nil {
				return nil, err
			}
			ome[k] = moved
			delete(out, k)
		}
		if len(ome) > 0 {
			ome["version"] = "0.5"
			out["ome"] = ome
		}
	case from == 3 && to == 2:
		raw, ok := attrs["ome"]
		if !ok {
			break
		}
		var ome map[string]any
		if err := json.Unmarshal(raw, &ome); err != nil {
			return nil, fmt.Errorf("attribute \"ome\": %w", err)
		}
		delete(out, "ome")
		for k, v := range ome {
			if k == "version" {
				continue
			}
			if slices.Contains([]string{"multiscales", "plate", "well", "image-label"}, k) {
				setVersion(v, "0.4")
			}
			out[k] = v
		}
	}
	return out, nil
}

// withoutVersion removes the version that 0.4 states in each object: 0.5 states it once.
func withoutVersion(raw json.RawMessage, name string) (any, error) {
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		return nil, fmt.Errorf("attribute %q: %w", name, err)
	}
	setVersion(v, "")
	return v, nil
}

func setVersion(v any, version string) {
	switch v := v.(type) {
	case map[string]any:
		if version == "" {
			delete(v, "version")
		} else {
			v["version"] = version
		}
	case []any:
		for _, e := range v {
			if m, ok := e.(map[string]any); ok {
				setVersion(m, version)
			}
		}
	}
}
