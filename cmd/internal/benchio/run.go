package benchio

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"strata/cmd/internal/iobench"
	"strata/pkg/bench"
	"strata/pkg/cli"
	"strata/pkg/gpu"
	"strata/pkg/host"
	"strata/pkg/settings"
)

// runner measures cases one after another.
type runner struct {
	*cli.Run
	data     *iobench.Data
	settings settings.Settings
	want     *choice
	doc      *bench.Document
	fio      *fio   // nil: not beside ours
	noFIO    string // why, where it was wanted if there
	seconds  time.Duration
	reps     int
	device   *gpu.Device
	noDevice string
	refused  map[string]bool // ops and ways that cannot be
	held     int             // per cent of a cold file that stayed in the page cache, the most
}

// span is the number of bytes requested from the file layer's pool at a time.
const span = 64 << 20

// all measures every case, first with strata, then with fio.
func (x *runner) all(ctx context.Context, path string) error {
	list, err := x.want.list(x.device != nil)
	if err != nil {
		return cli.Usage("%w", err)
	}
	x.Log.Info().Msgf("measuring %s: %d cases of %s each", path, len(list), x.seconds)
	filled := !x.data.Made
	for i, c := range list {
		if !filled && (!c.write || c.random) {
			if err := x.fill(ctx); err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
			filled = true
		}
		if x.refused[c.short+" "+c.way.Name] {
			continue
		}
		done, err := x.one(ctx, c)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		x.doc.Results = append(x.doc.Results, done...)
		x.Log.Info().Msgf("%d of %d: %s: %s", i+1, len(list), c, told(done))
	}
	if !slices.ContainsFunc(x.doc.Results, bench.Result.Measured) {
		return fmt.Errorf("%s: nothing could be measured: %s", path, x.doc.Results[0].Reason)
	}
	x.doc.Advice = x.advise()
	return nil
}

// told summarises the measurements in a few words.
func told(list []bench.Result) string {
	var parts []string
	for _, r := range list {
		text := bench.GiBs(r.Rate()) + " GiB/s"
		if !r.Measured() {
			text = bench.Plain(r.Reason)
		}
		if r.Who != bench.Strata {
			text = r.Who + " " + text
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ", ")
}

// one measures a case, alternately with strata and fio. An unavailable way is listed once for each op, with the
// reason. An error returned ends the run.
func (x *runner) one(ctx context.Context, c kase) ([]bench.Result, error) {
	result := bench.Result{Name: c.name, Axes: c.axes(), Who: bench.Strata}
	m, err := x.begin(ctx, c, &result)
	if err == nil {
		err = m.all(ctx)
		err = errors.Join(err, m.end())
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		result.Reason = gpu.Reason(err)
		if !result.Measured() {
			x.refused[c.short+" "+c.way.Name] = true
		}
	}
	if m == nil || m.fio == nil {
		return []bench.Result{result}, nil
	}
	if len(x.doc.System.Software) == 0 {
		x.doc.System.Software = []bench.Software{{Name: "fio", Version: x.fio.version}}
	}
	return []bench.Result{result, m.fio.sum()}, nil
}

// bench returns the bench for a case.
func (x *runner) bench(c kase, d *iobench.Data) *iobench.Bench {
	b := &iobench.Bench{Data: d, Settings: x.settings, Threads: c.threads, Block: c.block, Random: c.random, Device: x.device, NoDevice: x.noDevice}
	if c.way.Name == iobench.Pool.Name {
		b.Threads, b.Block = 1, max(span/c.block*c.block, c.block)
		b.Settings.Threads, b.Settings.TaskSize = c.threads, c.block
	}
	return b
}

// blocks returns the data in whole blocks, if a file has one, so that repeats move the same number of bytes.
func blocks(d *iobench.Data, block int64) *iobench.Data {
	out := &iobench.Data{Made: d.Made}
	for _, f := range d.Files {
		if f.Bytes >= block {
			f.Bytes = f.Bytes / block * block
		}
		out.Files = append(out.Files, f)
	}
	return out
}

// measurement is a case being measured.
type measurement struct {
	*runner
	kase
	bench  *iobench.Bench
	mover  iobench.Mover
	pass   iobench.Pass
	parts  int64 // of the data
	result *bench.Result
	cpu    []float64
	held   int   // per cent that stayed in the page cache; -1: not known
	fio    *peer // nil: not beside ours
}

// begin prepares a case.
func (x *runner) begin(ctx context.Context, c kase, result *bench.Result) (m *measurement, err error) {
	m = &measurement{runner: x, kase: c, result: result, held: -1}
	data := blocks(x.data, c.block)
	if c.warm {
		if data, result.Note, err = x.warmUp(ctx, data); err != nil {
			return nil, err
		}
	}
	m.bench = x.bench(c, data)
	if err := m.bench.Allocate(); err != nil {
		return nil, err
	}
	if m.mover, err = c.way.Open(m.bench, c.write); err != nil {
		m.bench.Free()
		return nil, err
	}
	result.Backend = c.way.Name
	m.parts = data.Count(m.bench.Block)
	m.pass = iobench.Pass{Write: c.write, Count: m.parts, Limit: max(x.seconds/time.Duration(x.reps), time.Microsecond)}
	for range m.bench.Threads {
		m.pass.Times = append(m.pass.Times, new(bench.Histogram))
	}
	if c.random {
		m.pass.Order = newOrder(m.parts, 1).at
	}
	if _, fresh := m.mover.(iobench.Fresh); !fresh && (c.warm || past(c.way.Name) && !c.write || c.random && c.write) {
		m.pass.Count = 1 << 40 // the same again costs as much
	}
	if n := m.bench.Threads; !c.random && n > 1 && len(data.Files) == 1 && m.parts >= int64(n) {
		m.pass.Sections = make([]iobench.Section, n)
		for i := range m.pass.Sections {
			if m.pass.Sections[i].Count = m.pass.Count; m.pass.Count == m.parts {
				m.pass.Sections[i].Count = m.parts / int64(n)
			}
		}
	}
	if x.fio != nil && x.fio.can(c, data) {
		m.fio = &peer{fio: x.fio, c: c, path: data.Files[0].Path, bytes: data.Files[0].Bytes}
	}
	return m, nil
}

// all runs the repeats.
func (m *measurement) all(ctx context.Context) error {
	for range m.reps {
		if err := m.ready(true); err != nil {
			return err
		}
		if err := m.repeat(ctx); err != nil {
			return err
		}
		if m.fio == nil || m.fio.failed != nil {
			continue
		}
		if err := m.ready(false); err != nil {
			return err
		}
		m.Log.Debug().Msgf("fio, as %s", m.kase)
		m.fio.repeat(ctx, (m.result.Bytes+m.block-1)/m.block)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return nil
}

// ready brings the files into the state that a repeat, of strata or fio, requires: empty for writing, cold, or
// warm.
func (m *measurement) ready(ours bool) error {
	f, fresh := m.mover.(iobench.Fresh)
	if fresh {
		if err := f.Rest(); err != nil {
			return err
		}
	}
	switch {
	case m.write && !m.random:
		if err := os.Truncate(m.bench.Data.Files[0].Path, 0); err != nil {
			return err
		}
	case !m.write && !m.warm:
		if percent := m.bench.Drop(); percent != nil && !past(m.way.Name) {
			m.held = max(m.held, int(*percent))
		}
	}
	if fresh && ours {
		return f.Fresh()
	}
	return nil
}

// repeat measures once. The first repeat is limited by time, and determines how much all others move.
func (m *measurement) repeat(ctx context.Context) error {
	if len(m.bench.Data.Files) > 1 || m.pass.Count == m.parts || m.write && !m.random {
		m.pass.First = 0
		for i := range m.pass.Sections {
			m.pass.Sections[i].First = 0
		}
	}
	usage := bench.Begin()
	sample, n, err := m.bench.Round(ctx, m.mover, m.pass)
	if err != nil {
		return err
	}
	seconds, peak := usage.End()
	r := m.result
	m.cpu = append(m.cpu, seconds)
	r.RSS = max(r.RSS, peak)
	r.Seconds = append(r.Seconds, sample.Took.Seconds())
	if r.Bytes == 0 {
		r.Bytes = sample.Bytes
		r.Ops = (sample.Bytes + m.block - 1) / m.block
		m.pass.Count, m.pass.Limit = n, 0
		for i := range m.pass.Sections {
			m.pass.Sections[i].Count = m.pass.Sections[i].Done
		}
	}
	m.pass.First += n
	for i := range m.pass.Sections {
		m.pass.Sections[i].First += n / int64(len(m.pass.Sections))
	}
	return nil
}

// end releases everything and combines the repeats.
func (m *measurement) end() error {
	r := m.result
	if t, ok := m.mover.(iobench.Taker); ok {
		r.Backend = t.Took()
	}
	remark, err := m.mover.Close()
	m.bench.Free()
	r.CPU = bench.Median(m.cpu)
	if m.way.Name != iobench.Pool.Name { // whose calls are many blocks
		var all bench.Histogram
		for _, h := range m.pass.Times {
			all.Merge(h)
		}
		r.Latency = all.Latency()
	}
	if m.way.Device {
		r.Device = r.Bytes
	}
	notes := []string{r.Note, remark}
	if m.held > 0 {
		m.runner.held = max(m.runner.held, m.held)
		notes = append(notes, fmt.Sprintf("%d%% of the file stayed in the page cache", m.held))
	}
	r.Note = strings.Join(slices.DeleteFunc(notes, func(s string) bool { return s == "" }), "; ")
	return err
}

// fill writes the whole content of the file that was made.
func (x *runner) fill(ctx context.Context) error {
	b := &iobench.Bench{Data: x.data, Settings: x.settings, Threads: 1, Block: 4 << 20}
	return x.pass(ctx, b, true, 0)
}

// pass moves the data once through the page cache.
func (x *runner) pass(ctx context.Context, b *iobench.Bench, write bool, limit time.Duration) (err error) {
	if err := b.Allocate(); err != nil {
		return err
	}
	defer b.Free()
	m, err := iobench.Ways[0].Open(b, write)
	if err != nil {
		return err
	}
	_, _, err = b.Round(ctx, m, iobench.Pass{Write: write, Count: b.Data.Count(b.Block), Limit: limit})
	_, closing := m.Close()
	return errors.Join(err, closing)
}

// warmUp fills the page cache with the files, as far as a share of memory and some time allow, and returns the
// data to measure then.
func (x *runner) warmUp(ctx context.Context, d *iobench.Data) (*iobench.Data, string, error) {
	left := host.Memory()
	if limit := host.CgroupLimits().Memory; limit != nil && (left == 0 || *limit < left) {
		left = *limit
	}
	if left /= 2; left == 0 {
		left = 1 << 30
	}
	out := &iobench.Data{Made: d.Made}
	for _, f := range d.Files {
		f.Bytes = min(f.Bytes, left/iobench.Page*iobench.Page)
		if left -= f.Bytes; f.Bytes > 0 {
			out.Files = append(out.Files, f)
		}
	}
	note := ""
	if out.Bytes() < d.Bytes() {
		note = "only as much of the files as fits into half of the memory"
	}
	for _, f := range out.Files {
		one := &iobench.Data{Files: []iobench.File{f}}
		if share, known := iobench.CachedShare(f.Path, f.Bytes); known && share > 0.999 {
			continue
		}
		if err := x.pass(ctx, &iobench.Bench{Data: one, Settings: x.settings, Threads: 1, Block: 4 << 20}, false, 0); err != nil {
			return nil, "", err
		}
	}
	in, all := 0.0, 0.0
	for _, f := range out.Files {
		share, known := iobench.CachedShare(f.Path, f.Bytes)
		if !known {
			return out, note, nil
		}
		in += share * float64(f.Bytes)
		all += float64(f.Bytes)
	}
	if in < 0.99*all {
		note = strings.TrimPrefix(note+fmt.Sprintf("; the page cache held only %.0f%%", 100*in/all), "; ")
	}
	return out, note, nil
}

// plot draws the result of most interest: cold, sequential reads, if they were measured.
func (x *runner) plot(w io.Writer) error {
	plain := func(r bench.Result) bool {
		return r.Axes.Get("cache") != "warm" && !strings.HasPrefix(r.Name, "random")
	}
	if !slices.ContainsFunc(x.doc.Results, func(r bench.Result) bool { return plain(r) && r.Measured() }) {
		plain = nil
	}
	return x.doc.SVG(w, "bench-io "+x.Arg("PATH"), plain)
}
