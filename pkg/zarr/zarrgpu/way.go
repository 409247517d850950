package zarrgpu

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"strata/pkg/gpu/nvcomp"
	"strata/pkg/zarr/store"
)

// Way names how the regions of an array reach a device.
type Way int

// Ways, named as in the flag --backend.
const (
	Host   Way = iota // read and decoded by the host, in page-locked memory
	Bounce            // read into page-locked memory, where chunks are not encoded
	GDS               // read straight into the device by cuFile
	NVComp            // read into page-locked memory as stored, decoded on the device
	ways
)

var wayNames = [ways]string{"host", "bounce", "gds", "nvcomp"}

func (w Way) String() string { return wayNames[w] }

// Counts adds up what the readers of a run did. Its methods may be called concurrently, and on a nil *Counts.
type Counts struct {
	bytes     [ways]atomic.Int64
	fallbacks atomic.Int64

	mu      sync.Mutex
	reasons []string
}

// Bytes returns how many bytes of elements came by a way.
func (c *Counts) Bytes(w Way) int64 {
	if c == nil {
		return 0
	}
	return c.bytes[w].Load()
}

// Fallbacks returns how many regions the host had to read again.
func (c *Counts) Fallbacks() int64 {
	if c == nil {
		return 0
	}
	return c.fallbacks.Load()
}

// Reasons returns why arrays did not use a better way, each reason once.
func (c *Counts) Reasons() []string {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string(nil), c.reasons...)
}

// because records a reason and reports whether it is new.
func (c *Counts) because(reason string) bool {
	if c == nil {
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.reasons {
		if r == reason {
			return false
		}
	}
	c.reasons = append(c.reasons, reason)
	return true
}

func (c *Counts) add(w Way, n int64) {
	if c != nil {
		c.bytes[w].Add(n)
	}
}

// mostDims is the maximum number of dimensions that the kernels for assembling chunks support.
const mostDims = 5

// choose finds the best way that can serve the array, or the requested one. why is the reason against a
// better one.
func (r *Reader) choose(backend string) (w Way, why string, err error) {
	because := func(reason error) (Way, string, error) {
		return 0, "", &BackendError{Backend: backend, Where: r.array.Location(), Reason: reason.Error(), Err: reason}
	}
	refuse := func(reason string) (Way, string, error) { return because(errors.New(reason)) }
	raw := len(r.array.Codecs()) == 0
	switch backend {
	case "", "auto":
		switch reason := r.unfit(); {
		case reason != nil:
			w, why = Host, reason.Error()
		case raw:
			w = GDS
			if reason := r.straight(false); reason != nil {
				w, why = Bounce, reason.Error()
			}
		default:
			w = NVComp
			if reason := r.decodable(); reason != nil {
				w, why = Host, reason.Error()
			}
		}
		return w, why, nil
	case "host", "direct", "mmap": // the last two: it is the store that reads so
		return Host, "", nil
	case "bounce":
		if !raw {
			return refuse("its chunks are encoded; give auto, host or nvcomp")
		}
		if err := r.array.Elementary(); err != nil {
			return because(err)
		}
		return Bounce, "", nil
	case "gds":
		reason := r.unfit()
		if reason == nil && !raw {
			reason = errors.New("its chunks are encoded; give auto, host or nvcomp")
		}
		if reason == nil {
			reason = r.straight(true)
		}
		if reason != nil {
			return because(reason)
		}
		return GDS, "", nil
	case "nvcomp":
		reason := r.unfit()
		if reason == nil && raw {
			reason = errors.New("its chunks are not encoded; give auto, host, bounce or gds")
		}
		if reason == nil {
			reason = r.decodable()
		}
		if reason != nil {
			return because(reason)
		}
		return NVComp, "", nil
	}
	return refuse("it is none that a GPU has; give auto, host, direct, mmap, bounce, gds or nvcomp")
}

// unfit returns the reason why the device could not assemble the array's chunks, or nil.
func (r *Reader) unfit() error {
	if err := r.array.Elementary(); err != nil {
		return err
	}
	if n := len(r.array.Shape()); n > mostDims {
		return fmt.Errorf("%d dimensions, at most %d are put together on the device", n, mostDims)
	}
	return nil
}

// straight returns the reason why cuFile cannot read the array's files, or nil. Without wait it returns nil while
// cuFile is being initialised.
func (r *Reader) straight(wait bool) error {
	switch st := r.array.Store().(type) {
	case *store.FolderStore:
	case interface{ Local() bool }:
		if !st.Local() {
			return errors.New("the file is on a server")
		}
	default:
		return errors.New("chunks are not files of their own")
	}
	if r.options.Files == nil {
		return errors.New("files are read by the host")
	}
	if !wait && !r.options.Files.Known() {
		return nil
	}
	if straight, reason := r.options.Files.Mode(); !straight {
		return errors.New(reason)
	}
	return nil
}

// waits reports whether regions come by the host's way because cuFile has not been initialised, yet or at all.
func (r *Reader) waits() bool {
	if r.way != GDS || r.cuFile.Load() {
		return false
	}
	if !r.options.Files.Known() {
		return true
	}
	if straight, reason := r.options.Files.Mode(); !straight {
		r.noted.Do(func() { r.because(Bounce, errors.New(reason)) })
		return true
	}
	r.cuFile.Store(true)
	return false
}

// decodable returns the reason why the device cannot decode the array's chunks, or nil.
func (r *Reader) decodable() error {
	if err := r.array.Codecs().InPieces(); err != nil {
		return err
	}
	var err error
	if r.library == nil {
		r.library, err = nvcomp.Open(r.device)
	}
	return err
}
