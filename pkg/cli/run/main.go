package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sys/unix"

	"strata/pkg/address"
	"strata/pkg/atomic"
	"strata/pkg/cli/flags"
	"strata/pkg/cli/progress"
	"strata/pkg/cli/release"
	"strata/pkg/host"
	"strata/pkg/mem"
	"strata/pkg/runrecord"
	"strata/pkg/units"
	"strata/pkg/work"
)

// plainInterval is the time between progress lines. Tests shorten it by the
// environment variable STRATA_PROGRESS_INTERVAL.
const plainInterval = 10 * time.Second

// PrintError prints an error as one line and is its exit code.
func PrintError(w io.Writer, tool string, err error) int {
	fmt.Fprintf(w, "%s: %s\n", tool, Message(oneLine(err)))
	return ExitCode(err)
}

// main sets everything up, runs the command and is the exit code.
func (r *Run) main() (code int) {
	started := time.Now()
	err := checkFiles()
	if err != nil {
		return PrintError(r.Stderr, r.Root.Name, err)
	}
	if r.Options, err = options(r); err != nil {
		return PrintError(r.Stderr, r.Root.Name, err)
	}
	r.mem = r.Options.Mem
	r.limit()
	r.setUp(r.Root.Name)
	defer r.display.Close()

	ctx, sig := watchSignals(r.dump)
	if r.Batch() != "" {
		return r.batch(ctx, sig, started)
	}
	err = r.carryOut(ctx, sig.got, sig.stop)
	if r.failedOnGPU(err) && !r.Options.RequireGPU {
		err = again(err, fellBackVariable+"="+Message(oneLine(err)))
	}
	return r.conclude(started, err)
}

// carryOut runs the command and puts its outputs in place. Signals that came are asked for by got, and at the end by
// stop.
func (r *Run) carryOut(ctx context.Context, got, stop func() error) error {
	err := r.guarded(ctx)
	if err == nil {
		err = r.checkKept()
	}
	if err == nil {
		err = Arrived(r.Stdout)
	}
	if err == nil {
		err = r.tieTogether(ctx)
	}
	complete := false
	if err == nil && got() == nil {
		err = placeError(r.outputs.Commit())
		complete = err == nil
	}
	r.outputs.Abort() // nothing after a commit
	r.display.Close()
	for _, release := range r.closing {
		release()
	}
	if s := stop(); s != nil && !complete {
		if err = s; len(r.outputs.Paths()) > 0 {
			err = fmt.Errorf("%w: unfinished outputs are removed", s)
		}
	}
	return err
}

// conclude writes the record of a run that ended with err, says how it ended, and is the exit code.
func (r *Run) conclude(started time.Time, err error) int {
	if r.Options.Report != "" && !errors.Is(err, atomic.ErrReserved) {
		if reportErr := r.report(started, err); reportErr != nil {
			if err == nil {
				err = fmt.Errorf("the output is complete, but its record could not be written: %w", reportErr)
			} else {
				r.Log.Error().Msg(r.message(reportErr))
			}
		}
	}
	switch {
	case err == nil:
		r.summarize(time.Since(started))
	case !errors.Is(err, errPassedOn):
		r.Log.Error().Msg(r.pair.where() + r.message(err))
	}
	return ExitCode(err)
}

// message returns the text of an error that ends the run, with the outputs' final names.
func (r *Run) message(err error) string { return Message(r.outputs.Rename(oneLine(err))) }

// setUp makes what a run works with, from its options.
func (r *Run) setUp(tool string) {
	o := &r.Options
	mode := progress.None
	terminal := isTerminal(r.Stderr)
	switch {
	case o.Quiet || o.Progress == "none":
	case o.Progress == "bar" || o.Progress == "auto" && terminal && !o.LogJSON:
		mode = progress.Bar
	default:
		mode = progress.Plain
	}
	interval := plainInterval
	if d, err := time.ParseDuration(os.Getenv("STRATA_PROGRESS_INTERVAL")); err == nil && d > 0 {
		interval = d
	}
	out := r.Stderr
	if mode == progress.Bar && !terminal {
		out = struct{ io.Writer }{out} // else the bar would ask the file for its width
	}
	r.display = progress.New(mode, out, interval, func(s progress.Status) { logStatus(&r.Log, tool, o.LogJSON, s) })
	r.Log = newLogger(cleaner{r.display}, tool, o, r.warnings)
	r.outputs = atomic.NewGroup(atomic.Options{Overwrite: o.Overwrite, Sync: o.Sync, Warn: r.Warn})
}

// limit bounds what the process takes of the machine.
func (r *Run) limit() {
	o := &r.Options
	if o.Threads < runtime.GOMAXPROCS(0) {
		runtime.GOMAXPROCS(o.Threads) // the local executor of a workflow limits nobody
	}
	mem.SetLimit(o.Mem)
	mem.SetCaches(o.AssuredMem())
	if o.SharedMem {
		mem.Share(o.Mem/4, host.Available)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(max(o.Mem, 32<<20))
	}
}

// logStatus logs a progress line.
func logStatus(log *zerolog.Logger, tool string, fields bool, s progress.Status) {
	if !fields {
		log.Info().Msg(strings.TrimPrefix(s.String(), tool+": ")) // with which the log's lines begin
		return
	}
	log.Info().Str("task", s.Name).Float64("percent", s.Percent()).Int64("done_bytes", s.Done).Int64("total_bytes", s.Total).
		Float64("bytes_per_second", s.Rate()).Float64("seconds_left", s.Left().Seconds()).Msg("progress")
}

// isTerminal reports whether a progress bar can be drawn on w: whether it is a terminal that knows its width. Terminals
// of some containers do not.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	return err == nil && size.Col > 0
}

// guarded refuses what the machine cannot do, then runs the command. A panic, in whichever
// goroutine of package work, is an error; with -v its stack is printed.
func (r *Run) guarded(ctx context.Context) error {
	err := work.Guard(func() error {
		if err := r.prepare(); err != nil {
			return err
		}
		defer r.closeDevice()
		r.FillBound()
		if err := r.do(ctx, r); err != nil {
			return err
		}
		for _, check := range r.atEnd {
			if err := check(); err != nil {
				return err
			}
		}
		r.warnOfNonFinite()
		r.warnOfIdleCores()
		return nil
	})
	var bug *work.Panic
	switch {
	case !errors.As(err, &bug):
	case r.Options.Verbose:
		r.display.Close()
		fmt.Fprint(r.Stderr, address.Redact(string(bug.Stack)))
	default:
		err = fmt.Errorf("%w (give -v for the place)", err)
	}
	return err
}

// prepare checks the options against the machine, before any work.
func (r *Run) prepare() error {
	for _, text := range r.early {
		r.warnOnce("%s", text)
	}
	for _, g := range r.Given() {
		if g.Flag.Ignored != "" {
			r.warnOnce("flag --%s has no effect: %s", g.Flag.Name, g.Flag.Ignored)
		}
	}
	o := &r.Options
	if r.Command.Shared&flags.Resources != 0 {
		r.Decided("at most %s and %s of buffers", units.Count(o.Threads, "worker"), units.FormatSize(o.Mem))
	}
	if o.Report != "" {
		if err := runrecord.Check(o.Report, o.Overwrite); err != nil {
			name := o.Report
			o.Report = "" // nothing can be written there later either
			if errors.Is(err, atomic.ErrExists) && r.Command.Flag("overwrite") == nil {
				return Usage("--report %s exists: remove it, or give another name", name)
			}
			return placeError(err)
		}
		if err := r.outputs.Reserve(o.Report); err != nil {
			return placeError(err)
		}
	}
	if reason := r.backendReason(); reason != "" {
		return Usage("flag --backend: %s cannot be used: %s; give auto or host", o.Backend, reason)
	}
	failed := os.Getenv(fellBackVariable)
	switch {
	case !o.UseGPU:
		return nil
	case failed != "":
		return r.withoutGPU(errors.New("it failed: " + failed))
	case r.accelerator == nil:
		return r.withoutGPU(errNoBackEnd)
	}
	return nil // Run asks for it when its inputs are open
}

// report writes the run record.
func (r *Run) report(started time.Time, err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	rec := &r.record
	rec.Tool, rec.Command, rec.Started = r.Program(), r.Sub(), started.UTC()
	for _, a := range os.Args[1:] {
		rec.Arguments = append(rec.Arguments, address.Address(a))
	}
	if r.Root.Alias() != nil {
		rec.CalledAs = r.Root.Name
	}
	rec.Batch = r.pair.record()
	rec.Folder, _ = os.Getwd()
	rec.Settings = r.settings()
	rec.Version, rec.Commit = release.Build()
	rec.Host, _ = os.Hostname()
	rec.Platform = runtime.GOOS + "/" + runtime.GOARCH
	rec.CPUModel, rec.Cgroup = host.CPUModel(), host.CgroupLimits()
	rec.Threads, rec.Mem = r.Options.Threads, r.mem
	rec.Measure(r.Meter)
	rec.Warnings = r.warnings.list()
	rec.ExitCode = ExitCode(err)
	if err != nil {
		rec.Error = r.message(err)
	}
	for i := range rec.Inputs {
		d := &rec.Inputs[i]
		d.Measure()
		d.LinksTo = runrecord.LinksTo(d.Path.Reveal())
	}
	for i := range rec.Outputs {
		if err != nil {
			rec.Outputs[i].Bytes = -1 // what lies there, if anything, is not of this run
		}
		rec.Outputs[i].Measure()
	}
	rec.PeakResidentBytes = host.PeakResident()
	if rec.Workers > 0 {
		rec.Workers = max(rec.Workers, r.Meter.MostAtOnce())
	}
	rec.WallSeconds = time.Since(started).Seconds()
	if werr := rec.Write(r.Options.Report, r.Options.Overwrite); werr != nil {
		return placeError(werr)
	}
	return nil
}
