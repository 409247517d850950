package zarrout

import (
	"context"
	"encoding/json"
	"errors"
	"path"
	"slices"
	"strings"

	"strata/pkg/cli"
	"strata/pkg/ngff"
	"strata/pkg/ngff/display"
	"strata/pkg/runrecord"
	"strata/pkg/zarr"
	"strata/pkg/zarr/store"
)

// Complete writes into an image, in a folder that is an output, how to show it and which run made it. Outputs of
// [Create] are completed at the end of the run.
func Complete(ctx context.Context, r *cli.Run, st store.Writer, out string) error {
	return complete(ctx, st, r.Provenance(out), out, r.Options.Mem)
}

// complete writes into the image at the root of a store, or the images of a collection there, how to show it and which
// run made it; out is the output's path, and mem bounds what reading a coarse level takes.
func complete(ctx context.Context, st store.Writer, p runrecord.Provenance, out string, mem int64) error {
	name := name(p, out)
	n, err := zarr.Open(ctx, st, "", zarr.Workers(1))
	if err != nil {
		return err
	}
	g, ok := n.(*zarr.Group)
	if !ok {
		return nil // an array alone is no image
	}
	if p.Nodes, err = others(ctx, g); err != nil {
		return err
	}
	if err := completeImage(ctx, g, p, name, mem); err != nil {
		return err
	}
	p.Nodes = nil // the root's record names all
	if m, _ := ngff.ReadMetadata(g); !m.Collection {
		return nil
	}
	children, err := g.Children(ctx)
	if err != nil {
		return err
	}
	for _, key := range children {
		if strings.Trim(key, "0123456789") != "" {
			continue
		}
		image, err := g.Group(ctx, key)
		if err != nil {
			return err
		}
		if err := completeImage(ctx, image, p, name+" "+key, mem); err != nil {
			return err
		}
	}
	return nil
}

// others returns the paths of the groups and arrays below a group that are not levels of its image, sorted.
func others(ctx context.Context, g *zarr.Group) (paths []string, err error) {
	levels := map[string]bool{}
	m, _ := ngff.ReadMetadata(g)
	for _, image := range m.Multiscales {
		for _, d := range image.Datasets {
			levels[d.Path] = true
		}
	}
	var below func(g *zarr.Group, path string) error
	below = func(g *zarr.Group, at string) error {
		children, err := g.Children(ctx)
		if err != nil {
			return err
		}
		for _, name := range children {
			full := store.Join(at, name)
			n, err := g.Open(ctx, name)
			if err != nil {
				return err
			}
			if !levels[full] {
				paths = append(paths, full)
			}
			if child, ok := n.(*zarr.Group); ok {
				if err := below(child, full); err != nil {
					return err
				}
			}
		}
		return nil
	}
	err = below(g, "")
	slices.Sort(paths)
	return paths, err
}

// completeImage completes the attributes of a group, which may be an image.
func completeImage(ctx context.Context, g *zarr.Group, p runrecord.Provenance, name string, mem int64) error {
	attrs, err := shown(ctx, g, name, mem)
	if err != nil {
		return err
	}
	if raw, ok := g.Attributes()[runrecord.Attribute]; ok && p.Files == nil { // of an image that was copied
		var before runrecord.Provenance
		if json.Unmarshal(raw, &before) == nil {
			p.Files = before.Files
		}
	}
	attrs[runrecord.Attribute] = p
	return g.SetAttributes(ctx, attrs)
}

// shown returns the attributes of a group, of an image with its display settings.
func shown(ctx context.Context, g *zarr.Group, name string, mem int64) (map[string]any, error) {
	im, err := ngff.Open(ctx, g.Store(), g.Path(), zarr.Workers(1), zarr.Budget(mem))
	if err == nil {
		defer func() {
			for _, l := range im.Levels {
				l.Array.Close()
			}
		}()
		var attrs map[string]any
		if attrs, err = display.Attributes(ctx, im, name); err == nil {
			return attrs, nil
		}
	}
	var format *zarr.FormatError
	if !errors.As(err, &format) { // what is no image, or not a valid one, was copied as it is
		return nil, err
	}
	attrs := map[string]any{}
	for k, v := range g.Attributes() {
		attrs[k] = v
	}
	return attrs, nil
}

// name returns a name for an image that has none: that of its first input, else of its output.
func name(p runrecord.Provenance, out string) string {
	base := path.Base(strings.TrimRight(out, "/"))
	if len(p.Inputs) > 0 {
		base = p.Inputs[0]
	}
	for {
		ext := path.Ext(base)
		if ext == "" || ext == base || !slices.Contains(endings, strings.ToLower(ext)) {
			return base
		}
		base = strings.TrimSuffix(base, ext)
	}
}

// endings are those of files and folders that hold images.
var endings = []string{".zarr", ".ome", ".zip", ".ozx", ".tif", ".tiff", ".btf", ".tf8", ".svs", ".ndpi", ".scn", ".czi", ".npy"}
