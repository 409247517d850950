package mosaic

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"strata/pkg/cli"
	"strata/pkg/cli/stage"
	"strata/pkg/rawtiles"
)

// input holds the slices to read and the place to write to.
type input struct {
	root   string // for the run record
	slices []rawtiles.Slice
	out    string
}

// inputs finds the slices to make. With folders of tiles, or a root by its flag, the first argument is OUT.
func inputs(ctx context.Context, r *cli.Run) (*input, error) {
	if err := checkProducts(r); err != nil {
		return nil, err
	}
	in := &input{root: r.Arg("RAW"), out: r.Arg("OUT")}
	tiles := r.Strings("tiles")
	root := r.String("from_root_directory")
	switch {
	case len(tiles) > 0 && root != "":
		return nil, cli.Usage("--tiles contradicts --from_root_directory: give one of them")
	case len(tiles) > 0:
		in.out = in.root
		if r.Bool("list") || !r.Bool("keep_mosaic") { // there is no OUT
			tiles, in.out = append(tiles, in.root), ""
		}
		if r.Arg("OUT") != "" {
			tiles = append(append(tiles, r.Arg("OUT")), r.Args("TILE")...)
		}
		in.root = filepath.Dir(tiles[0])
	case len(r.Args("TILE")) > 0:
		return nil, cli.Usage("unexpected argument %s: want RAW OUT", r.Args("TILE")[0])
	case root != "":
		if in.out != "" {
			return nil, cli.Usage("unexpected argument %s: --from_root_directory names RAW, want OUT only", in.out)
		}
		in.root, in.out = root, in.root
	}
	if err := in.find(ctx, r, tiles); err != nil {
		return nil, err
	}
	if err := in.choose(r); err != nil {
		return nil, err
	}
	switch {
	case r.Bool("json") && !r.Bool("list"):
		return nil, cli.Usage("--json is for --list: give that as well")
	case r.Bool("list") && in.out != "":
		return nil, cli.Usage("unexpected argument %s: --list writes no image", in.out)
	case !r.Bool("keep_mosaic") && in.out != "":
		return nil, cli.Usage("unexpected argument %s: --no-keep_mosaic writes no mosaic", in.out)
	case !r.Bool("list") && r.Bool("keep_mosaic") && in.out == "":
		return nil, cli.Usage("argument OUT is missing: the image to write, or give --list")
	}
	return in, nil
}

// find lists the slices in the root, or those of given tiles.
func (in *input) find(ctx context.Context, r *cli.Run, tiles []string) (err error) {
	if len(tiles) == 0 {
		in.slices, in.root, err = stage.RawTiles(ctx, r, in.root)
		return err
	}
	for i := range tiles {
		if tiles[i], err = r.LocalInput(tiles[i]); err != nil {
			return err
		}
	}
	in.slices, err = rawtiles.Of(tiles)
	return cli.BadInput(err)
}

// choose keeps the slices that the flags ask for.
func (in *input) choose(r *cli.Run) error {
	switch {
	case r.IsSet("slice") && r.Bool("all"):
		return cli.Usage("--slice contradicts --all: give one of them")
	case r.IsSet("slice"):
		k := slices.IndexFunc(in.slices, func(s rawtiles.Slice) bool { return s.ID == r.Int("slice") })
		if k < 0 {
			return cli.Usage("--slice %d: there are no tiles of it in %s, which has %s", r.Int("slice"), in.root, in.numbers())
		}
		in.slices = in.slices[k : k+1]
	case len(in.slices) > 1 && !r.Bool("all") && !r.Bool("list"):
		return cli.Usage("%s has tiles of %s: give --slice N, or --all", in.root, in.numbers())
	}
	return nil
}

// mostNumbers limits the slices that a message lists.
const mostNumbers = 10

func (in *input) numbers() string {
	var list []string
	for _, s := range in.slices[:min(len(in.slices), mostNumbers)] {
		list = append(list, fmt.Sprint(s.ID))
	}
	text := "slice " + list[0]
	if len(in.slices) > 1 {
		text = "slices " + strings.Join(list, ", ")
	}
	if len(in.slices) > mostNumbers {
		text += fmt.Sprintf(" … %d", in.slices[len(in.slices)-1].ID)
	}
	return text
}
