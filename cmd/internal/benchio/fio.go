package benchio

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"strata/cmd/internal/iobench"
	"strata/pkg/bench"
	"strata/pkg/cli"
	"strata/pkg/gpu"
)

// fio is the program of that name.
type fio struct {
	path, version string
}

// findFIO finds fio, unless it is not wanted. If it is missing and was not explicitly requested, why gives the
// reason.
func findFIO(ctx context.Context, r *cli.Run) (f *fio, why string, err error) {
	asked := r.IsSet("fio")
	if asked && !r.Bool("fio") {
		return nil, "", nil
	}
	path, err := exec.LookPath("fio")
	if err != nil {
		why = "there is no fio on the PATH: install it (apt-get install fio), or give --no-fio"
	} else {
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		text, err := exec.CommandContext(ctx, path, "--version").Output()
		version, ok := strings.CutPrefix(strings.TrimSpace(string(text)), "fio-")
		major, _, _ := strings.Cut(version, ".")
		n, bad := strconv.Atoi(major)
		if err == nil && ok && bad == nil && n >= 3 {
			return &fio{path, version}, "", nil
		}
		why = fmt.Sprintf("%s is not fio 3 or newer (it says %q)", path, bench.Plain(strings.TrimSpace(string(text))))
	}
	if asked {
		return nil, "", cli.Usage("flag --fio: %s", why)
	}
	return nil, why, nil
}

// engines maps ways to the fio engines that move data in the same way.
var engines = map[string]string{"host": "psync", "direct": "psync", "mmap": "mmap"}

// can reports whether fio measures a case: of one file, with a block for each thread. Its mmap engine always maps
// a file from its beginning, so that several jobs would read the same data.
func (f *fio) can(c kase, d *iobench.Data) bool {
	if c.way.Name == "mmap" && c.threads > 1 {
		return false
	}
	return engines[c.way.Name] != "" && len(d.Files) == 1 && d.Files[0].Bytes/c.block >= int64(c.threads)
}

// arguments returns the arguments with which fio moves a number of blocks in the way of a case. Its file is
// descriptor 3, which needs no escapes and is certainly the intended file.
func (f *fio) arguments(c kase, file, moved int64) []string {
	section := file / c.block / int64(c.threads) * c.block
	each := max(moved/int64(c.threads), 1) * c.block
	if c.way.Name == "mmap" {
		each = min(each, section) // it would map the file again and again
	}
	a := []string{
		"--name=strata", "--filename=/dev/fd/3", "--allow_file_create=0", "--thread", "--group_reporting", "--fallocate=none", "--invalidate=0",
		"--rw=" + c.short, "--ioengine=" + engines[c.way.Name], fmt.Sprintf("--bs=%d", c.block), fmt.Sprintf("--numjobs=%d", c.threads),
		fmt.Sprintf("--size=%d", section), fmt.Sprintf("--offset_increment=%d", section), fmt.Sprintf("--io_size=%d", each),
		"--lat_percentiles=1", "--clat_percentiles=0", "--output-format=json+",
	}
	if c.way.Name == "direct" {
		a = append(a, "--direct=1")
	}
	if c.random && each > section {
		a = append(a, "--norandommap=1")
	}
	switch {
	case c.write && c.random:
		a = append(a, "--overwrite=1", "--end_fsync=1")
	case c.write:
		a = append(a, "--create_on_open=1", "--end_fsync=1")
	default:
		a = append(a, "--readonly")
	}
	return a
}

// peer is a case that fio measures as well.
type peer struct {
	fio    *fio
	c      kase
	path   string
	bytes  int64 // of the file
	result bench.Result
	times  bench.Histogram
	cpu    []float64
	failed error
}

// repeat measures once, moving as many blocks as strata's repeats.
func (p *peer) repeat(ctx context.Context, moved int64) {
	one, err := p.fio.run(ctx, p.path, p.fio.arguments(p.c, p.bytes, moved), p.c.write, &p.times)
	if err != nil {
		p.failed = err
		return
	}
	r := &p.result
	r.Seconds = append(r.Seconds, one.seconds)
	r.Bytes, r.Ops = one.bytes, one.ops
	r.RSS = max(r.RSS, one.peak)
	p.cpu = append(p.cpu, one.cpu)
}

// sum returns the result of all repeats together.
func (p *peer) sum() bench.Result {
	r := p.result
	r.Name, r.Axes, r.Who, r.Backend = p.c.name, p.c.axes(), "fio", engines[p.c.way.Name]
	r.CPU, r.Latency = bench.Median(p.cpu), p.times.Latency()
	if p.failed != nil {
		r.Seconds, r.Latency, r.Reason = nil, nil, gpu.Reason(p.failed)
	}
	return r
}

// measuredByFIO is the output of one run of fio.
type measuredByFIO struct {
	seconds, cpu float64
	bytes, ops   int64
	peak         int64
}

func (f *fio) run(ctx context.Context, path string, arguments []string, write bool, times *bench.Histogram) (*measuredByFIO, error) {
	flag := os.O_RDONLY
	if write {
		flag = os.O_RDWR
	}
	file, err := os.OpenFile(path, flag, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	dir, err := os.MkdirTemp("", "bench-io-") // it leaves files where it runs
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	cmd := exec.CommandContext(ctx, f.path, arguments...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles, cmd.Dir = &out, &errs, []*os.File{file}, dir
	cmd.SysProcAttr = withUs()
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 2 * time.Second
	runtime.LockOSThread() // whose end would end it
	err = cmd.Run()
	runtime.UnlockOSThread()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("fio: %w: %s", err, lastLine(errs.String()))
	}
	m, err := parseFIO(out.Bytes(), write, times)
	if err != nil {
		return nil, fmt.Errorf("fio: %w", err)
	}
	m.cpu = (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
	if u, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		m.peak = int64(u.Maxrss) << 10
	}
	return m, nil
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return bench.Plain(lines[len(lines)-1])
}

// parseFIO parses fio's JSON. It adds the durations of single reads or writes to a histogram.
func parseFIO(text []byte, write bool, times *bench.Histogram) (*measuredByFIO, error) {
	type direction struct {
		Bytes   int64   `json:"io_bytes"`
		Runtime float64 `json:"runtime"` // ms
		Ops     int64   `json:"total_ios"`
		Latency struct {
			Bins map[string]int64 `json:"bins"`
		} `json:"lat_ns"`
	}
	var d struct {
		Jobs []struct {
			Error int       `json:"error"`
			Read  direction `json:"read"`
			Write direction `json:"write"`
		} `json:"jobs"`
	}
	if at := bytes.Index(text, []byte("{\n")); at > 0 { // messages stand before it
		text = text[at:]
	}
	if err := json.Unmarshal(text, &d); err != nil {
		return nil, fmt.Errorf("cannot parse its output: %w", err)
	}
	if len(d.Jobs) != 1 {
		return nil, fmt.Errorf("its output has %d jobs, want 1", len(d.Jobs))
	}
	j := d.Jobs[0]
	if j.Error != 0 {
		return nil, syscall.Errno(j.Error)
	}
	one := j.Read
	if write {
		one = j.Write
	}
	if one.Bytes <= 0 || one.Runtime <= 0 || one.Ops <= 0 {
		return nil, errors.New("moved no data, or took less than a millisecond")
	}
	for ns, n := range one.Latency.Bins {
		v, err := strconv.ParseInt(ns, 10, 64)
		if err != nil || v < 0 || n < 0 {
			return nil, fmt.Errorf("cannot parse its output: lat_ns has %q of %d", ns, n)
		}
		times.AddN(time.Duration(v), n)
	}
	return &measuredByFIO{seconds: one.Runtime / 1000, bytes: one.Bytes, ops: one.Ops}, nil
}
