package benchtile

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"strata/cmd/internal/benchkit"
	"strata/pkg/bench"
	"strata/pkg/cli"
	"strata/pkg/cli/datasets"
	"strata/pkg/cli/stage"
	"strata/pkg/dtype"
	"strata/pkg/tile/zarrsource"
	"strata/pkg/units"
)

func runViews(ctx context.Context, r *cli.Run) error {
	caches, err := sizes(r.Strings("cache"))
	if err != nil {
		return err
	}
	others, err := findPeers(ctx, r)
	if err != nil {
		return err
	}
	defer others.close()
	im, err := open(ctx, r, r.Arg("IMAGE"), r.String("array"))
	if err != nil {
		return err
	}
	defer im.close()
	if r.Bool("cold") && im.files == nil {
		return cli.Usage("flag --cold: the caches of a server cannot be emptied from here: leave it out for %s", im.path)
	}
	p, err := planOf(ctx, r, im)
	if err != nil {
		return err
	}
	json, html, err := benchkit.Outputs(r)
	if err != nil {
		return err
	}
	doc := bench.New("bench-tile", cli.Version(), os.Args)
	if im.files != nil {
		doc.System = bench.ReadSystem(ctx, im.path)
	} else {
		doc.System = bench.ReadSystem(ctx)
	}
	task := r.Progress("views", 0)
	defer task.Done()
	for _, radius := range r.Ints("radius") {
		for _, cache := range caches {
			p := p
			p.cache = cache
			p.radii = slices.Clone(p.radii)
			for a := range p.radii {
				p.radii[a] *= radius
			}
			list, err := contestants(p, others)
			if err == nil {
				err = stage.Failed(measure(ctx, list, im, r.Int("reps"), r.Bool("cold"), task.Add))
			}
			for _, c := range list {
				if c.streamer != nil {
					err = errors.Join(err, c.close())
				}
			}
			if err != nil {
				return err
			}
			for _, c := range list {
				doc.Results = append(doc.Results, c.result(r, p, radius))
			}
			if r.Bool("json_lines") {
				if err := lines(r.Stdout, list, p, radius); err != nil {
					return err
				}
			}
		}
	}
	task.Done()
	if !r.Bool("json_lines") {
		err = doc.Table(r.Stdout)
	}
	return errors.Join(err, json.Write(doc.WriteJSON), html.Write(doc.HTML))
}

func sizes(list []string) ([]int64, error) {
	var out []int64
	for _, text := range list {
		n, err := units.ParseSize(text)
		if err == nil && n < 1 {
			err = errors.New("must be above 0")
		}
		if err != nil {
			return nil, cli.Usage("flag --cache %s: %w", text, err)
		}
		out = append(out, n)
	}
	return out, nil
}

// planOf returns the plan given by the flags; radii are 1 for the axes that have a halo.
func planOf(ctx context.Context, r *cli.Run, im *image) (p plan, err error) {
	src, err := im.newSource(zarrsource.Meter(r.Meter))
	if err != nil {
		return p, err
	}
	p = plan{level: r.Int("level"), threads: r.Options.Threads, copyThreads: r.Int("copy_threads"), views: r.Int("views"),
		order: r.String("order"), border: r.String("border"), ordered: r.Bool("ordered"), op: r.String("op"), mem: r.Options.Mem}
	if p.level >= src.Levels() {
		return p, cli.Usage("flag --level %d: %s has %d levels, from 0 on", p.level, im.path, src.Levels())
	}
	if p.views == 0 {
		p.views = p.threads + 1
	}
	r.Read(datasets.Describe(im.levels[p.level], im.path))
	p.src = newCounting(src, p.level)
	p.src.where = func() (string, error) { return rawTiles(ctx, im.levels[p.level]) }
	p.tile = slices.Clone(src.TileShape(p.level))
	given := r.Ints("tile")
	if len(given) > len(p.tile) {
		return p, cli.Usage("flag --tile %v: %s has %d axes", given, im.path, len(p.tile))
	}
	copy(p.tile[len(p.tile)-len(given):], given)
	p.radii, err = haloAxes(r, src.DimensionNames())
	if err == nil && p.op == opSobel && (slices.Min(r.Ints("radius")) < 1 || len(p.radii) < 2 || slices.Min(p.radii[len(p.radii)-2:]) < 1) {
		err = cli.Usage("--op sobel needs a --radius of at least 1 along the last two axes")
	}
	return p, err
}

// haloAxes returns 1 for each axis that has a halo.
func haloAxes(r *cli.Run, names []string) ([]int, error) {
	out := make([]int, len(names))
	if r.IsSet("axes") {
		for _, name := range r.Strings("axes") {
			a := slices.Index(names, name)
			if a < 0 {
				return nil, cli.Usage("flag --axes: %q is not one of %s", name, strings.Join(names, ", "))
			}
			out[a] = 1
		}
		return out, nil
	}
	y, x := slices.Index(names, "y"), slices.Index(names, "x")
	if y < 0 || x < 0 {
		x = len(names) - 1
		y = max(x-1, 0)
	}
	out[y], out[x] = 1, 1
	return out, nil
}

// contestants returns all contestants, strata's views first.
func contestants(p plan, others *peers) ([]*contestant, error) {
	views, err := viewerOf(p)
	if err != nil {
		return nil, err
	}
	list := []*contestant{newContestant(bench.Strata, views, "")}
	a, err := newAlone(p)
	if err != nil {
		return list, err
	}
	list = append(list, newContestant(tilesAlone, a, ""))
	return append(list, others.contestants(p)...), nil
}

func viewerOf(p plan) (streamer, error) {
	switch p.src.DType() {
	case dtype.Uint8:
		return newViewer[uint8](p)
	case dtype.Int8:
		return newViewer[int8](p)
	case dtype.Uint16:
		return newViewer[uint16](p)
	case dtype.Int16:
		return newViewer[int16](p)
	case dtype.Uint32:
		return newViewer[uint32](p)
	case dtype.Int32:
		return newViewer[int32](p)
	case dtype.Uint64:
		return newViewer[uint64](p)
	case dtype.Int64:
		return newViewer[int64](p)
	case dtype.Float64:
		return newViewer[float64](p)
	}
	return newViewer[float32](p) // or what it is made of, or an error that says why not
}

// result returns a contestant's row.
func (c *contestant) result(r *cli.Run, p plan, radius int) bench.Result {
	out := c.Result
	out.Axes = bench.Axes{
		{Name: "radius", Value: strconv.Itoa(radius)}, {Name: "cache", Value: units.FormatSize(p.cache)}, {Name: "tile", Value: shapeText(p.tile)},
		{Name: "order", Value: p.order}, {Name: "threads", Value: strconv.Itoa(p.threads)}, {Name: "views", Value: strconv.Itoa(p.views)}, {Name: "op", Value: p.op}}
	if r.Bool("cold") {
		out.Axes = append(out.Axes, bench.Axis{Name: "files", Value: "cold"})
	}
	if !out.Measured() {
		return out
	}
	_, s := c.median()
	out.Bytes, out.Ops, out.Checksum = s.bytes, int64(s.views), c.checksum()
	if c.Result.Who == bench.Strata {
		out.Note = fmt.Sprintf("%d of %d tiles loaded again; consumer waited %s s, loader %s s; views and caches %s",
			s.again, len(p.src.loads), bench.Ratio(s.consumer.Seconds()), bench.Ratio(s.loader.Seconds()), units.FormatSize(s.buffers))
	}
	return out
}

// checksum returns the checksum of the pixels, "" where none was computed.
func (c *contestant) checksum() string {
	if c.Sum == 0 {
		return ""
	}
	return strconv.FormatUint(c.Sum, 10)
}

// median returns the repetition with the median time.
func (c *contestant) median() (benchkit.Sample, delivery) {
	by := slices.SortedFunc(slices.Values(c.Samples), func(a, b benchkit.Sample) int { return cmp.Compare(a.Seconds, b.Seconds) })
	s := by[(len(by)-1)/2]
	return s, s.More.(delivery)
}

func shapeText(shape []int) string {
	var parts []string
	for _, n := range shape {
		parts = append(parts, strconv.Itoa(n))
	}
	return strings.Join(parts, "x")
}

// line is a row for scripts.
type line struct {
	Who      string  `json:"who"`
	Radius   int     `json:"radius"`
	Cache    int64   `json:"cache"`
	Seconds  float64 `json:"s"`
	CPU      float64 `json:"cpu"`
	Image    float64 `json:"image_mbs"`
	Delivers float64 `json:"view_mbs"`
	Views    int     `json:"views"`
	Tiles    int     `json:"tiles"`
	Again    int     `json:"again"`
	Loaded   int64   `json:"loaded"`
	Consumer float64 `json:"consumer_wait"`
	Loader   float64 `json:"loader_wait"`
	Buffers  int64   `json:"buffers"`
	Check    string  `json:"check,omitempty"`
	Reason   string  `json:"reason,omitempty"`
}

func lines(w io.Writer, list []*contestant, p plan, radius int) error {
	pixels := float64(volume(p.src.Shape(p.level)) * p.src.DType().Size())
	for _, c := range list {
		l := line{Who: c.Result.Who, Radius: radius, Cache: p.cache, Tiles: len(p.src.loads), Reason: c.Result.Reason}
		if len(c.Samples) > 0 {
			out, s := c.median()
			l.Seconds, l.CPU, l.Image, l.Delivers = out.Seconds, out.CPU, pixels/out.Seconds/1e6, float64(s.bytes)/out.Seconds/1e6
			l.Views, l.Again, l.Loaded, l.Buffers = s.views, s.again, s.loaded, s.buffers
			l.Consumer, l.Loader, l.Check = s.consumer.Seconds(), s.loader.Seconds(), c.checksum()
		}
		if err := json.NewEncoder(w).Encode(l); err != nil {
			return err
		}
	}
	return nil
}
