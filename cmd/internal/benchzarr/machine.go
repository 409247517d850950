package benchzarr

import (
	"context"
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"

	"strata/cmd/internal/benchkit"
	"strata/pkg/atomic"
	"strata/pkg/bench"
	"strata/pkg/cli"
	"strata/pkg/cli/stage"
	"strata/pkg/gpu"
	"strata/pkg/units"
)

// A Machine holds what a run measures with.
type Machine struct {
	run    *cli.Run
	tool   Tool
	Device *gpu.Device // nil: there is none, and
	noGPU  string      // why
	Peers  *Peers      // nil: none are wanted
	Doc    *bench.Document
	json   *atomic.Output
	html   *atomic.Output
}

// NewMachine prepares what the flags request. A required device that is missing is an error. The caller must Close
// the machine.
func NewMachine(ctx context.Context, r *cli.Run, tool Tool, place string, wants, needs bool) (*Machine, error) {
	m := &Machine{run: r, tool: tool, Doc: bench.New(tool.Name, cli.Version(), os.Args)}
	var err error
	if m.json, m.html, err = benchkit.Outputs(r); err != nil {
		return nil, err
	}
	if r.Bool("peers") {
		python, err := benchkit.FindPython(r.String("python"))
		if err != nil {
			return nil, err
		}
		m.Peers = &Peers{python: python, tool: tool}
	}
	if needs && !r.Options.UseGPU {
		return nil, cli.Usage("--no-use_gpu contradicts reading into a GPU: leave it out, or give --to host and another --backend")
	}
	if wants && r.Options.UseGPU {
		if _, err := gpu.Devices(); err != nil && !needs && !r.Options.RequireGPU {
			m.noGPU = err.Error()
		} else {
			r.Options.RequireGPU = true // what ran on the CPU in its place would measure something else
			res, err := stage.ResourcesOnGPU(ctx, r, nil, stage.Work{})
			if err != nil {
				return nil, err
			}
			m.Device = res.Device
		}
	}
	if place != "" {
		m.Doc.System = bench.ReadSystem(ctx, place)
		for i := range m.Doc.System.Places {
			m.Doc.System.Places[i].Path = place // as it was named
		}
	} else {
		m.Doc.System = bench.ReadSystem(ctx)
	}
	if m.Device != nil {
		m.Doc.System.GPU = bench.GPUOf(m.Device.Info)
	}
	return m, nil
}

// Close ends the peers.
func (m *Machine) Close() {
	if m.Peers != nil {
		m.Peers.close()
	}
}

// reader returns a reader for a setting.
func (m *Machine) reader(s Setting) (Reader, error) {
	o := m.run.Options
	if m.tool.Reader != nil {
		if x := m.tool.Reader(m.run, s); x != nil {
			return x, nil
		}
	}
	if s.To != ToDevice {
		return &hostReader{setting: s, mem: o.Mem / 2, part: o.Mem / 2}, nil
	}
	if m.Device == nil {
		return nil, benchkit.Unablef("no usable GPU: %s", strings.TrimPrefix(m.noGPU, "no usable GPU: "))
	}
	return &deviceReader{setting: s, device: m.Device, files: o.GPUFiles, mem: o.Mem}, nil
}

// hostDevice is the name of reading on the host followed by a copy to the device.
const hostDevice = "host-device"

// axes returns a setting in the form of results.
func (s Setting) axes(far bool) bench.Axes {
	backend := s.Backend
	if s.To == ToDevice && !endsOnDevice(backend) {
		backend += "-device"
	}
	a := bench.Axes{{Name: "backend", Value: backend}, {Name: "threads", Value: strconv.Itoa(s.Threads)}}
	if s.InFlight > 0 {
		a = append(a, bench.Axis{Name: "in flight", Value: strconv.Itoa(s.InFlight)})
	}
	if s.Task > 0 {
		a = append(a, bench.Axis{Name: "task size", Value: units.FormatSize(s.Task)})
	}
	if !far {
		cache := "warm"
		if s.Cold {
			cache = "cold"
		}
		a = append(a, bench.Axis{Name: "cache", Value: cache})
	}
	return a
}

// read measures operations on an array with several settings, which have the same cache; more are the axes that
// precede theirs.
func (m *Machine) read(ctx context.Context, t *Target, ops []string, c Choice, settings []Setting, more bench.Axes, reps int, progress func(int64)) ([]bench.Result, error) {
	var out []bench.Result
	for _, op := range ops {
		settings := slices.DeleteFunc(slices.Clone(settings), func(s Setting) bool { return m.tool.Can != nil && !m.tool.Can(s.Backend, op) })
		if len(settings) == 0 {
			continue
		}
		j := &Job{Target: t, Op: op, Boxes: c.BoxesOf(op, t.Layout)}
		if m.tool.Tiles {
			j.Tiles = j.countTiles()
		}
		var list []*benchkit.Contestant
		for _, s := range settings {
			x, err := m.reader(s)
			if err != nil {
				x = refusing{err}
			}
			list = append(list, j.Contestant(bench.Result{Name: op, Who: bench.Strata, Axes: append(slices.Clone(more), s.axes(t.far)...)}, x))
		}
		ours := len(list)
		missing, err := m.others(ctx, j, settings, &list)
		if err != nil {
			return nil, err
		}
		m.run.Log.Debug().Msgf("%s of %s in %d ways", op, t.Path, len(list))
		if err := m.Measure(ctx, j, list, reps, settings[0].Cold, progress); err != nil {
			return nil, stage.Failed(err)
		}
		if len(list) == ours && ours == 1 && list[0].Result.Reason != "" {
			return nil, cli.Usage("%s", list[0].Result.Reason)
		}
		for _, x := range list {
			out = append(out, x.Result)
		}
		out = append(out, missing...)
	}
	return out, nil
}

// refusing stands for a reader that cannot be made.
type refusing struct{ err error }

func (r refusing) Check(context.Context, *Job) (uint32, error) { return 0, r.err }
func (r refusing) Round(context.Context, *Job) (benchkit.Sample, error) {
	return benchkit.Sample{}, r.err
}

// others adds the peers to the contestants of a job, beside the first of strata's settings for each number of
// threads and requests. Missing ones are returned as results.
func (m *Machine) others(ctx context.Context, j *Job, settings []Setting, list *[]*benchkit.Contestant) (missing []bench.Result, err error) {
	if m.Peers == nil || j.Op == OpStream {
		return nil, nil
	}
	s := settings[0]
	host := slices.ContainsFunc(settings, func(s Setting) bool { return s.To != ToDevice })
	device := slices.ContainsFunc(settings, func(s Setting) bool { return s.To == ToDevice })
	if err := m.Peers.Start(ctx, s.Threads, s.InFlight, host, device); err != nil {
		return nil, err
	}
	m.NoteSoftware()
	ours := *list
	for _, p := range m.Peers.List {
		first := slices.IndexFunc(settings, func(s Setting) bool { return (s.To == ToDevice) == p.Kind.Device })
		*list = append(*list, j.Contestant(bench.Result{Name: j.Op, Who: p.Kind.Name, Axes: ours[first].Result.Axes}, peer{p}))
	}
	return m.Peers.Missing(j.Op, ours[0].Result.Axes), nil
}

// NoteSoftware adds the running peers to the facts of the machine.
func (m *Machine) NoteSoftware() {
	for _, s := range m.Peers.Software() {
		if !slices.Contains(m.Doc.System.Software, s) {
			m.Doc.System.Software = append(m.Doc.System.Software, s)
		}
	}
}

// Finish writes the results.
func (m *Machine) Finish(table bool) error {
	var err error
	if table {
		err = m.Doc.Table(m.run.Stdout)
	}
	return errors.Join(err, m.json.Write(m.Doc.WriteJSON), m.html.Write(m.Doc.HTML))
}
