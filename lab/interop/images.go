package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"strata/pkg/dtype"
	"strata/pkg/ngff"
	"strata/pkg/zarr/codec"
)

func (w *writer) images(ctx context.Context) error {
	for _, format := range []int{2, 3} {
		for i, c := range []struct {
			axes         string
			shape, chunk []int
			shard        []int
			scale        []float64
			t            dtype.Type
			levels       int
			codec        string
			object       bool
		}{
			{"yx", []int{90, 70}, []int{32, 32}, nil, []float64{0.5, 0.25}, dtype.Uint8, 0, "raw", false},
			{"yx", []int{100, 131}, []int{32, 48}, nil, []float64{2, 2}, dtype.Float32, 3, "blosc-zstd:1", false},
			{"zyx", []int{33, 65, 70}, []int{16, 32, 32}, nil, []float64{3.5, 2, 2}, dtype.Uint16, 2, "blosc-zstd:1", false},
			{"zyx", []int{33, 65, 70}, []int{8, 16, 16}, []int{16, 32, 32}, []float64{3.5, 2, 2}, dtype.Float32, 2, "zstd:1", false},
			{"czyx", []int{2, 12, 40, 40}, []int{1, 8, 16, 16}, nil, []float64{1, 10, 2.5, 2.5}, dtype.Int16, 1, "gzip", false},
			{"tczyx", []int{2, 2, 4, 20, 20}, []int{1, 1, 4, 16, 16}, nil, []float64{0.1, 1, 1, 1, 1}, dtype.Uint16, 1, "blosc-lz4", false},
			{"zyx", []int{53, 61, 103}, []int{16, 32, 32}, nil, []float64{3.5, 2, 0.7}, dtype.Float32, 2, "raw", true},
		} {
			if format == 2 {
				c.shard = nil
			}
			chain, err := codec.FromFlag(c.codec, c.t, format)
			if err != nil {
				return err
			}
			e := image{Path: fmt.Sprintf("i/%d-%d.ome.zarr", format, i), Group: fmt.Sprintf("NGFF %s images", ngff.VersionFor(format)), Writer: "strata",
				Version: ngff.VersionFor(format), Name: fmt.Sprintf("%s image", c.axes), DType: c.t.String(), Object: c.object}
			spec := ngff.ImageSpec{Format: format, Name: e.Name, Shape: c.shape, Chunks: c.chunk, Shard: c.shard, DType: c.t, Codecs: chain,
				Axes: ngff.SpaceAxes(c.axes, "micrometer"), Scale: c.scale, Levels: c.levels, Workers: 2, Attributes: map[string]any{"made by": "interop"}}
			if c.axes == "czyx" {
				channel := ngff.Channel{Color: "FF8800", Label: "first", Active: true, Window: &ngff.Window{Min: 0, Max: 1000, Start: 10, End: 500}}
				spec.Omero = &ngff.Omero{Channels: []ngff.Channel{channel, channel}}
			}
			img, err := ngff.Create(ctx, w.st, e.Path, spec)
			if err != nil {
				return err
			}
			all := values(c.t, c.shape, true, uint64(i))
			if c.object {
				all = ball(c.shape)
			}
			if err := img.WriteTile(ctx, make([]int, len(c.shape)), c.shape, all); err != nil {
				img.Abort()
				return fmt.Errorf("%s: %w", e.Path, err)
			}
			if err := img.Close(ctx); err != nil {
				return err
			}
			opened, err := ngff.Open(ctx, w.st, e.Path)
			if err != nil {
				return err
			}
			if err := w.note(ctx, &e, opened, all); err != nil {
				return err
			}
			w.list.Images = append(w.list.Images, e)
		}
	}
	return nil
}

// note records the levels of an image, with the values written to level 0 (nil: as read back).
func (w *writer) note(ctx context.Context, e *image, img *ngff.Image, all []byte) error {
	for _, a := range img.Axes {
		e.Axes = append(e.Axes, a.Name)
		e.Units = append(e.Units, a.Unit)
	}
	for l, level := range img.Levels {
		e.Scales = append(e.Scales, level.Scale)
		e.Translations = append(e.Translations, append([]float64{}, level.Translation...))
		e.Shapes = append(e.Shapes, level.Array.Shape())
		file := fmt.Sprintf("values/image-%d-%d", len(w.list.Images), l)
		b := all
		if l > 0 || b == nil {
			b = make([]byte, elements(level.Array.Shape())*img.DType().Size())
			if err := level.Array.Read(ctx, level.Array.Bounds(), b); err != nil {
				return err
			}
		}
		level.Array.Close()
		if err := os.WriteFile(filepath.Join(w.dir, file), b, 0o666); err != nil {
			return err
		}
		e.Values = append(e.Values, file)
	}
	return nil
}

func elements(shape []int) int {
	n := 1
	for _, s := range shape {
		n *= s
	}
	return n
}

func (c *checker) image(ctx context.Context, want image) error {
	st, key, err := c.open(ctx, want.Path)
	if err != nil {
		return err
	}
	defer st.Close()
	img, err := ngff.Open(ctx, st, key)
	if err != nil {
		return err
	}
	if img.Version != want.Version || img.Name != want.Name {
		return fmt.Errorf("version %q, name %q; want %q, %q", img.Version, img.Name, want.Version, want.Name)
	}
	var axes []string
	for _, a := range img.Axes {
		axes = append(axes, a.Name)
	}
	if !slices.Equal(axes, want.Axes) || len(img.Levels) != len(want.Values) {
		return fmt.Errorf("axes %v, %d levels; want %v, %d", axes, len(img.Levels), want.Axes, len(want.Values))
	}
	for i, d := range img.Axes {
		if d.Type != ngff.TypeSpace {
			continue
		}
		if w := want.VoxelSize[i]; math.Abs(img.VoxelSize[i]-w) > 1e-12*w {
			return fmt.Errorf("voxel size %v µm, want %v", img.VoxelSize, want.VoxelSize)
		}
	}
	for l, level := range img.Levels {
		b, err := c.st.Get(ctx, want.Values[l], nil, -1)
		if err != nil {
			return err
		}
		if err := compare(ctx, level.Array, want.DType, want.Shapes[l], b); err != nil {
			return fmt.Errorf("level %d: %w", l, err)
		}
		level.Array.Close()
		for d, s := range want.Scales[l] {
			if math.Abs(level.Scale[d]-s) > 1e-12*s {
				return fmt.Errorf("level %d: scale %v, want %v", l, level.Scale, want.Scales[l])
			}
		}
		if !slices.EqualFunc(level.Translation, want.Translations[l], func(a, b float64) bool { return math.Abs(a-b) <= 1e-9*math.Abs(b) }) {
			return fmt.Errorf("level %d: translation %v, want %v", l, level.Translation, want.Translations[l])
		}
	}
	if problems := ngff.Validate(ctx, st, key); !c.web {
		for _, p := range problems {
			if p.Severity == ngff.Error {
				return fmt.Errorf("validation: %s", strings.ReplaceAll(p.String(), "\n", " "))
			}
		}
	}
	return nil
}
