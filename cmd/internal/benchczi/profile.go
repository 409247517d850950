package benchczi

import (
	"context"
	"errors"
	"image"
	"time"

	"strata/cmd/internal/benchkit"
	"strata/pkg/bench"
	"strata/pkg/cli"
	"strata/pkg/czi"
	"strata/pkg/mem"
	"strata/pkg/units"
)

func profileCommand() *cli.Command {
	return &cli.Command{
		Name:  "profile",
		Usage: "show where the time goes when tiles are read and put together",
		Description: "Opens the file and reads its directory, its metadata and the positions of its tiles. Then reads tile after tile,\n" +
			"timing the reading of stored bytes (I/O) and their decoding separately, and copies each tile into a mosaic\n" +
			"(stitch), whose colours are finally ordered red, green, blue (finalise). The mosaic has at most half of --mem.\n" +
			"Finally reads the same tiles once more on 8 threads.\n\n" +
			"The first line says how much of the file was in the page cache; --cold drops the file from it first.",
		Args: fileArgument,
		Flags: flags(choosing("100", ""), []cli.Flag{
			{Name: "every", Kind: cli.Int, Default: "10", Value: "N", Check: cli.AtLeast(1), Usage: "list every Nth tile"},
			{Name: "slowest", Kind: cli.Int, Default: "5", Value: "N", Check: cli.AtLeast(0), Usage: "list the N slowest tiles; 0: none"},
		}, benchkit.Reporting()),
		Shared:   cli.Resources | cli.Outputs,
		Defaults: benchkit.FixedMem,
		Examples: []cli.Example{
			{Command: "bench-czi profile scan.czi --cold", Usage: "as a scan is read for the first time"},
			{Command: "bench-czi profile scan.czi --max_tiles 200 --channel 0 --scene 1", Usage: "only some tiles"},
		},
		Run: cli.Do(runProfile),
	}
}

// Phases of loading a file.
const (
	phaseOpen      = "open"
	phaseDirectory = "directory"
	phaseMetadata  = "metadata"
	phaseBoxes     = "bounding boxes"
	phaseIO        = "read: I/O"
	phaseDecode    = "read: decoding"
	phaseStitch    = "stitch"
	phaseFinalise  = "finalise"
)

// tileTime holds the durations of a tile's steps in seconds.
type tileTime struct {
	n                  int // number of the sub-block
	io, decode, stitch float64
	stored             int
}

func (t tileTime) read() float64 { return t.io + t.decode }

// profile holds the measurements.
type profile struct {
	scan     *scan
	cached   float64 // share of the file in the page cache before; -1: not known
	phases   map[string]float64
	noMeta   string // why metadata could not be read
	tiles    []tileTime
	alone    float64 // seconds of all tiles on one thread, without copying them; 0: not measured
	threads  float64 // the same on 8 threads
	canvas   *canvas
	usage    benchkit.Sample
	finalise bool // there was something to do
}

func runProfile(ctx context.Context, r *cli.Run) error {
	s, err := look(ctx, r)
	if err != nil {
		return err
	}
	defer func() { _ = s.close() }() // it was only read
	json, html, err := benchkit.Outputs(r)
	if err != nil {
		return err
	}
	doc := newDocument(ctx, r, s)
	p := &profile{scan: s, phases: map[string]float64{}}
	if s.cold {
		if _, err := s.forget(); err != nil {
			return err
		}
	}
	p.cached = s.cached()
	task := r.Progress("profile", s.image.Bytes)
	defer task.Done()
	if p.usage, err = measured(func() (benchkit.Sample, error) { return benchkit.Sample{}, p.load(ctx, r.Options.Mem/2, task.Add) }); err != nil {
		return err
	}
	task.Done()
	if err := p.threaded(ctx, r); err != nil {
		return err
	}
	doc.Results, doc.Advice = p.results(), p.advise(doc)
	return errors.Join(p.print(r.Stdout, doc, r.Int("every"), r.Int("slowest")), json.Write(doc.WriteJSON), html.Write(doc.HTML))
}

// clock measures the time between calls.
type clock struct{ last time.Time }

func (c *clock) lap() float64 {
	now := time.Now()
	d := now.Sub(c.last).Seconds()
	c.last = now
	return d
}

// load opens the file and loads tiles, measuring each step.
func (p *profile) load(ctx context.Context, most int64, done func(int64)) error {
	s := p.scan
	t := &clock{time.Now()}
	o, err := s.source(ctx)
	if err != nil {
		return cli.BadInput(err)
	}
	defer o.Close()
	p.phases[phaseOpen] = t.lap()
	f, err := czi.Open(ctx, o, s.path)
	if err != nil {
		return cli.BadInput(err)
	}
	p.phases[phaseDirectory] = t.lap()
	if _, err := f.Metadata(ctx); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		p.noMeta = err.Error()
	}
	p.phases[phaseMetadata] = t.lap()
	var box image.Rectangle
	boxes := make([]image.Rectangle, f.Len())
	for i := range boxes {
		boxes[i] = f.SubBlock(i).Rect
	}
	for _, scene := range f.Scenes() {
		box = box.Union(scene.Bounds)
	}
	p.phases[phaseBoxes] = t.lap()
	if err := p.makeCanvas(most); err != nil {
		return err
	}
	defer mem.Free(p.canvas.data)
	pixels, err := mem.Alloc(s.largest)
	if err != nil {
		return err
	}
	defer mem.Free(pixels)
	var payload []byte
	for _, i := range s.tiles {
		x := tileTime{n: i}
		sb := f.SubBlock(i)
		b := pixels[:sb.Bytes()]
		t.lap()
		if payload, err = f.ReadPayload(ctx, i, payload); err != nil {
			return cli.BadInput(err)
		}
		x.io, x.stored = t.lap(), len(payload)
		if err := f.Decode(ctx, i, b, payload); err != nil {
			return cli.BadInput(err)
		}
		x.decode = t.lap()
		p.canvas.put(sb, b)
		x.stitch = t.lap()
		p.tiles = append(p.tiles, x)
		p.phases[phaseIO] += x.io
		p.phases[phaseDecode] += x.decode
		p.phases[phaseStitch] += x.stitch
		done(int64(len(b)))
	}
	t.lap()
	if p.finalise = p.canvas.finalise(); p.finalise {
		p.phases[phaseFinalise] = t.lap()
	}
	return nil
}

// makeCanvas allocates the memory of the mosaic.
func (p *profile) makeCanvas(most int64) error {
	s := p.scan
	var box image.Rectangle
	pixel, wide, tall := 0, 0, 0
	kind := s.file.SubBlock(s.tiles[0]).Pixels
	for _, i := range s.tiles {
		sb := s.file.SubBlock(i)
		if sb.Pixels != kind {
			kind = -1
		}
		box = box.Union(sb.Rect)
		pixel, wide, tall = max(pixel, sb.Pixels.Bytes()), max(wide, sb.Rect.Dx()), max(tall, sb.Rect.Dy())
	}
	rows, columns := int64(box.Dy()), int64(box.Dx())
	if rows*columns > most/int64(pixel) {
		columns = min(columns, max(int64(wide), most/int64(pixel)/int64(tall)))
		rows = most / int64(pixel) / columns
	}
	if rows < int64(tall) {
		return cli.MemoryError("%s: a tile of %d × %d pixels is %s, half of --mem is %s", s.path, wide, tall, units.FormatSize(int64(wide)*int64(tall)*int64(pixel)), units.FormatSize(most))
	}
	data, err := mem.Alloc(int(rows*columns) * pixel)
	if err != nil {
		return err
	}
	p.canvas = &canvas{box: box, rows: int(rows), columns: int(columns), stride: int(columns) * pixel, data: data, pixels: kind}
	return nil
}

// threaded reads the same tiles on one thread and on 8, both with the page cache as it is by then.
func (p *profile) threaded(ctx context.Context, r *cli.Run) error {
	if len(p.scan.tiles) < 8 {
		return nil
	}
	for _, x := range []struct {
		n  int
		to *float64
	}{{1, &p.alone}, {8, &p.threads}} {
		if p.scan.cold {
			if _, err := p.scan.forget(); err != nil {
				return err
			}
		}
		s, err := (&loader{scan: p.scan, way: way{threaded, x.n}, mem: r.Options.Mem / 2}).round(ctx)
		var little *benchkit.Unable
		if errors.As(err, &little) {
			r.Warn("not read on %d threads: %s", x.n, little)
			return nil
		}
		if err != nil {
			return err
		}
		*x.to = s.Seconds
	}
	return nil
}

// canvas is the mosaic, or as much of it as memory holds: tiles beyond wrap around to the first rows and columns.
type canvas struct {
	box           image.Rectangle
	rows, columns int
	stride        int
	data          []byte
	pixels        czi.PixelType // of all tiles; below 0: they differ
}

// whole reports whether memory holds all of the mosaic.
func (c *canvas) whole() bool { return c.rows == c.box.Dy() && c.columns == c.box.Dx() }

// put copies a tile to its place.
func (c *canvas) put(sb czi.SubBlock, pixels []byte) {
	size := sb.Pixels.Bytes()
	width := sb.Rect.Dx() * size
	left := (sb.Rect.Min.X - c.box.Min.X) % c.columns * size
	first := min(width, c.columns*size-left)
	for y := range sb.Rect.Dy() {
		row := c.data[(sb.Rect.Min.Y-c.box.Min.Y+y)%c.rows*c.stride:][:c.stride]
		from := pixels[y*width:][:width]
		copy(row[left:], from[:first])
		copy(row, from[first:])
	}
}

// finalise converts blue, green, red to red, green, blue. It reports whether there are colours.
func (c *canvas) finalise() bool {
	if c.pixels < 0 || c.pixels.Samples() != 3 {
		return false
	}
	n := c.pixels.Elem().Size()
	for px := c.data; len(px) >= 3*n; px = px[3*n:] {
		for k := range n {
			px[k], px[2*n+k] = px[2*n+k], px[k]
		}
	}
	return true
}

// results returns the phases as results; those of tiles have a time for each.
func (p *profile) results() []bench.Result {
	var out []bench.Result
	add := func(name string, n int, each func(t tileTime) float64, bytes int64) {
		x := bench.Result{Name: name, Who: bench.Strata, Seconds: []float64{p.phases[name]}, Ops: int64(n), Bytes: bytes}
		if each != nil {
			var h bench.Histogram
			for _, t := range p.tiles {
				h.Add(time.Duration(each(t) * 1e9))
			}
			x.Latency, x.Pixels = h.Latency(), p.scan.image.Pixels
		}
		out = append(out, x)
	}
	stored := int64(0)
	for _, t := range p.tiles {
		stored += int64(t.stored)
	}
	add(phaseOpen, 1, nil, 0)
	add(phaseDirectory, p.scan.file.Len(), nil, 0)
	add(phaseMetadata, 1, nil, 0)
	out[2].Note = p.noMeta
	add(phaseBoxes, p.scan.file.Len(), nil, 0)
	add(phaseIO, len(p.tiles), func(t tileTime) float64 { return t.io }, stored)
	add(phaseDecode, len(p.tiles), func(t tileTime) float64 { return t.decode }, p.scan.image.Bytes)
	add(phaseStitch, len(p.tiles), func(t tileTime) float64 { return t.stitch }, p.scan.image.Bytes)
	if p.finalise {
		add(phaseFinalise, 1, nil, p.scan.image.Bytes)
	}
	out[5].RSS, out[5].Grown, out[5].CPU = p.usage.Peak, p.usage.Grown, p.usage.CPU
	if p.threads > 0 {
		out = append(out, bench.Result{Name: "read on 8 threads", Who: bench.Strata, Seconds: []float64{p.threads}, Ops: int64(len(p.tiles)), Bytes: p.scan.image.Bytes, Pixels: p.scan.image.Pixels})
	}
	return out
}
