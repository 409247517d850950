// Package run carries out what a command does: it has the options that all commands share, logs, handles signals,
// checks inputs, puts outputs in place when all went well, opens the GPU, writes the run record and knows the exit
// code.
package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"
	"sync"

	"github.com/rs/zerolog"

	"strata/pkg/atomic"
	"strata/pkg/cli/flags"
	"strata/pkg/cli/progress"
	"strata/pkg/hiddenname"
	"strata/pkg/meter"
	"strata/pkg/replace"
	"strata/pkg/runrecord"
	"strata/pkg/zarr"
	"strata/pkg/zarr/store"
)

// Do makes the action of a command without code for a GPU. Outputs made with [Run.Output] and its kin are put in place
// when do returns nil, and removed when it returns an error.
func Do(do func(context.Context, *Run) error) flags.Action { return Accelerated(nil, do) }

// Accelerated is [Do] for a command that asks for a GPU by [Run.Device], which gpu opens.
func Accelerated(gpu Accelerator, do func(context.Context, *Run) error) flags.Action {
	return func(l *flags.Line, s flags.Streams) int {
		r := &Run{
			Line: l, Meter: new(meter.Meter), Stdin: s.In, Stdout: s.Out, Stderr: s.Err,
			do: do, accelerator: gpu, gpu: new(opened), warnings: new(warnings),
		}
		return r.main()
	}
}

// Run gives a command its arguments and options, its log and its run record.
type Run struct {
	*flags.Line

	Options Options
	Meter   *meter.Meter   // phases, bytes and non-finite values of the record
	Log     zerolog.Logger // to standard error; its warnings go into the record, each once

	Stdin  io.Reader
	Stdout io.Writer // results that a script reads
	Stderr io.Writer // rather use Log

	do          func(context.Context, *Run) error
	accelerator Accelerator // nil: the command has no code for one
	mem         int64       // --mem
	ahead       sync.Once
	display     *progress.Display
	outputs     *atomic.Group
	buckets     []string         // s3:// addresses of inputs and outputs
	images      []*atomic.Output // outputs that are Zarr hierarchies
	together    []func(context.Context, []runrecord.File) error
	kept        []*hiddenname.Kept // inputs that are missing under their names
	warnings    *warnings
	gpu         *opened  // of the process
	device      Device   // nil: this run uses none
	later       *later   // one that comes beside the work, by [Run.Later]; may be nil
	pair        *pairRun // nil: without --batch
	early       []string // warnings from before there was a log
	atEnd       []func() error
	closing     []func()
	results     []string // of the line that ends the run; see [Run.Conclude]

	mu     sync.Mutex // guards record and idle
	record runrecord.Record
	idle   shortage
}

// Warn logs a warning and notes it in the record; the same text only once.
func (r *Run) Warn(format string, args ...any) {
	r.Log.Warn().Msg(Message(fmt.Sprintf(format, args...)))
}

// warnOnce warns of something that applies to all pairs of a batch. It logs the warning for the first pair, and records
// it for each.
func (r *Run) warnOnce(format string, args ...any) {
	text := Message(fmt.Sprintf(format, args...))
	if r.pair.first(text) {
		r.Warn("%s", text)
	} else {
		r.warnings.note(text)
	}
}

// warnOfNonFinite warns of NaN and infinite voxels unless the stage has done so, with what they do to its result.
func (r *Run) warnOfNonFinite() {
	const are = "are NaN or infinite"
	if n := r.Meter.NonFinite(); n > 0 && !r.warnings.hold(are) {
		r.Warn("%d voxels of the input %s", n, are)
	}
}

// ReadsFrom reserves memory for data that are fetched ahead if the store is remote, and subtracts it from Options.Mem.
// A command calls it for each input before it plans.
func (r *Run) ReadsFrom(st store.Store) {
	far, ok := st.(store.Distant)
	if !ok || far.Requests() == 0 {
		return
	}
	r.Options.Requests = max(r.Options.Requests, far.Requests())
	r.ahead.Do(func() { zarr.SetAhead(r.TakeMem(zarr.AheadBytes)) })
}

// TakeMem subtracts memory for data in transfer to or from a server from Options.Mem. It returns the number of bytes:
// want, but at most an eighth of --mem.
func (r *Run) TakeMem(want int64) int64 {
	n := min(want, r.mem/8)
	r.Options.Mem -= n
	return n
}

// TakenMem returns the bytes of --mem that are reserved for reading the inputs, and thus not available to the stage's
// buffers.
func (r *Run) TakenMem() int64 { return r.mem - r.Options.Mem + r.Options.Reserved }

// InBucket says whether an output is an address s3://bucket/…, which [Run.Remote] is for.
func InBucket(path string) bool { return urlScheme(path) == "s3" }

// Remote adds an output at an s3:// address, which begin starts once it is known
// that it does not collide with an input or another output.
func (r *Run) Remote(path string, begin func() (atomic.Remote, error)) error {
	place := bucketPlace(path)
	for _, other := range r.buckets {
		if o := bucketPlace(other); strings.HasPrefix(place, o) || strings.HasPrefix(o, place) {
			return Usage("output %s is, lies inside or contains %s: choose another place", path, other)
		}
	}
	r.buckets = append(r.buckets, path)
	remote, err := begin()
	if err == nil {
		r.outputs.Remote(path, remote)
	}
	return err
}

// bucketPlace returns the place that an s3:// address names, in the normalised spelling BUCKET/PATH/.
func bucketPlace(address string) string {
	u, err := url.Parse(address)
	if err != nil { // no store will open it
		return address
	}
	place := u.Host + "/"
	if path := strings.Trim(u.Path, "/"); path != "" {
		place += path + "/"
	}
	return place
}

// urlScheme is the scheme of an address, in lower case; "" for a path. A name
// with "://" in it that exists is a path.
func urlScheme(path string) string {
	scheme, _, ok := strings.Cut(path, "://")
	if !ok || strings.Contains(scheme, "/") {
		return ""
	}
	if _, err := os.Lstat(path); err == nil {
		return ""
	}
	return strings.ToLower(scheme)
}

// Output starts an output that is a Zarr hierarchy: write it into the folder
// Work() of the result. It is put in place when the command's Run returns nil.
// An existing one is refused here (exit code 2), or with --overwrite replaced
// at the end, if all that it holds is part of the image there.
func (r *Run) Output(ctx context.Context, path string) (*atomic.Output, error) {
	out, err := r.OutputFolder(path, replace.ByHierarchy(ctx))
	r.images = append(r.images, out)
	return out, err
}

// OutputFolder is [Run.Output] for folders that are not Zarr hierarchies. With --overwrite, it replaces an existing
// folder only if foreign finds nothing in it or, without foreign, if it is empty.
func (r *Run) OutputFolder(path string, foreign atomic.Foreign) (*atomic.Output, error) {
	if urlScheme(path) != "" {
		return nil, Usage("output %s is a URL: this one has to be a local folder", path)
	}
	out, err := r.outputs.Folder(path, foreign)
	return out, placeError(err)
}

// OutputFile is [Run.Output] for a regular file, such as a PNG beside the image. All outputs of a run are put in place
// together. With --overwrite, it replaces an existing file only if that looks like a file of its name, and foreign, if
// given, finds nothing.
func (r *Run) OutputFile(path string, foreign ...atomic.Foreign) (*atomic.Output, error) {
	if urlScheme(path) != "" {
		return nil, Usage("output %s is a URL: this one has to be a local file", path)
	}
	out, err := r.outputs.File(path, replace.Any(append(foreign, replace.LooksLike)...))
	return out, placeError(err)
}

// OptionalFile is [Run.OutputFile] of the file that a flag names; nil, to which
// nothing is written, without the flag.
func (r *Run) OptionalFile(flag string) (*atomic.Output, error) {
	if name := r.String(flag); name != "" {
		return r.OutputFile(name)
	}
	return nil, nil
}

// Change declares a folder that the run changes where it lies, after its inputs. Until
// the run ends, another that wants to is refused (exit code 2).
func (r *Run) Change(path string) error { return placeError(r.outputs.Change(path)) }

// placeError gives errors of the choice of paths their exit code.
func placeError(err error) error {
	if errors.Is(err, atomic.ErrExists) || errors.Is(err, atomic.ErrPlace) || errors.Is(err, atomic.ErrBusy) || errors.Is(err, atomic.ErrNotOurs) {
		return Usage("%w", err)
	}
	return err
}

// OwnNames returns a text with the outputs' own names where it has the hidden ones under which they are written.
func (r *Run) OwnNames(text string) string { return r.outputs.Rename(text) }

// Progress shows a task of so many bytes (0: not known); call Add on the
// result as they are done, and Done at the end.
func (r *Run) Progress(name string, total int64) *progress.Task {
	return r.display.Start(clean(name), total)
}

// Read notes an input in the record. Bytes 0 is measured on disk at the end.
func (r *Run) Read(d runrecord.Dataset) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.record.Inputs = append(r.record.Inputs, d)
}

// Wrote notes an output in the record and in the line that ends the run, under the path where it will lie
// (Path() of an output, not Work()). Bytes 0 is measured on disk at the end.
func (r *Run) Wrote(d runrecord.Dataset) {
	d.Metadata = "" // the output's metadata are completed after this
	r.mu.Lock()
	r.record.Outputs = append(r.record.Outputs, d)
	r.mu.Unlock()
	if layout := d.Layout(); layout != "" {
		r.Decided("%s: %s", d.Path, layout)
	}
}

// Found notes a measurement in the record, under a name that docs/stages/ explains.
func (r *Run) Found(name string, value any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.record.Found == nil {
		r.record.Found = map[string]any{}
	}
	r.record.Found[name] = value
}

// AtEnd has a check run when the command has succeeded, before its outputs are put in place. An error of it
// is the command's.
func (r *Run) AtEnd(check func() error) { r.atEnd = append(r.atEnd, check) }

// AtClose registers a function that releases what reading an input holds. It is called when the run's outputs are in
// place, or removed.
func (r *Run) AtClose(release func()) { r.closing = append(r.closing, release) }

// UsedGPU notes the device in the record.
func (r *Run) UsedGPU(g runrecord.GPU, peakBytes int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.record.GPU, r.record.PeakDeviceBytes = &g, peakBytes
}
