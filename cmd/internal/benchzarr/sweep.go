package benchzarr

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"strata/cmd/internal/benchkit"
	"strata/pkg/bench"
	"strata/pkg/cli"
	"strata/pkg/cli/stage"
	"strata/pkg/units"
	"strata/pkg/zarr/codec"
	"strata/pkg/zarr/store"
)

func sweepCommand() *cli.Command {
	return &cli.Command{
		Name:  "sweep",
		Usage: "measure many settings and name the best one",
		Description: "Reads the array WHERE in all ways that --vary lists. If WHERE is another folder, generates arrays of all kinds\n" +
			"that --vary lists in it, measures them and removes them. Settings are measured in alternation.\n\n" +
			"Axes of reading: backend (host, direct and mmap into memory; bounce, gds, nvcomp and host-device into a GPU;\n" +
			"all), threads, in_flight, task_size (of gds) and cache (warm, cold). Axes of generated arrays: format (2, 3),\n" +
			"codec (as --codec), chunks and shard (64x64x64; none). Other flags set what is not varied.\n\n" +
			"Without --vary, an array is read with backend=all threads=1,2,... cache=warm,cold; a folder gets format=2,3\n" +
			"codec=raw,blosc-zstd:1 backend=all. --preset classic generates arrays of 16 GiB (or --size) of float32 in chunks\n" +
			"of 256³, with format=2,3 codec=raw,zstd:1 backend=all cache=warm,cold.",
		Args: []cli.Arg{{Name: "WHERE", Usage: "Zarr array or OME-Zarr image to read, or folder in which to generate arrays"}},
		Flags: append(append(append(reading("full"), generating("256MiB")...), measuring("3")...),
			cli.Flag{Name: "vary", Kind: cli.Strings, Value: "AXIS=VALUE,...", Note: "backend, threads and cache", Usage: "settings to vary, such as threads=1,2,4: backend, threads, in_flight, task_size, cache; for generated arrays also format, codec, chunks, shard"},
			cli.Flag{Name: "preset", Choices: []string{"classic"}, Usage: "vary a fixed set of settings; classic reads float32 arrays of 16 GiB in all ways to memory and GPU"}),
		Shared:   cli.GPU | cli.Resources | cli.Outputs | cli.Layout,
		Defaults: benchkit.FixedMem,
		Hints:    cli.Hints{"zarr_format": {Note: "3"}, "chunks": {Note: "128 along each axis"}},
		Examples: []cli.Example{
			{Command: "bench-zarr sweep mosaic.ome.zarr/0", Usage: "which backend and how many threads are best for it"},
			{Command: "bench-zarr sweep mosaic.ome.zarr/0 --vary in_flight=1,2,4,8 --backend direct --cache cold --html sweep.html", Usage: "how many chunks to read at a time"},
			{Command: "bench-zarr sweep /scratch --vary codec=raw,lz4,zstd:1,zstd:3 --vary chunks=64x64x64,256x256x256 --peers", Usage: "which codec and chunks are fastest, beside other programs"},
			{Command: "bench-zarr sweep /scratch --preset classic --size 1GiB --results a.json", Usage: "the classic settings, on arrays of 1 GiB"},
		},
		Run: cli.Accelerated(stage.GPU, runSweep),
	}
}

// Axis names what is varied, with its values.
type Axis struct {
	Name   string
	Values []string
}

// Names of axes; the last are those of generated arrays.
var (
	settingAxes = []string{"backend", "threads", "in_flight", "task_size", "cache"}
	arrayAxes   = []string{"format", "codec", "chunks", "shard"}
)

// ParseAxes parses --vary, a list that the command line has split at its commas.
func ParseAxes(list []string) ([]Axis, error) {
	var out []Axis
	for _, item := range list {
		name, value, begins := strings.Cut(item, "=")
		if !begins {
			if len(out) == 0 {
				return nil, cli.Usage("flag --vary: %q is of no axis: want AXIS=VALUE,..., as in backend=host,direct", item)
			}
			name, value = out[len(out)-1].Name, item
		}
		name = strings.ReplaceAll(name, "-", "_")
		if !slices.Contains(settingAxes, name) && !slices.Contains(arrayAxes, name) {
			return nil, cli.Usage("flag --vary: there is no axis %q: want one of %s", name, strings.Join(slices.Concat(settingAxes, arrayAxes), ", "))
		}
		if begins {
			if slices.ContainsFunc(out, func(a Axis) bool { return a.Name == name }) {
				return nil, cli.Usage("flag --vary: the axis %s is given twice", name)
			}
			out = append(out, Axis{Name: name})
		}
		if value == "" {
			return nil, cli.Usage("flag --vary: the axis %s has an empty value", name)
		}
		out[len(out)-1].Values = append(out[len(out)-1].Values, value)
	}
	return out, nil
}

// allBackends returns the backends of --vary backend=all.
func allBackends(device bool, far bool) []string {
	list := []string{"host"}
	if !far {
		list = append(list, "direct", "mmap")
	}
	if device {
		list = append(list, "host-device", "bounce", "gds", "nvcomp")
	}
	return list
}

// apply replaces each setting by those with all values of the axis.
func (a Axis) apply(list []Setting, all []string) ([]Setting, error) {
	var out []Setting
	for _, s := range list {
		values := a.Values
		if a.Name == "backend" && slices.Contains(values, "all") {
			values = all
		}
		for _, v := range values {
			x := s
			if err := x.set(a.Name, v, all); err != nil {
				return nil, err
			}
			out = append(out, x)
		}
	}
	return out, nil
}

// set changes the setting that an axis names; own are backends besides those known here.
func (s *Setting) set(name, value string, own []string) error {
	bad := func(want string) error { return cli.Usage("flag --vary: %s=%s: want %s", name, value, want) }
	number := func(to *int) error {
		n, err := strconv.Atoi(value)
		if err != nil || n < 1 || n > 4096 {
			return bad("a number from 1 to 4096")
		}
		*to = n
		return nil
	}
	switch name {
	case "backend":
		switch {
		case value == hostDevice:
			s.Backend, s.To = "host", ToDevice
		case endsOnDevice(value):
			s.Backend, s.To = value, ToDevice
		case value == "host" || value == "direct" || value == "mmap" || slices.Contains(own, value):
			s.Backend = value
		default:
			return bad("host, direct, mmap, bounce, gds, nvcomp, host-device or all")
		}
	case "threads":
		return number(&s.Threads)
	case "in_flight":
		return number(&s.InFlight)
	case "task_size":
		n, err := units.ParseSize(value)
		if err != nil || n < 1 {
			return bad("a size, as in 4MiB")
		}
		s.Task = n
	case "cache":
		if value != "warm" && value != "cold" {
			return bad("warm or cold")
		}
		s.Cold = value == "cold"
	}
	return nil
}

// applyPlans replaces each plan by those with all values of the axis.
func (a Axis) applyPlans(list []plan) ([]plan, error) {
	var out []plan
	for _, p := range list {
		for _, v := range a.Values {
			x := p
			if err := x.set(a.Name, v); err != nil {
				return nil, err
			}
			out = append(out, x)
		}
	}
	return out, nil
}

func (p *plan) set(name, value string) error {
	shape := func() ([]int, error) {
		var out []int
		for s := range strings.SplitSeq(value, "x") {
			n, err := strconv.Atoi(s)
			if err != nil || n < 1 {
				return nil, cli.Usage("flag --vary: %s=%s: want a shape, as in 64x64x64", name, value)
			}
			out = append(out, n)
		}
		return out, nil
	}
	var err error
	switch name {
	case "format":
		if value != "2" && value != "3" {
			return cli.Usage("flag --vary: format=%s: want 2 or 3", value)
		}
		p.format = int(value[0] - '0')
	case "codec":
		if strings.HasSuffix(p.codec, codec.ChecksumSuffix) {
			value += codec.ChecksumSuffix
		}
		p.codec = value
	case "chunks":
		p.chunks, err = shape()
	case "shard":
		p.shard = nil
		if value != "none" {
			p.shard, err = shape()
		}
	}
	return err
}

// powers returns 1, 2, 4 … up to n, and n.
func powers(n int) []string {
	var out []string
	for k := 1; k < n; k *= 2 {
		out = append(out, strconv.Itoa(k))
	}
	return append(out, strconv.Itoa(n))
}

func runSweep(ctx context.Context, r *cli.Run) error {
	where := r.Arg("WHERE")
	axes, err := ParseAxes(r.Strings("vary"))
	if err != nil {
		return err
	}
	classic := r.String("preset") == "classic"
	makes := !strings.Contains(where, "://") && isFolder(where) && !store.IsNode(where)
	if classic && !makes {
		return cli.Usage("--preset classic generates arrays: give a folder for them, not %s", where)
	}
	given := func(name string) bool { return slices.ContainsFunc(axes, func(a Axis) bool { return a.Name == name }) }
	if !makes {
		for _, name := range arrayAxes {
			if given(name) {
				return cli.Usage("flag --vary: %s is a setting of generated arrays: give a folder for them, not %s", name, where)
			}
		}
	}
	usual := func(name string, values ...string) {
		if !given(name) {
			axes = append(axes, Axis{name, values})
		}
	}
	switch {
	case classic:
		usual("format", "2", "3")
		usual("codec", "raw", "zstd:1")
		usual("backend", "all")
		usual("cache", "warm", "cold")
	case len(axes) > 0:
	case makes:
		usual("format", "2", "3")
		usual("codec", "raw", "blosc-zstd:1")
		usual("backend", "all")
	default:
		usual("backend", "all")
		usual("threads", powers(r.Options.Threads)...)
		usual("cache", "warm", "cold")
	}
	if makes {
		return sweepMade(ctx, r, where, axes, classic)
	}
	path, err := r.Input(where)
	if err != nil {
		return err
	}
	t, err := Look(ctx, r, path)
	if err != nil {
		return err
	}
	return Sweep(ctx, r, zarrTool, t, axes, r.Strings("ops"), choiceOf(r))
}

// Sweep reads an array in all the ways that the axes span, and writes the results. Flags set the other axes.
func Sweep(ctx context.Context, r *cli.Run, tool Tool, t *Target, axes []Axis, ops []string, c Choice) error {
	r.Read(t.Dataset)
	place := t.Path
	if t.far {
		place = ""
		i := slices.IndexFunc(axes, func(a Axis) bool { return a.Name == "cache" })
		if i >= 0 && len(r.Strings("vary")) > 0 || r.String("cache") == "cold" {
			return cli.Usage("the caches of a server cannot be emptied from here: leave them out for %s", t.Path)
		}
		if i >= 0 {
			axes = slices.Delete(axes, i, i+1)
		}
	}
	if err := fits(t, r.Options.Mem/2, c, ops); err != nil {
		return err
	}
	m, settings, err := prepare(ctx, r, tool, place, axes, t.far)
	if err != nil {
		return err
	}
	defer m.Close()
	task := r.Progress("sweep", 0)
	defer task.Done()
	if err := m.sweep(ctx, t, ops, c, settings, nil, task.Add); err != nil {
		return err
	}
	task.Done()
	m.Doc.Advice = Advise(slices.DeleteFunc(slices.Clone(m.Doc.Results), func(b bench.Result) bool {
		return slices.Contains(tool.Floors, b.Axes.Get("backend"))
	}), r.Options.Threads)
	return m.Finish(true)
}

// prepare prepares the machine and the settings that the axes span.
func prepare(ctx context.Context, r *cli.Run, tool Tool, place string, axes []Axis, far bool) (*Machine, []Setting, error) {
	wants := settingOf(r).To == ToDevice
	needs := wants
	for _, a := range axes {
		if a.Name != "backend" {
			continue
		}
		for _, v := range a.Values {
			ends := endsOnDevice(v) || v == hostDevice
			needs = needs || ends && (tool.Backends == nil || r.IsSet("vary"))
			wants = wants || ends || v == "all"
		}
	}
	m, err := NewMachine(ctx, r, tool, place, wants, needs)
	if err != nil {
		return nil, nil, err
	}
	all := tool.Backends
	if all == nil {
		all = allBackends(m.Device != nil, far)
	}
	settings := []Setting{settingOf(r)}
	for _, a := range axes {
		if slices.Contains(settingAxes, a.Name) {
			if settings, err = a.apply(settings, all); err != nil {
				m.Close()
				return nil, nil, err
			}
		}
	}
	return m, distinct(settings), nil
}

// Pool is the name of a backend of other tools that, like gds, takes tasks of a set size.
const Pool = "pool"

// distinct removes settings that differ only in what has no effect on them.
func distinct(list []Setting) []Setting {
	var out []Setting
	for _, s := range list {
		if s.Backend != "gds" && s.Backend != "auto" && s.Backend != Pool {
			s.Task = 0
		}
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// sweep reads an array with all settings. Those with the same cache and number of threads take turns, so that
// peers, which get that number, run beside them.
func (m *Machine) sweep(ctx context.Context, t *Target, ops []string, c Choice, settings []Setting, more bench.Axes, progress func(int64)) error {
	type family struct {
		cold              bool
		threads, inFlight int
	}
	var order []family
	by := map[family][]Setting{}
	for _, s := range settings {
		f := family{cold: s.Cold}
		if m.Peers != nil {
			f.threads, f.inFlight = s.Threads, s.InFlight
		}
		if by[f] == nil {
			order = append(order, f)
		}
		by[f] = append(by[f], s)
	}
	for _, f := range order {
		list, err := m.read(ctx, t, ops, c, by[f], more, m.run.Int("reps"), progress)
		if err != nil {
			return err
		}
		m.Doc.Results = append(m.Doc.Results, list...)
	}
	return nil
}

// sweepMade generates arrays of all kinds in a folder, one after another, and measures writing and reading.
func sweepMade(ctx context.Context, r *cli.Run, where string, axes []Axis, classic bool) error {
	p, err := planOf(r)
	if err != nil {
		return err
	}
	size := r.Size("size")
	if classic {
		if p.chunks = r.Options.Chunks; p.chunks == nil {
			p.chunks = []int{256, 256, 256}
		}
		if !r.IsSet("size") {
			size = 16 << 30
		}
	}
	plans := []plan{p}
	for _, a := range axes {
		if slices.Contains(arrayAxes, a.Name) {
			if plans, err = a.applyPlans(plans); err != nil {
				return err
			}
		}
	}
	most := int64(0)
	kept := plans[:0]
	for _, x := range plans {
		if x.shard != nil && x.format == 2 {
			continue // there is no such thing
		}
		if err := x.complete(size); err != nil {
			return err
		}
		most = max(most, x.bytes())
		kept = append(kept, x)
	}
	if plans = kept; len(plans) == 0 {
		return cli.Usage("flag --vary: shards need Zarr format 3: add format=3")
	}
	need := most + most/16 + 1<<20
	if r.Bool("peers") {
		need *= 2
	}
	tmp, err := NewScratch(r, zarrTool.Name, where, need)
	if err != nil {
		return err
	}
	defer tmp.Remove()
	m, settings, err := prepare(ctx, r, zarrTool, where, axes, false)
	if err != nil {
		return err
	}
	defer m.Close()
	task := r.Progress("sweep", 0)
	defer task.Done()
	for i, p := range plans {
		if err := m.made(ctx, p, tmp, fmt.Sprintf("a%d.zarr", i), settings, task.Add); err != nil {
			return err
		}
	}
	task.Done()
	m.Doc.Advice = Advise(m.Doc.Results, r.Options.Threads)
	return m.Finish(true)
}

// made generates one array and measures it.
func (m *Machine) made(ctx context.Context, p plan, tmp *Scratch, name string, settings []Setting, progress func(int64)) error {
	r := m.run
	list, err := m.write(ctx, p, tmp, Setting{Backend: "host", To: ToHost, Threads: r.Options.Threads}, r.Int("reps"), progress)
	if err != nil {
		return err
	}
	m.Doc.Results = append(m.Doc.Results, list...)
	a, err := p.create(ctx, tmp.File(name), false)
	if err != nil {
		return err
	}
	if err := p.generate(ctx, a, runtime.GOMAXPROCS(0), r.Options.Mem, progress); err != nil {
		return err
	}
	a.Close()
	t, err := Look(ctx, r, tmp.File(name))
	if err != nil {
		return err
	}
	if err := fits(t, r.Options.Mem/2, choiceOf(r), r.Strings("ops")); err != nil {
		return err
	}
	if err := m.sweep(ctx, t, r.Strings("ops"), choiceOf(r), settings, p.axes(), progress); err != nil {
		return err
	}
	return errors.Join(os.RemoveAll(tmp.File(name)), os.RemoveAll(tmp.File("elements")))
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
