package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"

	"strata/pkg/record"
	"strata/pkg/work"
)

// Device is a GPU that a run uses.
type Device interface {
	Record() (g record.GPU, peakBytes int64) // what the run record says of it
	Close() error
}

// Accelerator takes the GPU into use that the options ask for. Its error is the reason
// why there is none, without the words "no usable GPU", or wrong usage, which ends the run.
type Accelerator func(ctx context.Context, r *Run) (Device, error)

// errNoDriver matches, by errors.Is, the errors that [NoDriver] marks.
var errNoDriver = errors.New("no driver")

type noDriverError struct{ error }

func (e noDriverError) Is(target error) bool { return target == errNoDriver }

// NoDriver marks the error of an [Accelerator] as that of a machine without a driver. Such a machine computes on the CPU as a matter of
// course: only a user who asked for a GPU is warned.
func NoDriver(err error) error { return noDriverError{err} }

// fellBackVariable tells a process that it goes on for one whose GPU failed, and how.
const fellBackVariable = "STRATA_GPU_FAILED"

// Device is the GPU for the run, taken into use by the first call; nil when the CPU
// is to be taken, of which [Run.withoutGPU] warns. A GPU that is required and cannot
// be had is an error (exit code 4).
func (r *Run) Device(ctx context.Context) (Device, error) {
	o := &r.Options
	if r.device != nil || !o.UseGPU {
		return r.device, nil
	}
	d, err := r.accelerator(ctx, r)
	switch {
	case err == nil:
		r.device = d
		return d, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case ExitCode(err) == ExitUsage:
		return nil, err
	}
	return nil, r.withoutGPU(err)
}

// MayChoose reports whether the run is free to compute on a GPU or on the CPU, whichever is faster: a GPU is wanted, and neither
// --require_gpu nor a --backend that only a GPU has asks for one.
func (r *Run) MayChoose() bool {
	o := &r.Options
	return o.UseGPU && !o.RequireGPU && !onGPU(o.Backend)
}

// Chose says where the run computes, and notes it in the record.
func (r *Run) Chose(c record.Choice) {
	r.mu.Lock()
	r.record.Choice = &c
	r.mu.Unlock()
	r.Decided("%s", c.Reason)
}

// Prepare calls f once, if a GPU is wanted, beside what the run does before it asks for the device: loading a
// driver takes up to half a second. The end of the run waits for it.
func (r *Run) Prepare(f func()) {
	if r.prepared == nil && r.Options.UseGPU && r.accelerator != nil {
		r.prepared = work.Async(func() struct{} { f(); return struct{}{} })
	}
}

// withoutGPU goes on with the CPU, unless a GPU is required, by name or by a backend that
// takes one. It notes that in the record. Where the machine has no driver this is a fact, said to who asked for a GPU; else,
// or where one was named, it is a warning.
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

// fellBack notes in the record that the run computes on the CPU, where a GPU was wanted, and why.
func (r *Run) fellBack(reason error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.record.Fallback = &record.Fallback{From: "gpu", To: "cpu", Reason: reason.Error()}
}

// closeDevice gives the GPU back and notes in the record what it did.
func (r *Run) closeDevice() {
	if r.prepared != nil {
		r.prepared()
	}
	switch d, late := r.later.end(); {
	case d != nil:
		r.device = d
	case late:
		r.tooLate()
	}
	if r.device == nil {
		return
	}
	g, peak := r.device.Record()
	for i, t := range g.Trials {
		g.Trials[i].Array = r.OwnNames(t.Array)
	}
	r.UsedGPU(g, peak)
	if err := r.device.Close(); err != nil {
		r.Warn("release the GPU: %v", err)
	}
	r.device = nil
}

// againWithoutGPU starts the process anew to do on the CPU what failed on a GPU; what
// was written so far must be gone. After some faults the driver serves a process no
// more, so that only a new one is safe. It returns only when that fails.
func againWithoutGPU(reason error) error {
	self, err := os.Executable()
	if err == nil {
		err = syscall.Exec(self, CommandLine(), append(os.Environ(), fellBackVariable+"="+Message(oneLine(reason))))
	}
	return fmt.Errorf("%w (restarting on the CPU: %v)", reason, err)
}
