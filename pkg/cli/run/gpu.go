package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"

	"strata/pkg/runrecord"
	"strata/pkg/work"
)

// Device is a GPU that a run uses.
type Device interface {
	// Begin assigns the device to a run. From then on, the run receives its warnings, and Record describes only what
	// the device has done since.
	Begin(r *Run)
	Record() (g runrecord.GPU, peakBytes int64) // what the run record says of it
	Close() error
}

// Accelerator takes the GPU into use that the options ask for. Its error is the reason
// why there is none, without the words "no usable GPU", or wrong usage, which ends the run.
type Accelerator func(ctx context.Context, r *Run) (Device, error)

// errNoDriver matches, by errors.Is, the errors that [NoDriver] marks.
var errNoDriver = errors.New("no driver")

type noDriverError struct{ error }

func (e noDriverError) Is(target error) bool { return target == errNoDriver }

// NoDriver marks the error of an [Accelerator] as that of a machine without a driver. Such a machine computes on the
// CPU as a matter of course: only a user who asked for a GPU is warned.
func NoDriver(err error) error { return noDriverError{err} }

// fellBackVariable is the environment variable that tells a process that it repeats on the CPU what failed on a GPU.
// Its value is the error.
const fellBackVariable = "STRATA_GPU_FAILED"

// Device is the GPU for the run, taken into use by the first call; nil when the CPU
// is to be taken, of which [Run.withoutGPU] warns. A GPU that is required and cannot
// be had is an error (exit code 4).
func (r *Run) Device(ctx context.Context) (Device, error) {
	if !r.Options.UseGPU {
		return nil, nil
	}
	if r.device != nil {
		return r.device, nil
	}
	d, err := r.gpu.open(ctx, r)
	switch {
	case err == nil:
		r.device = d
		d.Begin(r)
		return d, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case ExitCode(err) == ExitUsage:
		return nil, err
	}
	return nil, r.withoutGPU(err)
}

// MayChoose reports whether the run is free to compute on a GPU or on the CPU, whichever is faster: a GPU is wanted,
// and neither --require_gpu nor a --backend that only a GPU has asks for one.
func (r *Run) MayChoose() bool {
	o := &r.Options
	return o.UseGPU && !o.RequireGPU && !onGPU(o.Backend)
}

// Chose says where the run computes, and notes it in the record.
func (r *Run) Chose(c runrecord.Choice) {
	r.mu.Lock()
	r.record.Choice = &c
	r.mu.Unlock()
	r.Decided("%s", c.Reason)
}

// Prepare calls f once, if a GPU is wanted, beside what the run does before it asks for the device: loading a
// driver takes up to half a second. The end of the run waits for it.
func (r *Run) Prepare(f func()) {
	if r.gpu.prepared == nil && r.Options.UseGPU && r.accelerator != nil {
		r.gpu.prepared = work.Async(func() struct{} { f(); return struct{}{} })
	}
}

// withoutGPU continues on the CPU and notes that in the record. It returns an error if a GPU is required by
// --require_gpu or by a backend. On a machine without a driver it logs the fact only if the user asked for a GPU; it
// warns on other machines, and if a GPU was named.
func (r *Run) withoutGPU(reason error) error {
	o := &r.Options
	switch {
	case o.RequireGPU:
		return GPUFailure(fmt.Errorf("--require_gpu: no usable GPU: %w", reason))
	case onGPU(o.Backend):
		return GPUFailure(fmt.Errorf("--backend %s: no usable GPU: %w", o.Backend, reason))
	}
	o.UseGPU = false
	r.withoutIt(reason)
	return nil
}

// withoutIt records and logs why no GPU is used.
func (r *Run) withoutIt(reason error) {
	r.mu.Lock()
	r.record.Fallback = &runrecord.Fallback{From: "gpu", To: "cpu", Reason: reason.Error()}
	r.mu.Unlock()
	switch {
	case !errors.Is(reason, errNoDriver) || r.IsSet("gpu"):
		r.warnOnce("no usable GPU: %v; using the CPU", reason)
	case (r.IsSet("use_gpu") || r.IsSet("gpu_mem")) && r.pair.first("runs on the CPU"):
		r.Log.Info().Msgf("runs on the CPU: %v", reason)
	default:
		r.Decided("runs on the CPU: %v", reason)
	}
}

// closeDevice notes in the record what the GPU did, and gives it back unless further runs of the process use it.
func (r *Run) closeDevice() {
	switch d, late := r.later.end(); {
	case d != nil:
		r.device, r.gpu.device = d, d
	case late:
		r.tooLate()
	}
	if r.device != nil {
		g, peak := r.device.Record()
		for i, t := range g.Trials {
			g.Trials[i].Array = r.OwnNames(t.Array)
		}
		r.UsedGPU(g, peak)
		r.device = nil
	}
	if r.pair == nil {
		r.gpu.close(r)
	}
}

// opened is the GPU of a process. The runs of a batch use it one after another.
type opened struct {
	device   Device
	reason   error           // why there is none
	prepared func() struct{} // waits for what [Run.Prepare] began
}

// open takes the GPU into use by the first call. Later ones return the same device, or the same reason why there is
// none.
func (g *opened) open(ctx context.Context, r *Run) (Device, error) {
	if g.device != nil || g.reason != nil {
		return g.device, g.reason
	}
	d, err := r.accelerator(ctx, r)
	switch {
	case err == nil:
		g.device = d
	case ctx.Err() == nil:
		g.reason = err
	}
	return d, err
}

// close gives the GPU back.
func (g *opened) close(r *Run) {
	if g.prepared != nil {
		g.prepared()
	}
	if g.device == nil {
		return
	}
	if err := g.device.Close(); err != nil {
		r.Warn("release the GPU: %v", err)
	}
	g.device = nil
}

// Batched reports whether the run is one of several that --batch executes in this process.
func (r *Run) Batched() bool { return r.pair != nil }

// Starts returns how many runs of the process, with this one, share the start of a GPU: 1 without --batch, 0 if it is
// in use already.
func (r *Run) Starts() int {
	switch {
	case r.gpu.device != nil:
		return 0
	case r.pair == nil:
		return 1
	}
	return r.pair.left()
}

// failedOnGPU reports whether a run that ended with err had a GPU, and that failed.
func (r *Run) failedOnGPU(err error) bool { return ExitCode(err) == ExitGPU && r.record.GPU != nil }

// again replaces this process by a new one with additional environment variables, which repeats the work that failed on
// a GPU. After some faults, the driver no longer works in the old process. Outputs must have been removed before. It
// returns only if the restart fails.
func again(reason error, variables ...string) error {
	self, err := os.Executable()
	if err == nil {
		err = syscall.Exec(self, CommandLine(), append(os.Environ(), variables...))
	}
	return fmt.Errorf("%w (starting again: %v)", reason, err)
}
