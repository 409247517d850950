// Package oct holds the stages of the pipeline as library calls: each reads
// OME-Zarr images and writes one, streaming, in bounded memory, with as many
// workers as it is given. The numbers do not depend on the workers, the memory
// or the way the input is stored.
//
// A stage says which tiles it needs (package tile), what to do with them
// (package filter) and where the result goes (package ngff). Command lines, logs
// and atomic outputs are the business of the binaries.
package oct

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"strata/pkg/dtype"
	"strata/pkg/gds"
	"strata/pkg/gpu"
	"strata/pkg/meter"
	"strata/pkg/ngff"
	"strata/pkg/zarr"
	"strata/pkg/zarr/zarrgpu"
)

// ErrInput is wrapped by errors that are the fault of the input: trying again
// does not help.
var ErrInput = errors.New("unsuitable input")

// inputError is an error of the input, without the words "unsuitable input".
type inputError struct{ error }

func (e inputError) Is(target error) bool { return target == ErrInput }
func (e inputError) Unwrap() error        { return e.error }

func badInput(format string, args ...any) error { return inputError{fmt.Errorf(format, args...)} }

// ErrLayout is wrapped by errors of a [Layout] that the output cannot have, and of parameters that no output has.
// Errors of stores, files and devices never wrap it.
var ErrLayout = errors.New("unsuitable layout")

type layoutError struct{ error }

func layoutErrorf(format string, args ...any) error { return layoutError{fmt.Errorf(format, args...)} }

func (e layoutError) Is(target error) bool { return target == ErrLayout }
func (e layoutError) Unwrap() error        { return e.error }

// check reports chunks that do not divide the pieces in which the output is
// written, and what else cannot be stored. The messages name the flags.
func (l *Layout) check(piece []int) error {
	bad := layoutErrorf
	for d, n := range l.Chunks {
		if len(l.Chunks) != len(piece) {
			return bad("--chunks has %d axes, the output has %d", len(l.Chunks), len(piece))
		}
		if n < 1 || piece[d]%n != 0 {
			return bad("--chunks %v does not divide the output's tile %v", l.Chunks, piece)
		}
	}
	chunks := l.Chunks
	if chunks == nil {
		chunks = piece
	}
	for d, n := range l.Shard {
		if len(l.Shard) != len(piece) {
			return bad("--shard has %d axes, the output has %d", len(l.Shard), len(piece))
		}
		if n < 1 || n%chunks[d] != 0 {
			return bad("--shard %v is not a multiple of the chunks %v", l.Shard, chunks)
		}
	}
	if l.Shard != nil && l.Format == 2 {
		return bad("--shard needs Zarr format 3: add --zarr_format 3")
	}
	return nil
}

// Resources bound what a stage uses and say where it counts.
type Resources struct {
	Workers  int                  // goroutines that compute, at least 1
	Mem      int64                // ceiling for buffers, bytes
	Device   *gpu.Device          // where the stage computes; nil: on the CPU
	Backend  string               // how chunks come to the device, as the flag --backend; "": auto
	Files    *gds.Pool            // reads and writes files on the device, straight where it can; may be nil
	Ways     *zarrgpu.Counts      // what came to the device how; may be nil
	Meter    *meter.Meter         // may be nil
	Progress func(bytes int64)    // called with input bytes as they are done; may be nil
	Warn     func(message string) // called for what the user should know; may be nil
	Debug    func(message string) // called for what helps to find out why something is slow; may be nil
}

// reading is how arrays are read into the device; what it costs is counted in the meter.
func (r *Resources) reading(count *meter.Meter) zarrgpu.Options {
	return zarrgpu.Options{Backend: r.Backend, Files: r.Files, Meter: count, Counts: r.Ways, Warn: r.Warn, Debug: r.Debug}
}

// reader makes the reader of an array into the device. A backend that was asked for and cannot serve the array
// is a [*zarrgpu.BackendError].
func (r *Resources) reader(a *zarr.Array, count *meter.Meter) (*zarrgpu.Reader, error) {
	return zarrgpu.NewReader(a, r.Device, r.reading(count))
}

func (r *Resources) progress(n int64) {
	if r.Progress != nil {
		r.Progress(n)
	}
}

func (r *Resources) warn(format string, args ...any) {
	if r.Warn != nil {
		r.Warn(fmt.Sprintf(format, args...))
	}
}

// Layout says how a stage stores its output. Zero values mean: as the input,
// or as the stage does by default.
type Layout struct {
	Format int    // Zarr format 2 or 3; 0: the input's
	Codec  string // as the flag --codec; "": blosc-zstd:1
	Chunks []int  // one number per axis of the output
	Shard  []int  // likewise; format 3 only
	Levels int    // pyramid levels below level 0
}

func (l *Layout) codec() string {
	if l.Codec == "" {
		return "blosc-zstd:1"
	}
	return l.Codec
}

// mosaic is a mosaic grid: an image whose chunk grid along Y and X is the grid
// of microscope tiles (stages specification, "Mosaic grid").
type mosaic struct {
	image *ngff.Image
	shape [3]int // (z, y, x)
	chunk [3]int // inner chunk; along Y and X the tile
	dtype dtype.Type
	where string
	frames
	recorded [][2]float64 // position (y, x) of each tile's first voxel, in px, as the stage recorded it; nil: nominal
	absent   []bool       // tiles without a recorded position
}

func openMosaic(in *ngff.Image) (*mosaic, error) {
	a := in.Levels[0].Array
	if n := len(a.Shape()); n != 3 {
		return nil, badInput("%s: mosaic grid has %d axes, want 3 (z, y, x)", a.Location(), n)
	}
	for d, axis := range in.Axes {
		if axis.Name != string("zyx"[d]) {
			return nil, badInput("%s: axis %d of the mosaic grid is %q, want z, y, x in this order", a.Location(), d, axis.Name)
		}
	}
	return newMosaic(in, frames{})
}

// newMosaic is a mosaic grid of the frames of an image.
func newMosaic(in *ngff.Image, f frames) (*mosaic, error) {
	a := in.Levels[0].Array
	m := &mosaic{image: in, dtype: a.DType(), where: a.Location(), frames: f, shape: [3]int{1, 1, 1}, chunk: [3]int{1, 1, 1}}
	shape, lead := a.Shape(), len(f.lengths)
	space := m.shape[3-len(shape)+lead:]
	copy(space, shape[lead:])
	copy(m.chunk[3-len(space):], a.Chunks()[lead:])
	size := float64(m.dtype.Size())
	for _, n := range shape {
		if n == 0 {
			return nil, badInput("%s: mosaic grid is empty: shape %v", m.where, shape)
		}
		if size *= float64(n); size > math.MaxInt64 {
			return nil, badInput("%s: mosaic grid of shape %v has more bytes than can be counted", m.where, shape)
		}
	}
	for d, n := range m.shape {
		m.chunk[d] = min(m.chunk[d], n)
	}
	if err := computable(m.dtype, m.where); err != nil {
		return nil, err
	}
	return m, nil
}

// computable refuses types of elements that no stage computes with.
func computable(t dtype.Type, where string) error {
	if !t.IsNumber() || t == dtype.Float16 {
		return badInput("%s: data type %v: want integers of up to 64 bits, float32 or float64", where, t)
	}
	return nil
}

// tiles is the number of tiles along y and x, partial ones included.
func (m *mosaic) tiles() (ny, nx int) {
	return (m.shape[1] + m.chunk[1] - 1) / m.chunk[1], (m.shape[2] + m.chunk[2] - 1) / m.chunk[2]
}

// format is the Zarr format that the mosaic is stored in.
func (m *mosaic) format() int { return m.image.Levels[0].Array.Format() }

// axes are the mosaic's axes with the unit that their numbers are in, stated or
// guessed.
func (m *mosaic) axes() []ngff.Axis { return imageAxes(m.image) }

// imageAxes are an image's axes with the unit that their numbers are in.
func imageAxes(im *ngff.Image) []ngff.Axis {
	axes := slices.Clone(im.Axes)
	for d := range axes {
		axes[d].Unit = im.Unit[d]
	}
	return axes
}
