package zarrtool

import (
	"cmp"
	"context"
	"slices"

	"strata/pkg/cli"
	"strata/pkg/cli/stage"
	"strata/pkg/cli/zarrout"
	"strata/pkg/czi"
	"strata/pkg/czi/czistore"
	"strata/pkg/ngff"
	"strata/pkg/tilegrid"
	"strata/pkg/tilegrid/czitiles"
	"strata/pkg/zarr/codec"
)

// importTiles writes a mosaic grid of the tiles of a slide scan to OUT, and their positions to a file.
func importTiles(ctx context.Context, r *cli.Run, in *node) error {
	st, ok := in.store.(*czistore.Store)
	if !ok {
		return cli.Usage("--tiles is for CZI files, and %s is not one", in.path)
	}
	for _, flag := range []string{"chunks", "shard", "keep_levels"} {
		if r.IsSet(flag) {
			return cli.Usage("--%s: with --tiles a chunk is a plane of a tile", flag)
		}
	}
	scene, err := sceneOf(st, in.key)
	if err != nil {
		return err
	}
	scan, err := czitiles.Of(ctx, st.File(), scene)
	if err != nil {
		return cli.BadInput(err)
	}
	if in.key == "" && st.Names() != nil {
		in.key = czistore.SlideKey
	}
	im, err := ngff.OpenPresent(ctx, st, in.key)
	if err != nil {
		return cli.BadInput(err)
	}
	scan.Name, scan.Omero = im.Name, im.Omero
	if name := r.String("name"); name != "" {
		scan.Name = name
	}
	codecs, err := codec.FromFlag(r.Options.Codec, scan.DType, r.Options.ZarrFormat)
	if err != nil {
		return cli.Usage("%w", err)
	}
	out, err := zarrout.Create(ctx, r, r.Arg("OUT"))
	if err != nil {
		return err
	}
	file, err := r.OutputFile(cmp.Or(r.String("save_positions"), stage.PositionsName(r.Arg("OUT"))))
	if err != nil {
		return err
	}
	task := r.Progress("tiles", scan.Bytes())
	positions, err := scan.Write(ctx, out.Store, tilegrid.Storage{Format: r.Options.ZarrFormat, Codecs: codecs, Levels: r.Options.Levels, Workers: r.Options.Threads,
		Mem: r.Options.Mem, Meter: r.Meter, Progress: task.Add})
	if err != nil {
		return stage.Failed(err)
	}
	if err := file.Write(positions.Write); err != nil {
		return err
	}
	task.Done()
	result, err := ngff.Open(ctx, out.Store, "")
	if err != nil {
		return err
	}
	stage.Describe(r, im, in.path, result, out.Path())
	return nil
}

// sceneOf returns the scene of a key.
func sceneOf(st *czistore.Store, key string) (int, error) {
	scenes := st.File().Scenes()
	switch k := slices.Index(st.Names(), key); {
	case key == "" || key == czistore.SlideKey:
		return czi.AllScenes, nil
	case k >= 0 && k < len(scenes):
		return scenes[k].Index, nil
	}
	return 0, cli.Usage("--tiles: %s is not a scene", st.Location(key))
}
