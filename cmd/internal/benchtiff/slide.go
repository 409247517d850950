package benchtiff

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"strata/cmd/internal/benchzarr"
	"strata/pkg/cli"
	"strata/pkg/images"
	"strata/pkg/tiff"
	"strata/pkg/tiff/tiffstore"
	"strata/pkg/tiff/tilecodec"
	"strata/pkg/zarr/store"
)

// openFile opens a TIFF file.
func openFile(ctx context.Context, r *cli.Run, path string) (*tiffstore.Store, error) {
	st, key, err := images.File(ctx, path, store.Settings(r.Options.HTTP))
	if err != nil {
		return nil, cli.BadInput(err)
	}
	t, ok := st.(*tiffstore.Store)
	switch {
	case st == nil:
		return nil, cli.BadInputf("%s: is not a TIFF file", path)
	case !ok:
		err = cli.BadInputf("%s: is not a TIFF file", path)
	case key != "":
		err = cli.Usage("%s: name the file alone, and what is in it by --page or --level", path)
	case len(t.File().Images) == 0:
		err = cli.BadInputf("%s: has no image", path)
	default:
		return t, nil
	}
	return nil, errors.Join(err, st.Close())
}

// pageKey returns the key of the page that the flags select. level is its level in the file's first image, or −1
// if it is none of its pages.
func pageKey(r *cli.Run, st *tiffstore.Store) (key string, page *tiff.Page, level int, err error) {
	f := st.File()
	level = r.Int("level")
	if !r.IsSet("page") {
		if r.IsSet("sub_ifd") {
			return "", nil, 0, cli.Usage("--sub_ifd %d: give --page as well: a sub-IFD belongs to a page", r.Int("sub_ifd"))
		}
		im := f.Images[0]
		if level >= len(im.Levels) {
			return "", nil, 0, cli.Usage("--level %d: %s has levels 0 to %d", level, f.Name, len(im.Levels)-1)
		}
		for _, p := range im.Levels[level].Pages {
			if p == nil {
				continue
			}
			if key := st.PageKey(p); key != "" {
				return key, p, level, nil
			}
			break
		}
		return "", nil, 0, cli.BadInputf("%s: the first plane of level %d lies in another file: name that", f.Name, level)
	}
	if r.IsSet("level") {
		return "", nil, 0, cli.Usage("--page contradicts --level: give one of them")
	}
	n, key := r.Int("page"), fmt.Sprintf("pages/%d", r.Int("page"))
	if n >= len(f.Pages) {
		return "", nil, 0, cli.Usage("--page %d: %s has pages 0 to %d", n, f.Name, len(f.Pages)-1)
	}
	p := f.Pages[n]
	if r.IsSet("sub_ifd") {
		k := r.Int("sub_ifd")
		if k >= len(p.Sub) {
			return "", nil, 0, cli.Usage("--sub_ifd %d: page %d of %s has %d sub-IFDs", k, n, f.Name, len(p.Sub))
		}
		p, key = p.Sub[k], fmt.Sprintf("%s.%d", key, k)
	}
	for l, level := range f.Images[0].Levels {
		if len(level.Pages) > 0 && level.Pages[0] == p {
			return key, p, l, nil
		}
	}
	return key, p, -1, nil
}

// look finds the page that the flags select in the file FILE, and describes it for the peers.
func look(ctx context.Context, r *cli.Run, path string) (*benchzarr.Target, *tiff.Page, error) {
	path, err := r.Input(path)
	if err != nil {
		return nil, nil, err
	}
	st, err := openFile(ctx, r, path)
	if err != nil {
		return nil, nil, err
	}
	key, page, level, err := pageKey(r, st)
	if err = errors.Join(err, st.Close()); err != nil {
		return nil, nil, err
	}
	t, err := benchzarr.Look(ctx, r, benchzarr.Below(path, key))
	if err != nil {
		return nil, nil, err
	}
	t.Level = level
	t.Lossy = !slices.Contains([]string{"none", "lzw", "deflate", "packbits", "lzma", "zstd"}, tilecodec.Name(page.Compression))
	return t, page, nil
}

// cold reports whether the file is dropped from the page cache before each repetition.
func cold(r *cli.Run) bool { return r.Bool("cold") || r.String("cache") == "cold" }
