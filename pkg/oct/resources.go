package oct

import (
	"fmt"

	"strata/pkg/gds"
	"strata/pkg/gpu"
	"strata/pkg/gpu/trial"
	"strata/pkg/meter"
	"strata/pkg/ngff"
	"strata/pkg/ngff/ngffgpu"
	"strata/pkg/zarr"
	"strata/pkg/zarr/zarrgpu"
)

// Resources bound what a stage uses and say where it counts.
type Resources struct {
	Workers  int                  // goroutines that compute, at least 1
	Mem      int64                // ceiling for buffers, bytes
	Device   *gpu.Device          // where the stage computes; nil: on the CPU
	Backend  string               // how chunks come to the device, as the flag --backend; "": auto
	Files    *gds.Pool            // reads and writes files on the device, straight where it can; may be nil
	Ways     *zarrgpu.Counts      // what came to the device how; may be nil
	Trials   *trial.Book          // tries whether the device or the host decodes and encodes faster; nil: the device does what it can
	Meter    *meter.Meter         // may be nil
	Progress func(bytes int64)    // called with input bytes as they are done; may be nil
	Warn     func(message string) // called for what the user should know; may be nil
	Debug    func(message string) // called for what was decided, and why something is slow; may be nil
}

// reading is how arrays are read into the device; what it costs is counted in the meter.
func (r *Resources) reading(count *meter.Meter) zarrgpu.Options {
	return zarrgpu.Options{Backend: r.Backend, Files: r.Files, Meter: count, Counts: r.Ways, Trials: r.Trials, Warn: r.Warn, Debug: r.Debug}
}

// Reader makes the reader of an array into the device. A backend that was asked for and cannot serve the array
// is a [*zarrgpu.BackendError].
func (r *Resources) Reader(a *zarr.Array, count *meter.Meter) (*zarrgpu.Reader, error) {
	o := r.reading(count)
	if a.ScratchBytes(false) > r.Mem/4 { // a worker would hold as much, if the host decoded
		o.Trials = nil
	}
	return zarrgpu.NewReader(a, r.Device, o)
}

func (r *Resources) Done(n int64) {
	if r.Progress != nil {
		r.Progress(n)
	}
}

func (r *Resources) Warnf(format string, args ...any) {
	if r.Warn != nil {
		r.Warn(fmt.Sprintf(format, args...))
	}
}

// Decided calls Debug, if there is one, with what a stage has settled: how many workers there are, and what they hold.
func (r *Resources) Decided(format string, args ...any) {
	if r.Debug != nil {
		r.Debug(fmt.Sprintf(format, args...))
	}
}

// Output writes an image of which tiles lie on the device. With the backend host its
// files are byte for byte those of a run without one.
func (r *Resources) Output(w *ngff.Writer) *ngffgpu.Writer {
	return ngffgpu.NewWriter(w, r.Device, ngffgpu.Options{Files: r.Files, Meter: r.Meter, ByHost: r.Backend == "host", Trials: r.Trials, Debug: r.Debug})
}

// TooLittle returns the error of work whose memory, of so many bytes, is more than there is.
func (r *Resources) TooLittle(need int64, work string, args ...any) error {
	return fmt.Errorf("%s needs %d MiB of buffers, --mem grants %d MiB", fmt.Sprintf(work, args...), need>>20+1, r.Mem>>20)
}
