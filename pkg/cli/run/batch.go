package run

import (
	"context"
	"fmt"
	"strings"
	"time"

	"strata/pkg/address"
	"strata/pkg/meter"
	"strata/pkg/runrecord"
	"strata/pkg/units"
)

// batch is a run with --batch: one process, which starts the GPU once, executes the command for many pairs of IN and
// OUT, one after another. Its state can be handed to a new process; see [batch.again].
type batch struct {
	List    string // in messages and records
	Pairs   []pair
	Next    int // index of the pair that is done next
	Done    int
	Failed  []failure
	Started time.Time

	run  *Run
	told map[string]bool // what was said of all pairs alike
}

// pair is a line of the list.
type pair struct {
	Line    int // counted from 1
	In, Out string
}

// failure is a pair that was not done.
type failure struct{ Pair, Code int }

// batch carries out the command for all pairs of the list, and is the exit code.
func (r *Run) batch(ctx context.Context, sig *watcher, started time.Time) int {
	b, err := r.openBatch(ctx, started)
	if err != nil {
		if s := sig.stop(); s != nil {
			err = s
		}
		r.Log.Error().Msg(Message(oneLine(err)))
		return ExitCode(err)
	}
	for b.Next < len(b.Pairs) && sig.got() == nil {
		if again := b.do(ctx, sig); again != nil {
			r.gpu.close(r)
			r.Log.Error().Msg(Message(oneLine(b.again(again))))
		}
	}
	r.gpu.close(r)
	r.display.Close()
	return b.conclude(sig.stop())
}

// do carries out the command for the next pair. Where a GPU failed over it, the result says how the rest is to be
// started again.
func (b *batch) do(ctx context.Context, sig *watcher) *restart {
	p := b.Pairs[b.Next]
	r := b.runOf(p)
	started := time.Now()
	r.setUp(r.Root.Name)
	defer r.display.Close()
	r.Log.Info().Msgf("%d of %d: %s → %s", b.Next+1, len(b.Pairs), address.Address(p.In), address.Address(p.Out))
	err := r.carryOut(ctx, sig.got, sig.got)
	onGPU := r.failedOnGPU(err)
	if onGPU && r.MayChoose() && b.run.Options.UseGPU {
		return &restart{reason: err, onCPU: true}
	}
	code := r.conclude(started, err)
	b.Next++
	switch {
	case code == ExitOK:
		b.Done++
	case sig.got() == nil:
		b.Failed = append(b.Failed, failure{b.Next - 1, code})
	}
	if onGPU && b.Next < len(b.Pairs) {
		return &restart{reason: err}
	}
	return nil
}

// runOf returns the run of a pair.
func (b *batch) runOf(p pair) *Run {
	whole := b.run
	r := &Run{
		Line: whole.Pair(p.In, p.Out), Options: whole.Options, Meter: new(meter.Meter), Stdin: whole.Stdin, Stdout: whole.Stdout, Stderr: whole.Stderr,
		do: whole.do, accelerator: whole.accelerator, mem: whole.mem, gpu: whole.gpu, warnings: new(warnings), early: whole.early, pair: &pairRun{b, p},
	}
	r.Options.Report = r.String("report")
	return r
}

// mostFailed limits the pairs that the last line names.
const mostFailed = 10

// conclude says how many pairs were done, and which were not, and is the exit code: that of the signal that ended the
// run, or else the worst of all pairs.
func (b *batch) conclude(signal error) int {
	code := ExitOK
	var names []string
	for i, f := range b.Failed {
		code = worse(code, f.Code)
		if p := b.Pairs[f.Pair]; i < mostFailed {
			names = append(names, fmt.Sprintf("%s (%s:%d, exit code %d)", address.Address(p.Out), b.List, p.Line, f.Code))
		}
	}
	if more := len(b.Failed) - mostFailed; more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	text := fmt.Sprintf("%d of %s done", b.Done, units.Count(len(b.Pairs), "pair"))
	if names != nil {
		text += "; failed: " + strings.Join(names, ", ")
	}
	if left := len(b.Pairs) - b.Done - len(b.Failed); signal != nil && left > 0 {
		b.run.Log.Error().Msgf("%s; %v before %s", text, signal, units.Count(left, "pair"))
		return ExitCode(signal)
	}
	text += "; " + units.FormatDuration(time.Since(b.Started))
	if code == ExitOK {
		b.run.Log.Info().Msg(text)
	} else {
		b.run.Log.Error().Msg(text)
	}
	return code
}

// severity orders the exit codes of pairs. Codes that another machine, or a later run, may cure without a change of
// input or command line come last.
var severity = []int{ExitOK, ExitBadInput, ExitUsage, ExitGPU, ExitFailed}

// worse returns the worse of two exit codes. The code of a signal is worse than all others.
func worse(a, b int) int {
	rank := func(code int) int {
		for i, c := range severity {
			if c == code {
				return i
			}
		}
		return len(severity)
	}
	if rank(b) > rank(a) {
		return b
	}
	return a
}

// pairRun links the run of a pair to its batch. It is nil in a run without --batch.
type pairRun struct {
	batch *batch
	pair
}

// where begins the message of an error: "slices.tsv:3: ".
func (p *pairRun) where() string {
	if p == nil {
		return ""
	}
	return fmt.Sprintf("%s:%d: ", p.batch.List, p.Line)
}

// first reports whether a text is new in its batch.
func (p *pairRun) first(text string) bool {
	if p == nil {
		return true
	}
	told := p.batch.told[text]
	p.batch.told[text] = true
	return !told
}

// left returns the number of pairs that are not done yet, including this one.
func (p *pairRun) left() int { return len(p.batch.Pairs) - p.batch.Next }

// record says which pair a record is of.
func (p *pairRun) record() *runrecord.Batch {
	if p == nil {
		return nil
	}
	return &runrecord.Batch{List: p.batch.List, Line: p.Line, Pairs: len(p.batch.Pairs), In: address.Address(p.In), Out: address.Address(p.Out)}
}
