package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"strata/pkg/dtype"
	"strata/pkg/ngff"
	"strata/pkg/zarr"
)

// layout is a way to store an image, as flags.
type layout struct {
	name  string
	flags []string
	shard bool
}

var layouts = []layout{
	{"v2", []string{"--zarr_format", "2"}, false},
	{"v3", []string{"--codec", "zstd:1"}, false},
	{"v3-shards", []string{"--codec", "gzip:1"}, true},
	{"v3-checksum", []string{"--zarr_format", "3", "--checksum"}, true},
}

// stages runs the programs in a folder on small phantoms and records their outputs.
func (w *writer) stages(ctx context.Context, bin string) error {
	for t, layouts := range map[dtype.Type][]layout{dtype.Uint16: layouts, dtype.Float32: layouts, // all of these, one of the others
		dtype.Uint8: layouts[:1], dtype.Int16: layouts[1:2], dtype.Float64: layouts[2:]} {
		in := filepath.Join(w.dir, "in-"+t.String())
		if err := w.run(ctx, bin, "phantom", in, "--slices", "2", "--tiles", "2,2", "--tile", "32,32,40", "--voxel", "8,4,4", "--interval", "160", "--unit", "micrometer",
			"--n_levels", "0", "--dtype", t.String()); err != nil {
			return err
		}
		slices := filepath.Join(in, "slices")
		if err := os.Mkdir(slices, 0o777); err != nil {
			return err
		}
		for z := range 2 {
			mosaic := fmt.Sprintf("mosaic_grid_3d_z%02d.ome.zarr", z)
			if err := os.Symlink(filepath.Join("..", mosaic), filepath.Join(slices, fmt.Sprintf("slice_z%02d.ome.zarr", z))); err != nil {
				return err
			}
		}
		mosaic := filepath.Join(in, "mosaic_grid_3d_z00.ome.zarr")
		for _, l := range layouts {
			for _, s := range []struct {
				name         string
				args         []string
				chunk, shard string
			}{
				{"aip", []string{mosaic, "OUT", "--n_levels", "2"}, "32,40", "64,80"},
				{"resample", []string{mosaic, "OUT", "--resolution", "8", "--n_levels", "2"}, "32,16,20", "32,32,40"},
				{"resample per axis", []string{mosaic, "OUT", "--resolution", "16,8,4", "--n_levels", "1"}, "16,16,40", "16,32,80"},
				{"focal", []string{mosaic, "OUT", "--n_levels", "2", "--save_map", "MAPS"}, "32,32,40", "32,64,80"},
				{"crop", []string{mosaic, "OUT", "--depth", "120", "--crop_before_interface", "--pad_after", "--n_levels", "2"}, "15,32,40", "15,64,80"},
				{"stitch", []string{mosaic, "OUT", "--n_levels", "2"}, "", "32,64,64"},
				{"smooth", []string{mosaic, "OUT", "--sigma", "6", "--n_levels", "2"}, "16,32,40", "32,64,80"},
				{"stack", []string{slices, filepath.Join(in, "shifts_xy.csv"), "OUT", "--blend", "--slicing_interval_mm", "0.16", "--pyramid_resolutions", "8", "20", "40"}, "", "32,64,64"},
				{"stack aspect-preserving", []string{slices, filepath.Join(in, "shifts_xy.csv"), "OUT", "--no_xy_shift", "--no_isotropic", "--pyramid_resolutions", "10", "20"}, "", "32,64,64"},
			} {
				flags := l.flags
				if l.shard {
					chunk := s.chunk
					if chunk == "" {
						chunk = "16,32,32"
					}
					flags = append([]string{"--chunks", chunk, "--shard", s.shard}, flags...)
				}
				program, _, _ := strings.Cut(s.name, " ")
				path := fmt.Sprintf("o/%s-%s-%s.ome.zarr", strings.ReplaceAll(s.name, " ", "-"), t, l.name)
				args := append([]string{}, s.args...)
				for i, a := range args {
					switch a {
					case "OUT":
						args[i] = filepath.Join(w.dir, path)
					case "MAPS":
						args[i] = filepath.Join(w.dir, path+".maps")
					}
				}
				if err := w.run(ctx, bin, program, append(args, flags...)...); err != nil {
					return err
				}
				if err := w.output(ctx, path, "outputs of "+program); err != nil {
					return fmt.Errorf("%s: %w", path, err)
				}
				if program != "focal" {
					continue
				}
				for _, name := range []string{"z0", "flatfield", "correction"} {
					if err := w.output(ctx, path+".maps/"+name+".ome.zarr", "maps of focal"); err != nil {
						return fmt.Errorf("%s of %s: %w", name, path, err)
					}
				}
			}
		}
	}
	return nil
}

func (w *writer) run(ctx context.Context, bin, name string, args ...string) error {
	if err := os.MkdirAll(filepath.Join(w.dir, "o"), 0o777); err != nil {
		return err
	}
	out, err := exec.CommandContext(ctx, filepath.Join(bin, name), append(args, "-q")...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, out)
	}
	return nil
}

// output records an image that a stage wrote, and each of its levels as a separate array, with the values that
// strata reads back.
func (w *writer) output(ctx context.Context, path, group string) error {
	img, err := ngff.Open(ctx, w.st, path)
	if err != nil {
		return err
	}
	e := image{Path: path, Group: group, Writer: "strata", Version: img.Version, Name: img.Name, DType: img.DType().String()}
	if err := w.note(ctx, &e, img, nil); err != nil {
		return err
	}
	w.list.Images = append(w.list.Images, e)
	for l, level := range img.Levels {
		a := level.Array
		c := array{Path: path + "/" + level.Path, Group: group, Writer: "strata", Format: a.Format(), DType: e.DType, Shape: a.Shape(), Values: e.Values[l],
			Order: string(a.Order()), Sharded: a.Shard() != nil}
		if err := w.stated(&c); err != nil {
			return err
		}
		w.list.Arrays = append(w.list.Arrays, c)
	}
	return nil
}

// stated takes attributes and dimension names of an array from its documents verbatim. Every array of a stage
// states how many chunks it stores.
func (w *writer) stated(a *array) error {
	document := func(name string, into any) error {
		b, err := os.ReadFile(filepath.Join(w.dir, a.Path, name))
		if err != nil {
			return err
		}
		return json.Unmarshal(b, into)
	}
	var doc struct {
		Attributes map[string]any
		Names      []*string `json:"dimension_names"`
	}
	var err error
	if a.Format == 2 {
		err = document(".zattrs", &doc.Attributes)
	} else {
		err = document("zarr.json", &doc)
	}
	if err != nil {
		return err
	}
	if doc.Attributes[zarr.AccountKey] == nil {
		return fmt.Errorf("%s: no attribute %q, the account of its chunks", a.Path, zarr.AccountKey)
	}
	a.Attributes, a.DimensionNames = doc.Attributes, doc.Names
	return nil
}
