package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sys/unix"

	"strata/pkg/address"
	"strata/pkg/atomic"
	"strata/pkg/cli/progress"
	"strata/pkg/host"
	"strata/pkg/mem"
	"strata/pkg/meter"
	"strata/pkg/record"
	"strata/pkg/units"
	"strata/pkg/work"
)

// plainInterval is the time between progress lines. Tests shorten it by the
// environment variable STRATA_PROGRESS_INTERVAL.
const plainInterval = 10 * time.Second

// Main runs a command with the process's arguments and streams, and ends the
// process with the command's exit code.
func Main(c *Command) {
	hideSecrets(os.Args[1:], os.Environ())
	debug.SetTraceback("crash") // what the runtime ends dies by SIGABRT: its exit code 2 would say wrong usage
	if code, supervised := supervise(c.Name, os.Args[1:]); supervised {
		os.Exit(code)
	}
	os.Exit(execute(c.calledAs(os.Args[0]), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// execute is Main without the end of the process.
func execute(c *Command, tokens []string, stdin io.Reader, stdout, stderr io.Writer) int {
	out, code := newResults(stdout), ExitOK
	o, err := parse(c, tokens, func(o *order, l *line) error {
		switch {
		case o.help:
			return help(out, o)
		case l.is("version"):
			return printVersion(out, c.tool())
		case l.is("man"):
			return printMan(out, c)
		case l.values["completion"].set:
			return printCompletion(out, c, l.values["completion"].String())
		}
		if err := l.count(o.behind); err != nil {
			return err
		}
		code = start(c, l, stdin, out, stderr)
		return nil
	})
	if err != nil && ExitCode(err) == ExitUsage {
		if wanted, brief := wantsHelp(tokens); wanted { // it tells what would be right
			o.brief = brief
			err = help(out, o)
		}
	}
	if err != nil {
		return printError(stderr, c.Name, err)
	}
	return code
}

// help prints the help that was asked for.
func help(w io.Writer, o *order) error {
	if o.brief {
		return printBrief(w, o.cmd, o.path)
	}
	return printHelp(w, o.cmd, o.path)
}

// is reports whether a boolean flag is on.
func (l *line) is(name string) bool {
	v := l.values[name]
	return len(v.items) == 1 && v.items[0] == true
}

// wantsHelp reports whether a command line with a mistake asks for help, and whether for no more than a screen of it.
func wantsHelp(tokens []string) (help, brief bool) {
	if end := slices.Index(tokens, "--"); end >= 0 {
		tokens = tokens[:end]
	}
	long := slices.Contains(tokens, "--help")
	return long || slices.Contains(tokens, "-h"), !long
}

// printError prints an error as one line and is its exit code.
func printError(w io.Writer, tool string, err error) int {
	fmt.Fprintf(w, "%s: %s\n", tool, Message(oneLine(err)))
	return ExitCode(err)
}

// start runs the command of an ordered command line.
func start(root *Command, l *line, stdin io.Reader, stdout *results, stderr io.Writer) int {
	r := &Run{
		Meter: new(meter.Meter), Stdin: stdin, Stdout: stdout, Stderr: stderr,
		command: l.cmd, values: l.values, args: l.args, warnings: new(warnings),
		program: root.tool(),
	}
	if root.alias != nil {
		r.sub = root.alias.Command
	}
	if l.cmd != root {
		r.sub = l.cmd.Name
	}
	return r.main(root)
}

// main sets everything up, runs the command and is the exit code.
func (r *Run) main(root *Command) (code int) {
	started := time.Now()
	err := checkFiles()
	if err != nil {
		return printError(r.Stderr, root.Name, err)
	}
	if r.Options, err = options(r); err != nil {
		return printError(r.Stderr, root.Name, err)
	}
	r.mem = r.Options.Mem
	r.setUp(root.Name)
	defer r.display.Close()

	ctx, sig := watchSignals(r.dump)
	err = r.guarded(ctx)
	if err == nil {
		err = r.checkKept()
	}
	if out, ok := r.Stdout.(*results); ok && err == nil {
		err = out.err
	}
	if err == nil {
		err = r.tieTogether(ctx)
	}
	complete := false
	if err == nil && sig.got() == nil {
		err = placeError(r.outputs.Commit())
		complete = err == nil
	}
	r.outputs.Abort() // nothing after a commit
	r.display.Close()
	if s := sig.stop(); s != nil && !complete {
		if err = s; len(r.outputs.Paths()) > 0 {
			err = fmt.Errorf("%w: unfinished outputs are removed", s)
		}
	}
	if ExitCode(err) == ExitGPU && r.record.GPU != nil && !r.Options.RequireGPU {
		err = againWithoutGPU(err)
	}
	if r.Options.Report != "" && !errors.Is(err, atomic.ErrReserved) {
		if reportErr := r.report(root, started, err); reportErr != nil {
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
		r.Log.Error().Msg(r.message(err))
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
	r.display = progress.New(mode, out, interval, func(s progress.Status) { logStatus(&r.Log, o.LogJSON, s) })
	r.Log = newLogger(cleaner{r.display}, tool, o, r.warnings)
	r.outputs = atomic.NewGroup(atomic.Options{Overwrite: o.Overwrite, Sync: o.Sync, Warn: r.Warn})
	if o.Threads < runtime.GOMAXPROCS(0) {
		runtime.GOMAXPROCS(o.Threads) // the local executor of a workflow limits nobody
	}
	mem.SetLimit(o.Mem)
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(max(o.Mem, 32<<20))
	}
}

// logStatus logs a progress line.
func logStatus(log *zerolog.Logger, fields bool, s progress.Status) {
	if !fields {
		log.Info().Msg(s.String())
		return
	}
	log.Info().Str("task", s.Name).Float64("percent", s.Percent()).Int64("done_bytes", s.Done).Int64("total_bytes", s.Total).
		Float64("bytes_per_second", s.Rate()).Float64("seconds_left", s.Left().Seconds()).Msg("progress")
}

// isTerminal says whether a bar can be drawn on w: a terminal that knows its
// width. Those of some containers do not.
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
		r.fillBound()
		if err := r.command.Run(ctx, r); err != nil {
			return err
		}
		for _, check := range r.atEnd {
			if err := check(); err != nil {
				return err
			}
		}
		r.warnOfNonFinite()
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
		r.Warn("%s", text)
	}
	for _, f := range r.command.flags() {
		if f.Ignored != "" && r.values[f.Name].set {
			r.Warn("flag --%s has no effect: %s", f.Name, f.Ignored)
		}
	}
	o := &r.Options
	if r.command.Shared&Resources != 0 {
		r.Decided("at most %s and %s of buffers", units.Count(o.Threads, "worker"), units.FormatSize(o.Mem))
	}
	if o.Report != "" {
		if err := record.Check(o.Report, o.Overwrite); err != nil {
			name := o.Report
			o.Report = "" // nothing can be written there later either
			if errors.Is(err, atomic.ErrExists) && r.command.flag("overwrite") == nil {
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
	case r.command.Accelerator == nil:
		return r.withoutGPU(errNoBackEnd)
	}
	return nil // Run asks for it when its inputs are open
}

// report writes the run record.
func (r *Run) report(root *Command, started time.Time, err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	rec := &r.record
	rec.Tool, rec.Command, rec.Started = r.program, r.sub, started.UTC()
	for _, a := range os.Args[1:] {
		rec.Arguments = append(rec.Arguments, address.Address(a))
	}
	if root.alias != nil {
		rec.CalledAs = root.Name
	}
	rec.Version, rec.Commit = buildVersion()
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
		if rec.Inputs[i].Bytes == 0 {
			rec.Inputs[i].Bytes = record.DiskBytes(rec.Inputs[i].Path.Reveal())
		}
	}
	for i := range rec.Outputs {
		switch {
		case err != nil:
			rec.Outputs[i].Bytes = -1 // what lies there, if anything, is not of this run
		case rec.Outputs[i].Bytes == 0:
			rec.Outputs[i].Bytes = record.DiskBytes(rec.Outputs[i].Path.Reveal())
		}
	}
	rec.PeakResidentBytes = host.PeakResident()
	rec.WallSeconds = time.Since(started).Seconds()
	if werr := rec.Write(r.Options.Report, r.Options.Overwrite); werr != nil {
		return placeError(werr)
	}
	return nil
}
