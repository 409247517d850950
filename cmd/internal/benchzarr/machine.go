package benchzarr

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"

	"strata/pkg/bench"
	"strata/pkg/cli"
	"strata/pkg/cli/atomic"
	"strata/pkg/cli/stage"
	"strata/pkg/cli/units"
	"strata/pkg/gpu"
)

// machine is what a run measures with.
type machine struct {
	run    *cli.Run
	device *gpu.Device // nil: there is none, and
	noGPU  string      // why
	peers  *peers      // nil: none are wanted
	doc    *bench.Document
	json   *atomic.Output
	html   *atomic.Output
}

// newMachine makes ready what the flags ask for. A device that is needed and not there is an error.
func newMachine(ctx context.Context, r *cli.Run, place string, wants, needs bool) (*machine, error) {
	m := &machine{run: r, doc: bench.New("bench-zarr", cli.Version(), os.Args)}
	var err error
	if m.json, err = r.OptionalFile("json"); err != nil {
		return nil, err
	}
	if m.html, err = r.OptionalFile("html"); err != nil {
		return nil, err
	}
	if r.Bool("peers") {
		python, err := findPython(r.String("python"))
		if err != nil {
			return nil, err
		}
		m.peers = &peers{python: python}
	}
	if needs && !r.Options.UseGPU {
		return nil, cli.Usage("--no-use_gpu contradicts reading into a GPU: leave it out, or give --to host and another --backend")
	}
	if wants && r.Options.UseGPU {
		if _, err := gpu.Devices(); err != nil && !needs && !r.Options.RequireGPU {
			m.noGPU = err.Error()
		} else {
			r.Options.RequireGPU = true // what ran on the CPU in its place would measure something else
			res, err := stage.ResourcesOnGPU(ctx, r, nil)
			if err != nil {
				return nil, err
			}
			m.device = res.Device
		}
	}
	if place != "" {
		m.doc.System = bench.ReadSystem(ctx, place)
		for i := range m.doc.System.Places {
			m.doc.System.Places[i].Path = place // as it was named
		}
	} else {
		m.doc.System = bench.ReadSystem(ctx)
	}
	if m.device != nil {
		m.doc.System.GPU = bench.GPUOf(m.device.Info)
	}
	return m, nil
}

func (m *machine) close() {
	if m.peers != nil {
		m.peers.close()
	}
}

// reader makes what reads by a setting.
func (m *machine) reader(s setting) (reader, error) {
	o := m.run.Options
	if s.to != toDevice {
		return &hostReader{setting: s, mem: o.Mem / 2, part: o.Mem / 2}, nil
	}
	if m.device == nil {
		return nil, errBackend{fmt.Errorf("no usable GPU: %s", m.noGPU)}
	}
	return &deviceReader{setting: s, device: m.device, files: o.GPUFiles, mem: o.Mem}, nil
}

// hostDevice is the name of reading by the host and then copying to the device.
const hostDevice = "host-device"

// axes are a setting as results have it.
func (s setting) axes(far bool) bench.Axes {
	backend := s.backend
	if s.to == toDevice && !endsOnDevice(backend) {
		backend += "-device"
	}
	a := bench.Axes{{Name: "backend", Value: backend}, {Name: "threads", Value: strconv.Itoa(s.threads)}}
	if s.inFlight > 0 {
		a = append(a, bench.Axis{Name: "in flight", Value: strconv.Itoa(s.inFlight)})
	}
	if s.task > 0 {
		a = append(a, bench.Axis{Name: "task size", Value: units.FormatSize(s.task)})
	}
	if !far {
		cache := "warm"
		if s.cold {
			cache = "cold"
		}
		a = append(a, bench.Axis{Name: "cache", Value: cache})
	}
	return a
}

// read measures operations on an array by several settings, which have the same cache; more are
// the axes that come before theirs.
func (m *machine) read(ctx context.Context, t *target, ops []string, c choice, settings []setting, more bench.Axes, reps int, progress func(int64)) ([]bench.Result, error) {
	var out []bench.Result
	for _, op := range ops {
		j := &job{target: t, op: op, boxes: c.boxesOf(op, t.layout)}
		var list []*contestant
		for _, s := range settings {
			x := &contestant{result: bench.Result{Name: op, Who: bench.Strata, Axes: append(slices.Clone(more), s.axes(t.far)...)}}
			var err error
			if x.reader, err = m.reader(s); err != nil {
				x.reader = refusing{err}
			}
			list = append(list, x)
		}
		ours := len(list)
		missing, err := m.others(ctx, j, settings, list, func(x *contestant) { list = append(list, x) })
		if err != nil {
			return nil, err
		}
		m.run.Log.Debug().Msgf("%s of %s in %d ways", op, t.path, len(list))
		if err := m.measure(ctx, j, list, reps, settings[0].cold, progress); err != nil {
			return nil, stage.Failed(err)
		}
		if len(list) == ours && ours == 1 && list[0].result.Reason != "" {
			return nil, cli.Usage("%s", list[0].result.Reason)
		}
		for _, x := range list {
			out = append(out, x.result)
		}
		out = append(out, missing...)
	}
	return out, nil
}

// refusing is a reader that cannot be made.
type refusing struct{ err error }

func (r refusing) check(context.Context, *job) (uint32, error) { return 0, r.err }
func (r refusing) round(context.Context, *job) (sample, error) { return sample{}, r.err }

// others adds the peers to those who measure a job: beside the first of our settings of each number
// of threads and requests. What is missing of them comes as results.
func (m *machine) others(ctx context.Context, j *job, settings []setting, ours []*contestant, add func(*contestant)) (missing []bench.Result, err error) {
	if m.peers == nil || j.op == opStream {
		return nil, nil
	}
	s := settings[0]
	host := slices.ContainsFunc(settings, func(s setting) bool { return s.to != toDevice })
	device := slices.ContainsFunc(settings, func(s setting) bool { return s.to == toDevice })
	if err := m.peers.start(ctx, s.threads, s.inFlight, host, device); err != nil {
		return nil, err
	}
	m.noteSoftware()
	for _, p := range m.peers.list {
		first := slices.IndexFunc(settings, func(s setting) bool { return (s.to == toDevice) == p.kind.device })
		add(&contestant{result: bench.Result{Name: j.op, Who: p.kind.name, Axes: ours[first].result.Axes}, reader: p})
	}
	for _, r := range m.peers.missing {
		r.Name, r.Axes = j.op, ours[0].result.Axes
		missing = append(missing, r)
	}
	return missing, nil
}

func (m *machine) noteSoftware() {
	for _, s := range m.peers.software() {
		if !slices.Contains(m.doc.System.Software, s) {
			m.doc.System.Software = append(m.doc.System.Software, s)
		}
	}
}

// finish writes what was measured.
func (m *machine) finish(table bool) error {
	var err error
	if table {
		err = m.doc.Table(m.run.Stdout)
	}
	return errors.Join(err, m.json.Write(m.doc.WriteJSON), m.html.Write(m.doc.HTML))
}
