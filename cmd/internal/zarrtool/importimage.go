package zarrtool

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"

	"strata/pkg/cli"
	"strata/pkg/cli/datasets"
	"strata/pkg/cli/zarrout"
	"strata/pkg/czi/czistore"
	"strata/pkg/images"
	"strata/pkg/ngff"
	"strata/pkg/zarr"
	"strata/pkg/zarr/store"
)

// openImage opens an image file of another format; it returns nil if the input is none.
func openImage(ctx context.Context, r *cli.Run, name string) (*node, error) {
	if name == "-" || r.IsSet("shape") || r.IsSet("dtype") {
		return nil, nil
	}
	path, err := r.Input(name)
	if err != nil {
		return nil, err
	}
	st, key, err := images.File(ctx, path, store.Settings(r.Options.HTTP))
	if st == nil || err != nil {
		return nil, cli.BadInput(err)
	}
	if r.Bool("whole_slide") {
		if _, ok := st.(*czistore.Store); !ok || key != "" {
			return nil, errors.Join(cli.Usage("--whole_slide is for CZI files, and %s is not one", path), st.Close())
		}
		key = czistore.SlideKey
	}
	return nodeIn(ctx, r, path, st, key, datasets.Missing(r))
}

// importImage writes OUT from an image.
func importImage(ctx context.Context, r *cli.Run, in *node) error {
	for _, flag := range []string{"offset", "dimension_names", "attributes", "fill"} {
		if r.IsSet(flag) {
			return cli.Usage("--%s is for .npy files and raw bytes; %s is an image", flag, in.path)
		}
	}
	for _, flag := range []string{"tiles", "keep_levels"} {
		if r.Bool("labels") && r.Bool(flag) {
			return cli.Usage("--%s keeps what %s has: leave out --labels", flag, in.path)
		}
	}
	if r.Bool("tiles") {
		return importTiles(ctx, r, in)
	}
	if r.IsSet("save_positions") {
		return cli.Usage("--save_positions goes with --tiles")
	}
	out, err := zarrout.Create(ctx, r, r.Arg("OUT"))
	if err != nil {
		return err
	}
	if st, ok := in.store.(*czistore.Store); ok && in.key == "" && st.Names() != nil {
		return importScenes(ctx, r, out, in, st)
	}
	return importTo(ctx, r, out, "", in)
}

// importTo writes an image at a key of an output.
func importTo(ctx context.Context, r *cli.Run, out *zarrout.Output, key string, in *node) error {
	s := storage{format: r.Options.ZarrFormat, codec: r.Options.Codec, chunks: r.Options.Chunks, shard: r.Options.Shard}
	spec, a, err := describeOme(ctx, r, in, nil)
	if err != nil {
		return err
	}
	if name := r.String("name"); name != "" {
		spec.Name = name
	}
	if r.Bool("labels") {
		asLabels(&spec)
	}
	beside := pictures(r, in)
	if s.chunks == nil {
		s.chunks = imageChunks(a.Shape(), a.Chunks())
	}
	if r.Bool("keep_levels") {
		err = importLevels(ctx, r, out, key, in, s, spec, beside)
	} else {
		namePictures(spec.Attributes, beside)
		err = writeImageTo(ctx, r, out, key, in, s, spec, source{Array: a})
	}
	if err != nil {
		return err
	}
	return importPictures(ctx, r, out, key, in, beside, s)
}

// importScenes writes an image for each scene, in the layout of bioformats2raw.
func importScenes(ctx context.Context, r *cli.Run, out *zarrout.Output, in *node, st *czistore.Store) error {
	names := st.Names()
	if r.IsSet("name") {
		return cli.Usage("--name is for one image, and %s has %d scenes: name one of them (%s/0), or give --whole_slide", in.path, len(names), in.path)
	}
	format := cmp.Or(r.Options.ZarrFormat, 3)
	for _, key := range []string{"", "OME"} {
		g, err := zarr.OpenGroup(ctx, st, key)
		if err != nil {
			return cli.BadInput(err)
		}
		attrs, err := convertAttributes(g.Attributes(), 3, format)
		if err != nil {
			return err
		}
		if _, err := zarr.CreateGroup(ctx, out.Store, key, format, attrs); err != nil {
			return err
		}
	}
	for _, name := range names {
		scene, err := zarr.Open(ctx, st, name, zarr.Workers(r.Options.Threads), zarr.Budget(r.Options.Mem/2), zarr.Meter(r.Meter))
		if err != nil {
			return cli.BadInput(err)
		}
		if err := importTo(ctx, r, out, name, &node{Node: scene, store: st, key: name, path: in.path + "/" + name}); err != nil {
			return err
		}
	}
	return nil
}

// imageChunks returns the chunks of an imported image: its tiles, or pieces of a usual size if it has strips or
// tiles of very few or of millions of pixels.
func imageChunks(shape, tile []int) []int {
	const least, usual, most = 128, 512, 2048
	chunks := slices.Clone(tile)
	for d := len(chunks) - 2; d < len(chunks); d++ {
		if chunks[d] < least || chunks[d] > most {
			chunks[d] = usual
		}
	}
	for d := range chunks {
		chunks[d] = min(chunks[d], max(shape[d], 1))
	}
	return chunks
}

// importLevels copies all levels of an image unchanged, and names the pictures beside it.
func importLevels(ctx context.Context, r *cli.Run, out *zarrout.Output, key string, in *node, s storage, spec ngff.ImageSpec, beside map[string]string) error {
	im, err := ngff.Open(ctx, in.store, in.key, zarr.Workers(1), zarr.Meter(r.Meter))
	if err != nil {
		return cli.BadInput(err)
	}
	if r.IsSet("n_levels") {
		return cli.Usage("--n_levels: --keep_levels takes over the %d levels that %s has", len(im.Levels), in.path)
	}
	if s.format == 0 {
		s.format = 3
	}
	attrs, err := convertAttributes(im.Group.Attributes(), 3, s.format)
	if err != nil {
		return cli.BadInputf("%s: %w", in.path, err)
	}
	setName(attrs, spec.Name)
	namePictures(attrs, beside)
	if _, err := zarr.CreateGroup(ctx, out.Store, key, s.format, attrs); err != nil {
		return err
	}
	var total int64
	for _, l := range im.Levels {
		total += datasets.Bytes(l.Array)
	}
	task := r.Progress("levels", total)
	for k, l := range im.Levels {
		level := s
		level.chunks = slices.Clone(s.chunks)
		for d, n := range l.Array.Shape() {
			level.chunks[d] = min(level.chunks[d], n)
		}
		stored, err := level.spec(l.Array, nil)
		if err != nil {
			return err
		}
		a, err := copyArray(ctx, r, l.Array, out.Store, store.Join(key, strconv.Itoa(k)), stored, false, task.Add)
		if err != nil {
			return cli.BadInput(err)
		}
		if k == 0 {
			image, copied := datasets.DescribeImage(im, in.path), datasets.Describe(a, join(out.Path(), key))
			copied.VoxelSize, copied.Levels = image.VoxelSize, image.Levels
			r.Read(image)
			r.Wrote(copied)
		}
	}
	task.Done()
	return nil
}

// setName sets the name of an image in its attributes.
func setName(attrs map[string]any, name string) {
	ome, ok := attrs["ome"]
	var m map[string]any
	if raw, isRaw := ome.(json.RawMessage); ok && isRaw && json.Unmarshal(raw, &m) == nil {
		attrs["ome"] = m
	} else {
		m = attrs
	}
	list, _ := m["multiscales"].([]any)
	if len(list) == 0 || name == "" {
		return
	}
	if first, ok := list[0].(map[string]any); ok {
		first["name"] = name
	}
}
