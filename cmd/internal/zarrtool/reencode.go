package zarrtool

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"runtime"
	"slices"

	"strata/pkg/cli"
	"strata/pkg/cli/datasets"
	"strata/pkg/cli/zarrout"
	"strata/pkg/ngff"
	"strata/pkg/work"
	"strata/pkg/zarr"
	"strata/pkg/zarr/store"
)

func reencodeCommand() *cli.Command {
	return &cli.Command{
		Name:  "reencode",
		Usage: "copy an array or hierarchy with other chunks, codecs, data types or Zarr format",
		Description: "Copies IN to OUT. Shapes, chunks, codecs, fill values and attributes stay as they are unless a flag changes\n" +
			"them. --zarr_format also converts OME-Zarr metadata: 0.4 belongs to format 2, 0.5 to format 3.",
		Args: []cli.Arg{
			{Name: "IN", Usage: "Zarr array or group: folder, .zip file, or http(s):// or s3:// URL"},
			{Name: "OUT", Usage: "folder to write"},
		},
		Flags:  storageFlags(),
		Shared: cli.Inputs | cli.Resources | cli.Outputs | cli.Layout,
		Hints:  cli.Hints{"chunks": {Value: "N,...", Note: "the input's"}, "shard": {Value: "N,...", Note: "the input's"}, "codec": {Note: "the input's"}, "checksum": {Note: "as the input"}},
		Examples: []cli.Example{
			{Command: "zarr-tool reencode old.ome.zarr new.ome.zarr --zarr_format 3 --codec zstd:3", Usage: "a whole image from Zarr v2 to v3"},
			{Command: "zarr-tool reencode a.zarr b.zarr --chunks 64,64,64 --shard 256,256,256", Usage: "small chunks in large shards"},
			{Command: "zarr-tool reencode https://host/a.zarr/0 local.zarr --codec raw --dtype uint16", Usage: "from a web server, as raw uint16"},
		},
		Run: cli.Do(runReencode),
	}
}

func runReencode(ctx context.Context, r *cli.Run) error {
	in, err := openNode(ctx, r, r.Arg("IN"), datasets.Missing(r))
	if err != nil {
		return err
	}
	s, err := storageOf(r)
	if err != nil {
		return err
	}
	out, err := zarrout.Create(ctx, r, r.Arg("OUT"))
	if err != nil {
		return err
	}
	plan, err := planCopy(ctx, in.Node, "", passing(r))
	if err != nil {
		return cli.BadInput(err)
	}
	task := r.Progress("reencode", decoded(plan))
	st := out.Store
	for _, p := range plan {
		switch n := p.node.(type) {
		case *zarr.Group:
			format := n.Format()
			if s.format != 0 {
				format = s.format
			}
			attrs, err := convertAttributes(n.Attributes(), n.Format(), format)
			if err != nil {
				return cli.BadInputf("%s: %w", n.Location(), err)
			}
			if _, err := zarr.CreateGroup(ctx, st, p.path, format, attrs); err != nil {
				return err
			}
		case *zarr.Array:
			spec, err := s.spec(n, p.names)
			if err != nil {
				return err
			}
			a, err := copyArray(ctx, r, n, st, p.path, spec, s.omitFill, task.Add)
			if err != nil {
				return cli.BadInput(err)
			}
			r.Read(datasets.Describe(n, n.Location()))
			r.Wrote(datasets.Describe(a, join(out.Path(), p.path)))
		}
	}
	task.Done()
	return nil
}

// decoded returns the decoded size of all arrays of a plan.
func decoded(plan []step) (total int64) {
	for _, p := range plan {
		if a, ok := p.node.(*zarr.Array); ok {
			total += datasets.Bytes(a)
		}
	}
	return total
}

func join(folder, path string) string {
	if path == "" {
		return folder
	}
	return folder + "/" + path
}

// step is one node to copy.
type step struct {
	node  zarr.Node
	path  string
	names []string // dimension names for an array that has none
}

// planCopy lists a hierarchy, groups before their members, without what killed runs left in images. Axis names of NGFF
// 0.4 become the dimension names that 0.5 requires. pass is called with the error of each array of a kind that is not
// read.
func planCopy(ctx context.Context, n zarr.Node, path string, pass func(error)) ([]step, error) {
	plan := []step{{n, path, nil}}
	g, ok := n.(*zarr.Group)
	if !ok {
		return plan, nil
	}
	children, err := childrenOf(ctx, g)
	if err != nil {
		return nil, err
	}
	remains, err := ngff.Remains(ctx, g, children)
	if err != nil {
		return nil, err
	}
	names := axisNames(g)
	children = slices.DeleteFunc(children, func(name string) bool { return slices.Contains(remains, name) })
	nodes, err := openAll(ctx, g, children, nil)
	if err != nil {
		return nil, err
	}
	for i, name := range children {
		child := nodes[i].Node
		if child == nil {
			pass(nodes[i].foreign)
			continue
		}
		below, err := planCopy(ctx, child, store.Join(path, name), pass)
		if err != nil {
			return nil, err
		}
		if a, ok := child.(*zarr.Array); ok && len(names[name]) == len(a.Shape()) {
			below[0].names = names[name]
		}
		plan = append(plan, below...)
	}
	return plan, nil
}

// passing warns of arrays of a kind that is not read, such as tables and text beside an image.
func passing(r *cli.Run) func(error) {
	return func(err error) { r.Warn("passed over: %v", err) }
}

// opened is a node, or the error of an array of a kind that is not read.
type opened struct {
	zarr.Node
	foreign error
}

// openAll opens nodes of a group, several at a time: a group can have a hundred thousand. Those that are known it takes
// as they are.
func openAll(ctx context.Context, g *zarr.Group, names []string, known map[string]zarr.Node) ([]opened, error) {
	nodes := make([]opened, len(names))
	err := work.Each(ctx, runtime.GOMAXPROCS(0), len(names), func(_, i int) (err error) {
		n := &nodes[i]
		if n.Node = known[names[i]]; n.Node == nil {
			n.Node, err = g.Open(ctx, names[i])
		}
		if errors.Is(err, zarr.ErrForeign) {
			*n, err = opened{foreign: err}, nil
		}
		return err
	})
	return nodes, err
}

// childrenOf lists a group. A web server cannot list, so there the children are those that OME-Zarr metadata name:
// the levels of an image and its label images. If they name none, the error is errors.ErrUnsupported.
func childrenOf(ctx context.Context, g *zarr.Group) ([]string, error) {
	names, unlisted := g.Children(ctx)
	if far, ok := g.Store().(store.Distant); ok && far.Requests() > 0 && errors.Is(unlisted, fs.ErrPermission) {
		unlisted = errors.Join(unlisted, errors.ErrUnsupported) // a public bucket, of which everybody may read the keys that he knows
	}
	if !errors.Is(unlisted, errors.ErrUnsupported) {
		return names, unlisted
	}
	m, _ := ngff.ReadMetadata(g)
	names = m.Labels
	seen := map[string]bool{}
	for _, ms := range m.Multiscales {
		for _, d := range ms.Datasets {
			if !seen[d.Path] && !slices.Contains(m.Labels, d.Path) {
				names, seen[d.Path] = append(names, d.Path), true
			}
		}
	}
	if len(names) == 0 {
		return nil, unlisted
	}
	if len(m.Multiscales) > 0 {
		switch _, err := g.Open(ctx, "labels"); {
		case err == nil:
			names = append(names, "labels")
		case !errors.Is(err, fs.ErrNotExist):
			return nil, err
		}
	}
	return names, nil
}

// axisNames returns the axis names of an image's levels, by path.
func axisNames(g *zarr.Group) map[string][]string {
	var m []struct {
		Axes []struct {
			Name string `json:"name"`
		} `json:"axes"`
		Datasets []struct {
			Path string `json:"path"`
		} `json:"datasets"`
	}
	if json.Unmarshal(g.Attributes()["multiscales"], &m) != nil {
		return nil
	}
	out := map[string][]string{}
	for _, s := range m {
		var names []string
		for _, a := range s.Axes {
			names = append(names, a.Name)
		}
		for _, d := range s.Datasets {
			out[d.Path] = names
		}
	}
	return out
}
