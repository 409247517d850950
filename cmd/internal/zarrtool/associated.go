package zarrtool

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"strata/pkg/cli"
	"strata/pkg/cli/datasets"
	"strata/pkg/cli/zarrout"
	"strata/pkg/ngff"
	"strata/pkg/tiff"
	"strata/pkg/tiff/tiffstore"
	"strata/pkg/tiff/tiffwriter"
	"strata/pkg/zarr"
	"strata/pkg/zarr/store"
)

// associatedFolder is the group of an image with the pictures that slide scanners take beside it.
const associatedFolder = "associated"

// isAssociated reports whether an image of a file is a picture of the slide's label, of the whole slide, or a small
// version of the scan.
func isAssociated(name string) bool {
	return slices.Contains([]string{"label", "macro", "thumbnail", "overview"}, strings.TrimSuffix(strings.ToLower(name), " image"))
}

// slideInfo holds what an image says of the file that it comes from, as "tiff" or "czi".
type slideInfo struct {
	Magnification float64           `json:"magnification"`
	Others        []string          `json:"other_images"`      // of a TIFF file
	Associated    map[string]string `json:"associated_images"` // of an image that was imported: keys by name
}

func slideOf(attributes map[string]json.RawMessage) (info slideInfo) {
	for _, member := range []string{"czi", "tiff"} {
		_ = json.Unmarshal(attributes[member], &info) // attributes may be anything
	}
	return info
}

// associatedFlag leaves them out.
var associatedFlag = cli.Flag{Name: "associated", Kind: cli.Bool, Default: "true", Usage: "keep the pictures of a slide beside the image: label, macro and thumbnail"}

// pictures returns the keys of the pictures beside an input, by name.
func pictures(r *cli.Run, in *node) map[string]string {
	g, ok := in.Node.(*zarr.Group)
	if !ok || !r.Bool(associatedFlag.Name) {
		return nil
	}
	info, found := slideOf(g.Attributes()), map[string]string{}
	if _, ok := in.store.(*tiffstore.Store); ok && in.key == "" {
		for _, key := range info.Others {
			if isAssociated(key) {
				found[key] = key
			}
		}
	}
	for name, key := range info.Associated {
		if store.ValidKey(key) {
			found[name] = store.Join(in.key, key)
		}
	}
	return found
}

// namePictures makes the attributes of an imported image name the pictures beside it.
func namePictures(attributes map[string]any, beside map[string]string) {
	raw, _ := attributes["tiff"].(json.RawMessage)
	var m map[string]any
	if len(beside) == 0 || json.Unmarshal(raw, &m) != nil || m == nil {
		return
	}
	named := map[string]string{}
	for name := range beside {
		named[name] = associatedFolder + "/" + name
	}
	m["associated_images"] = named
	delete(m, "other_images") // which are in the file only
	attributes["tiff"] = m
}

// importPictures writes the pictures beside an imported image as images of one level below it.
func importPictures(ctx context.Context, r *cli.Run, out *zarrout.Output, key string, in *node, beside map[string]string, s storage) error {
	if len(beside) == 0 {
		return nil
	}
	folder := store.Join(key, associatedFolder)
	s.chunks, s.shard = nil, nil
	for i, name := range slices.Sorted(maps.Keys(beside)) {
		picture, err := openPicture(ctx, r, in, beside[name])
		if err != nil {
			return err
		}
		spec, a, err := describeOme(ctx, r, picture, nil)
		if err != nil {
			return err
		}
		n := datasets.Bytes(a)
		if err := fits(r, picture, n); err != nil {
			return err
		}
		data := make([]byte, n)
		if err := a.Read(ctx, a.Bounds(), data); err != nil {
			return cli.BadInput(err)
		}
		stored, err := s.spec(a, nil)
		if err != nil {
			return err
		}
		if i == 0 {
			if _, err := zarr.CreateGroup(ctx, out.Store, folder, stored.Format, nil); err != nil {
				return err
			}
		}
		spec.Format, spec.Shape, spec.Chunks, spec.DType, spec.Codecs = stored.Format, stored.Shape, imageChunks(a.Shape(), a.Chunks()), stored.DType, stored.Codecs
		spec.Workers, spec.Budget, spec.Meter = 1, r.Options.Mem/2, r.Meter
		w, err := ngff.Create(ctx, out.Store, store.Join(folder, name), spec)
		if err != nil {
			return cli.BadInput(err)
		}
		err = w.WriteTile(ctx, make([]int, len(spec.Shape)), spec.Shape, data)
		if err == nil {
			err = w.Close(ctx)
		}
		w.Abort()
		if err != nil {
			return err
		}
	}
	r.Conclude("%s kept in %s", listed(slices.Sorted(maps.Keys(beside))), associatedFolder)
	return nil
}

// openPicture opens a picture beside an input.
func openPicture(ctx context.Context, r *cli.Run, in *node, key string) (*node, error) {
	n, err := zarr.Open(ctx, in.store, key, readOptions(r)...)
	if err != nil {
		return nil, cli.BadInput(err)
	}
	return &node{Node: n, store: in.store, key: key, path: in.path + "/" + key}, nil
}

// fits refuses pictures that a quarter of the memory does not hold, all that are held together.
func fits(r *cli.Run, in *node, bytes int64) error {
	if bytes > r.Options.Mem/4 {
		return cli.MemoryError("%s: pictures of %d MiB beside the image, and --mem %d MiB: give more, or --no-associated", in.path, bytes>>20, r.Options.Mem>>20)
	}
	return nil
}

// listed joins names: "label, macro and thumbnail".
func listed(names []string) string {
	last := len(names) - 1
	if last < 1 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

// addPictures adds the pictures beside the input to what is written.
func (x *export) addPictures(ctx context.Context, r *cli.Run, in *node) error {
	beside := pictures(r, in)
	var kept []string
	held := int64(0)
	for _, name := range slices.Sorted(maps.Keys(beside)) {
		picture, err := openPicture(ctx, r, in, beside[name])
		if errors.Is(err, fs.ErrNotExist) { // somebody took a label away
			r.Warn("%s/%s: is not there, and left out", in.path, beside[name])
			continue
		}
		if err != nil {
			return err
		}
		p, err := readPicture(ctx, r, picture, held)
		if err != nil {
			return err
		}
		if p == nil {
			r.Warn("%s: is no picture of one plane, and left out", picture.path)
			continue
		}
		p.Name = name
		held += int64(len(p.Data))
		x.spec.Beside = append(x.spec.Beside, *p)
		kept = append(kept, name)
	}
	if kept != nil {
		r.Conclude("with %s", listed(kept))
	}
	return nil
}

// readPicture reads a picture with the samples of a pixel together, beside held bytes of others; nil if it has several
// planes, or a type that OME-TIFF does not have.
func readPicture(ctx context.Context, r *cli.Run, in *node, held int64) (*tiffwriter.Picture, error) {
	im, err := ngff.OpenPresent(ctx, in.store, in.key, zarr.Workers(r.Options.Threads), zarr.Budget(r.Options.Mem/4), zarr.Meter(r.Meter))
	if err != nil {
		return nil, cli.BadInput(err)
	}
	a := im.Levels[0].Array
	p, at := &tiffwriter.Picture{Type: a.DType(), Samples: 1}, map[string]int{}
	for d, axis := range im.Axes {
		switch n := a.Shape()[d]; axis.Name {
		case "y":
			p.Height = n
		case "x":
			p.Width = n
		case "c":
			p.Samples = n
		default:
			if n != 1 {
				return nil, nil
			}
		}
		at[axis.Name] = d
	}
	if !tiff.OMEHolds(p.Type) || p.Samples != 1 && p.Samples != 3 && p.Samples != 4 {
		return nil, nil
	}
	n := datasets.Bytes(a)
	if err := fits(r, in, held+n); err != nil {
		return nil, err
	}
	p.Data = make([]byte, n)
	strides, elem := make([]int, len(im.Axes)), p.Type.Size()
	for axis, stride := range map[string]int{"y": p.Width * p.Samples * elem, "x": p.Samples * elem, "c": elem} {
		if d, ok := at[axis]; ok {
			strides[d] = stride
		}
	}
	return p, cli.BadInput(a.ReadStrided(ctx, a.Bounds(), p.Data, strides))
}
