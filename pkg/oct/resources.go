package oct

import (
	"context"
	"fmt"

	"strata/pkg/filelayer"
	"strata/pkg/gpu"
	"strata/pkg/gpu/trial"
	"strata/pkg/meter"
	"strata/pkg/ngff"
	"strata/pkg/ngff/ngffgpu"
	"strata/pkg/work"
	"strata/pkg/zarr"
	"strata/pkg/zarr/zarrgpu"
)

// Resources bounds what a stage uses and receives its reports.
type Resources struct {
	Workers  int                  // goroutines that compute, at least 1
	Mem      int64                // limit of the buffers, in bytes
	Shared   bool                 // Mem is a default: other programs on the machine have it, too, so that not all of it may be there
	Besides  int64                // bytes of --mem that are in use besides Mem, for messages; see [Resources.Less]
	Holds    []int64              // bytes that the stage would keep in memory besides, in this order, if they were at most half of what is left of Mem
	Cores    int                  // processors; 0: as many as Workers, which may be more where they wait for storage
	Device   *gpu.Device          // device that computes; nil: the CPU
	Coming   *Coming              // a device that may join the CPU; nil: none, or Device is there
	Backend  string               // how chunks reach the device, in the syntax of the flag --backend; "": auto
	Files    *filelayer.Pool      // reads and writes files on the device, directly if possible; may be nil
	Ways     *zarrgpu.Counts      // counts how data reached the device; may be nil
	Trials   *trial.Book          // measures whether the device or the host decodes and encodes faster; nil: the device does it if it can
	Meter    *meter.Meter         // may be nil
	Progress func(bytes int64)    // called with numbers of input bytes done; may be nil
	Warn     func(message string) // called with warnings for the user; may be nil
	Debug    func(message string) // called with decisions, and reasons for low speed; may be nil
	// Crewed is called for each part of the stage with the number of workers that fit into memory, the number that
	// would keep the processors busy, and the --mem in bytes at which that many would fit. May be nil.
	Crewed func(workers, useful int, mem int64)

	parts int // of the resources of the run, of which these are one; see [Resources.Part]
}

// FeedShare limits the memory of a pyramid that is fed by another stage: it gets one part in FeedShare of Mem.
const FeedShare = 16

// reading returns the options for reading arrays into the device. Reading is counted in the meter count.
func (r *Resources) reading(count *meter.Meter) zarrgpu.Options {
	return zarrgpu.Options{Backend: r.Backend, Files: r.Files, Meter: count, Counts: r.Ways, Trials: r.Trials, Warn: r.Warn, Debug: r.Debug}
}

// Reader returns a reader of an array into the device. If the requested backend cannot serve the array, the error
// is a [*zarrgpu.BackendError].
func (r *Resources) Reader(a *zarr.Array, count *meter.Meter) (*zarrgpu.Reader, error) {
	o := r.reading(count)
	if a.ScratchBytes(false) > r.Mem/4 { // a worker would hold as much, if the host decoded
		o.Trials = nil
	}
	return zarrgpu.NewReader(a, r.Device, o)
}

// Done reports n bytes of the input as done.
func (r *Resources) Done(n int64) {
	if r.Progress != nil {
		r.Progress(n)
	}
}

// Warnf formats a warning and passes it to Warn, if set.
func (r *Resources) Warnf(format string, args ...any) {
	if r.Warn != nil {
		r.Warn(fmt.Sprintf(format, args...))
	}
}

// Decided passes a stage's decisions to Debug, if set: the number of workers and what they hold.
func (r *Resources) Decided(format string, args ...any) {
	if r.Debug != nil {
		r.Debug(fmt.Sprintf(format, args...))
	}
}

// Output returns a writer for an image whose tiles are on the device. With the backend host, the files are identical to
// those of a run without a device.
func (r *Resources) Output(w *ngff.Writer) *ngffgpu.Writer {
	return ngffgpu.NewWriter(w, r.Device, ngffgpu.Options{Files: r.Files, Meter: r.Meter, ByHost: r.Backend == "host", Trials: r.Trials, Debug: r.Debug})
}

// Each returns a function that shares out n calls of f to the workers, as [work.Each] does, for libraries that start no
// goroutines.
func (r *Resources) Each(ctx context.Context) func(n int, f func(i int)) error {
	return func(n int, f func(i int)) error {
		return work.Each(ctx, r.Workers, n, func(_, i int) error {
			f(i)
			return nil
		})
	}
}

// Less returns the resources without n bytes of memory, which the caller holds while the result is in use.
func (r Resources) Less(n int64) Resources {
	r.Mem, r.Besides = r.Mem-n, r.Besides+n
	return r
}

// TooLittle returns an error that work needs more memory, in bytes, than Mem grants. Both figures include the memory in
// use besides Mem. work and args are formatted like fmt.Sprintf.
func (r *Resources) TooLittle(need int64, work string, args ...any) error {
	return fmt.Errorf("%s needs %d MiB of buffers, --mem grants %d MiB", fmt.Sprintf(work, args...), (need+r.Besides)>>20+1, (r.Mem+r.Besides)>>20)
}
