package zarrtool

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"strata/pkg/cli"
	"strata/pkg/czi/czistore"
	"strata/pkg/ngff"
	"strata/pkg/tiff"
	"strata/pkg/tiff/tiffstore"
	"strata/pkg/tiff/tilecodec"
	"strata/pkg/units"
	"strata/pkg/zarr"
	"strata/pkg/zarr/store"
)

func infoCommand() *cli.Command {
	return &cli.Command{
		Name:  "info",
		Usage: "show the tree of an array, group or image: shapes, codecs, voxel sizes",
		Args:  []cli.Arg{{Name: "PATH", Usage: "Zarr folder, .zip file, TIFF or CZI file, or http(s):// or s3:// URL"}},
		Flags: []cli.Flag{
			{Name: "json", Kind: cli.Bool, Usage: "print JSON instead of text"},
			{Name: "metadata", Kind: cli.Bool, Usage: "also print the metadata document of each node"},
			{Name: "size", Kind: cli.Bool, Usage: "also add up the bytes that each array takes on storage (lists every chunk)"},
			{Name: "range", Kind: cli.Bool, Usage: "also find the smallest and the largest value of each array (reads all of it)"},
			{Name: "histogram", Kind: cli.Bool, Usage: "also count the values of each array in equal bins between the smallest and the largest (reads all of it twice)"},
			{Name: "bins", Kind: cli.Int, Default: "16", Check: cli.Between(1, 65536), Usage: "number of bins of --histogram, 1 to 65536"},
		},
		Shared: cli.Resources,
		Examples: []cli.Example{
			{Command: "zarr-tool info mosaic.ome.zarr", Usage: "the whole tree"},
			{Command: "zarr-tool info mosaic.ome.zarr/0 --range --histogram", Usage: "the range and distribution of the values of one array"},
			{Command: "zarr-tool info mosaic.ome.zarr --json | jq '.image.voxel_size_um'", Usage: "one field, for scripts"},
		},
		Run: cli.Do(runInfo),
	}
}

// nodeInfo holds the report of info about a node, and is its JSON.
type nodeInfo struct {
	Path       string                     `json:"path"`
	Kind       string                     `json:"kind"` // "array" or "group"
	Format     int                        `json:"zarr_format"`
	Shape      []int                      `json:"shape,omitempty"`
	DType      string                     `json:"dtype,omitempty"`
	Chunks     []int                      `json:"chunks,omitempty"`
	Shard      []int                      `json:"shard,omitempty"`
	Order      string                     `json:"order,omitempty"`
	Codecs     []string                   `json:"codecs,omitempty"`
	Dimensions []string                   `json:"dimension_names,omitempty"`
	Bytes      int64                      `json:"bytes,omitempty"`        // of the elements
	Stored     *int64                     `json:"stored_bytes,omitempty"` // with --size
	Objects    *int64                     `json:"stored_objects,omitempty"`
	Values     *valueInfo                 `json:"values,omitempty"`
	Image      *imageInfo                 `json:"image,omitempty"`
	TIFF       *tiffInfo                  `json:"tiff,omitempty"` // of the underlying file
	CZI        *cziInfo                   `json:"czi,omitempty"`
	Attributes map[string]json.RawMessage `json:"attributes,omitempty"`
	Metadata   json.RawMessage            `json:"metadata,omitempty"`
	Problem    string                     `json:"problem,omitempty"` // why an array is passed over
	Children   []*nodeInfo                `json:"children,omitempty"`
}

// imageInfo is the NGFF metadata of a group.
type imageInfo struct {
	Version  string      `json:"ngff_version"`
	Name     string      `json:"name,omitempty"`
	Axes     []string    `json:"axes"`
	Units    []string    `json:"units"`
	Voxel    []float64   `json:"voxel_size_um"` // 0 for axes that are not space
	Levels   []levelInfo `json:"levels"`
	Labels   []string    `json:"labels,omitempty"`
	Warnings []string    `json:"warnings,omitempty"`
	Problem  string      `json:"problem,omitempty"`
}

type levelInfo struct {
	Path  string    `json:"path"`
	Scale []float64 `json:"scale"` // in the axes' units
}

// tiffInfo describes a TIFF file apart from its images.
type tiffInfo struct {
	Big           bool    `json:"bigtiff"`
	BigEndian     bool    `json:"big_endian"`
	Pages         int     `json:"pages"`
	Kind          string  `json:"kind,omitempty"`
	Compression   string  `json:"compression,omitempty"`
	Photometric   string  `json:"photometric,omitempty"`
	Magnification float64 `json:"magnification,omitempty"`
	Problem       string  `json:"problem,omitempty"` // of the first page, where there is no image
}

func describeTIFF(st *tiffstore.Store) *tiffInfo {
	f := st.File()
	info := &tiffInfo{Big: f.Big, BigEndian: f.BigEndian(), Pages: len(f.Pages)}
	if im := st.Image(""); im != nil {
		l := im.Levels[0].Layout()
		info.Kind, info.Magnification = im.Kind, im.Magnification
		info.Compression, info.Photometric = tilecodec.Name(l.Compression), tiff.PhotometricName(l.Photometric)
	} else if err := f.Pages[0].Err; err != nil {
		info.Problem = err.Error()
	}
	return info
}

func (t *tiffInfo) String() string {
	kind := map[string]string{"ome": ", OME", "aperio": ", Aperio slide", "leica": ", Leica slide", "philips": ", Philips slide", "ventana": ", Ventana slide", "imagej": ", ImageJ"}[t.Kind]
	name := "TIFF"
	if t.Big {
		name = "BigTIFF"
	}
	pages := "1 page"
	if t.Pages != 1 {
		pages = fmt.Sprintf("%d pages", t.Pages)
	}
	text := fmt.Sprintf("%s, %s%s", name, pages, kind)
	if t.Kind != "" {
		text += ", " + strings.Replace(t.Compression, "none", "uncompressed", 1) + ", " + t.Photometric
	}
	if t.Magnification > 0 {
		text += fmt.Sprintf(", %g×", t.Magnification)
	}
	if t.Problem != "" {
		text += "; " + t.Problem
	}
	return text
}

func runInfo(ctx context.Context, r *cli.Run) error {
	n, err := openNode(ctx, r, r.Arg("PATH"), nil)
	if err != nil {
		return err
	}
	info, err := describe(ctx, r, n, n.Node, n.path)
	if err != nil {
		return cli.BadInput(err)
	}
	if r.Bool("json") {
		enc := json.NewEncoder(r.Stdout)
		enc.SetIndent("", "  ")
		enc.SetEscapeHTML(false)
		return enc.Encode(info)
	}
	b := bufio.NewWriter(r.Stdout) // keeps the first error
	info.print(b, 0)
	return b.Flush()
}

func describe(ctx context.Context, r *cli.Run, root *node, n zarr.Node, path string) (*nodeInfo, error) {
	info := &nodeInfo{Path: path, Kind: "group", Format: n.Format(), Attributes: n.Attributes()}
	if r.Bool("metadata") {
		info.Metadata = n.MetadataJSON()
	}
	if a, ok := n.(*zarr.Array); ok {
		return info, info.array(ctx, r, a)
	}
	g := n.(*zarr.Group)
	var known map[string]zarr.Node
	info.Image, known = describeImage(ctx, r, root.store, g)
	if g.Path() == "" {
		switch st := root.store.(type) {
		case *tiffstore.Store:
			info.TIFF = describeTIFF(st)
		case *czistore.Store:
			info.CZI = describeCZI(ctx, r, st.File())
		}
	}
	children, err := childrenOf(ctx, g)
	if err != nil && !errors.Is(err, errors.ErrUnsupported) { // what cannot be listed is left out
		return nil, err
	}
	nodes, err := openAll(ctx, g, children, known)
	if err != nil {
		return nil, err
	}
	for i, name := range children {
		if err := nodes[i].foreign; err != nil {
			info.Children = append(info.Children, &nodeInfo{Path: name, Kind: "array", Format: n.Format(), Problem: err.Error()})
			continue
		}
		c, err := describe(ctx, r, root, nodes[i].Node, name)
		if err != nil {
			return nil, err
		}
		info.Children = append(info.Children, c)
	}
	return info, nil
}

func (info *nodeInfo) array(ctx context.Context, r *cli.Run, a *zarr.Array) error {
	info.Kind, info.Shape, info.DType = "array", a.Shape(), cmp.Or(a.NumpyType(), a.DType().String())
	info.Chunks, info.Shard, info.Dimensions = a.Chunks(), a.Shard(), a.DimensionNames()
	if a.Order() == 'F' {
		info.Order = "F"
	}
	for _, c := range a.Codecs() {
		text := c.Name()
		if a.Codecs().IsOfStore() {
			info.Codecs = []string{text}
			break
		}
		if raw, err := c.MetadataV2(); err == nil {
			text = compact(raw)
		} else if raw, err := c.MetadataV3(); err == nil {
			text = compact(raw)
		}
		info.Codecs = append(info.Codecs, text)
	}
	info.Bytes = int64(a.DType().Size())
	for _, s := range a.Shape() {
		info.Bytes = satMul(info.Bytes, int64(s))
	}
	if r.Bool("size") {
		var size, count int64
		err := walk(ctx, a.Store(), a.Path(), &size, &count)
		if _, file := a.Store().(store.Decoder); file && errors.Is(err, fs.ErrNotExist) {
			return cli.Usage("%s: --size adds up the chunks of a Zarr hierarchy, and this is one file: leave it out", a.Store().Location(""))
		}
		if err != nil {
			return err
		}
		info.Stored, info.Objects = &size, &count
	}
	if r.Bool("range") || r.Bool("histogram") {
		v, err := findValues(ctx, r, a)
		if err != nil {
			return err
		}
		info.Values = v
	}
	return nil
}

// compact converts a codec's metadata object to "name(setting=value, …)".
func compact(raw json.RawMessage) string {
	var m map[string]json.RawMessage
	if json.Unmarshal(raw, &m) != nil {
		return string(raw)
	}
	var name string
	for _, key := range []string{"id", "name"} {
		if json.Unmarshal(m[key], &name) == nil && name != "" {
			delete(m, key)
			break
		}
	}
	if c, ok := m["configuration"]; ok {
		m = nil
		_ = json.Unmarshal(c, &m) // a codec that this program made itself
	}
	var parts []string
	for _, k := range sortedKeys(m) {
		parts = append(parts, k+"="+strings.Trim(string(m[k]), `"`))
	}
	if len(parts) == 0 {
		return name
	}
	return name + "(" + strings.Join(parts, ", ") + ")"
}

// walk adds up the number and size of the objects below a key.
func walk(ctx context.Context, st store.Store, key string, size, count *int64) error {
	entries, err := st.List(ctx, key)
	if err != nil {
		return err
	}
	for _, e := range entries {
		below := store.Join(key, e.Name)
		switch {
		case e.Lost:
			_, err = st.Get(ctx, below, nil, 0)
		case e.Dir:
			err = walk(ctx, st, below, size, count)
		default:
			*size += e.Size
			*count++
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// describeImage reads a group's NGFF metadata, if it has any, and returns the arrays that it opened for that. An error
// in them is reported in the result, since the arrays can still be inspected.
func describeImage(ctx context.Context, r *cli.Run, st store.Store, g *zarr.Group) (*imageInfo, map[string]zarr.Node) {
	attrs := g.Attributes()
	if attrs["multiscales"] == nil && !strings.Contains(string(attrs["ome"]), `"multiscales"`) {
		return nil, nil
	}
	im, err := ngff.OpenPresent(ctx, st, g.Path(), readOptions(r)...)
	if err != nil {
		return &imageInfo{Problem: cli.Message(err.Error())}, nil
	}
	known := map[string]zarr.Node{}
	info := &imageInfo{Version: im.Version, Name: im.Name, Voxel: slices.Clone(im.VoxelSize), Labels: im.Labels, Warnings: im.Warnings}
	for d, a := range im.Axes {
		if a.Type != ngff.TypeSpace {
			info.Voxel[d] = 0
		}
		info.Axes, info.Units = append(info.Axes, a.Name), append(info.Units, a.Unit)
	}
	for _, l := range im.Levels {
		info.Levels = append(info.Levels, levelInfo{l.Path, l.Scale})
		known[l.Path] = l.Array
	}
	return info, known
}

func (info *nodeInfo) print(w io.Writer, depth int) {
	indent := strings.Repeat("  ", depth)
	line := func(format string, args ...any) {
		fmt.Fprintf(w, "%s%s\n", indent, fmt.Sprintf(format, args...))
	}
	if info.Problem != "" {
		line("%s  array, not read: %s", info.Path, info.Problem)
		return
	}
	if info.Kind == "array" {
		line("%s  array %v %s, Zarr v%d", info.Path, info.Shape, info.DType, info.Format)
		indent += "  "
		chunks := fmt.Sprintf("chunks %v", info.Chunks)
		if info.Shard != nil {
			chunks += fmt.Sprintf(" in shards %v", info.Shard)
		}
		if info.Order != "" {
			chunks += ", order F"
		}
		codecs := "raw"
		if len(info.Codecs) > 0 {
			codecs = strings.Join(info.Codecs, " → ")
		}
		size := units.FormatSize(info.Bytes)
		if info.Stored != nil {
			size += fmt.Sprintf(", %s stored in %d objects (%.2f : 1)", units.FormatSize(*info.Stored), *info.Objects,
				float64(info.Bytes)/float64(max(*info.Stored, 1)))
		}
		line("%s, %s, %s", chunks, codecs, size)
		if info.Dimensions != nil {
			line("dimensions %s", strings.Join(info.Dimensions, ", "))
		}
		if info.Values != nil {
			info.Values.print(w, indent)
		}
	} else {
		switch {
		case info.TIFF != nil:
			line("%s  %s", info.Path, info.TIFF)
		case info.CZI != nil:
			line("%s  %s", info.Path, info.CZI)
		default:
			line("%s  group, Zarr v%d", info.Path, info.Format)
		}
		indent += "  "
	}
	if im := info.Image; im != nil {
		im.print(line)
	}
	if info.Metadata != nil {
		line("%s", strings.ReplaceAll(string(info.Metadata), "\n", "\n"+indent))
	}
	for _, c := range info.Children {
		c.print(w, depth+1)
	}
}

func (im *imageInfo) print(line func(format string, args ...any)) {
	if im.Problem != "" {
		line("OME-Zarr metadata cannot be used: %s", im.Problem)
		return
	}
	var axes []string
	for d, a := range im.Axes {
		if u := im.Units[d]; u != "" {
			a += " (" + u + ")"
		}
		axes = append(axes, a)
	}
	var um []string
	for _, v := range im.Voxel {
		if v > 0 {
			um = append(um, fmt.Sprintf("%.6g", v))
		}
	}
	name := ""
	if im.Name != "" {
		name = fmt.Sprintf(" %q", im.Name)
	}
	levels := "1 level"
	if n := len(im.Levels); n != 1 {
		levels = fmt.Sprintf("%d levels", n)
	}
	line("OME-Zarr %s image%s, %s, axes %s, voxel size %s µm", im.Version, name, levels, strings.Join(axes, ", "), strings.Join(um, " × "))
	if len(im.Labels) > 0 {
		line("labels %s", strings.Join(im.Labels, ", "))
	}
	for _, w := range im.Warnings {
		line("note: %s", w)
	}
}
