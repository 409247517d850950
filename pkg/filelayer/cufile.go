package filelayer

import (
	"cmp"
	"errors"
	"fmt"
	"sync"
	"time"

	"strata/pkg/gpu"
	"strata/pkg/gpu/cufile"
	"strata/pkg/settings"
	"strata/pkg/work"
)

// Available reports whether cuFile moves data straight between files and a device, and by what mechanism, or
// why not. Unless the system shows that it cannot, it initialises cuFile for the answer, which may take a second, and
// shuts it down again. Support for a given file depends on the file system as well.
func Available(d *gpu.Device) (straight bool, reason string) {
	c, err := cufileFor(d, false)
	if err != nil {
		return false, err.Error()
	}
	how := c.How()
	if err := c.Close(); err != nil {
		return false, err.Error()
	}
	return true, how
}

// cufileFor takes cuFile into use where it may be of use; where it is demanded, whatever the system is.
func cufileFor(d *gpu.Device, demanded bool) (*cufile.Driver, error) {
	if !demanded {
		if err := impossible(d); err != nil {
			return nil, err
		}
	}
	return cufile.Open(d)
}

// impossible returns the reason why cuFile is not asked, or nil.
func impossible(d *gpu.Device) error {
	return cmp.Or(cufile.WSL(), cufile.Possible(int(d.Info.Driver)))
}

// straight is a pool's use of cuFile.
type straight struct {
	demanded bool
	begun    sync.Once
	known    chan struct{} // closed once starting is done
	starting sync.Once
	beside   sync.WaitGroup // of Known
	driver   *cufile.Driver // nil: not in use
	buffers  *registry      // nil: the same
	reason   string         // why, or how it moves data
	closing  sync.Once
	refuses  sync.Map // file systems (fileSystem) whose files it does not take → error
	warning  sync.Once
}

// Demand makes the pool ask cuFile even on a system that shows no sign of direct transfers. It must be called before
// the pool is used.
func (p *Pool) Demand() { p.straight.demanded = true }

// soon bounds how long [Pool.Known] waits for cuFile when it begins to initialise it.
const soon = 20 * time.Millisecond

// Known starts the initialisation of cuFile in the background, and reports whether [Pool.Mode] would now answer without
// waiting for it.
func (p *Pool) Known() bool {
	s := &p.straight
	s.begun.Do(func() {
		if p.device == nil || p.settings.Compat == settings.On || !s.demanded && p.settings.Compat != settings.Off && impossible(p.device) != nil {
			p.Mode() // which asks nobody
			return
		}
		work.Go(&s.beside, func() error { p.Mode(); return nil }, func(error) {})
		select {
		case <-s.known:
		case <-time.After(soon):
		}
	})
	select {
	case <-s.known:
		return true
	default:
		return false
	}
}

// Mode reports whether cuFile moves data straight between files and the pool's device, and by what mechanism,
// or why not. The first call, or the first read or write that is large enough, initialises cuFile, unless
// [Pool.Known] has.
func (p *Pool) Mode() (straight bool, reason string) {
	s := &p.straight
	s.starting.Do(func() {
		defer close(s.known)
		switch {
		case p.device == nil:
			s.reason = "there is no device"
		case p.settings.Compat == settings.On:
			s.reason = "compat_mode is on"
		default:
			d, err := cufileFor(p.device, s.demanded || p.settings.Compat == settings.Off)
			if err != nil {
				s.reason = err.Error()
				return
			}
			s.driver, s.reason, s.buffers = d, d.How(), registryOf(p.device, d)
		}
	})
	return s.driver != nil, s.reason
}

// close gives cuFile back.
func (s *straight) close() (err error) {
	s.starting.Do(func() {
		s.reason = errClosedPool.Error()
		close(s.known)
	})
	s.beside.Wait()
	s.closing.Do(func() {
		if s.driver != nil {
			err = errors.Join(s.buffers.close(), s.driver.Close())
		}
	})
	return err
}

// straight reports whether a task is left to cuFile.
func (w *worker) straight(t task) bool {
	if t.small || t.file.source != nil {
		return false
	}
	ok, _ := w.pool.Mode()
	return ok
}

// Mode reports whether cuFile moves this file's data straight, and by what mechanism, or why not: the result
// of [Pool.Mode], and whether cuFile accepts the file.
func (f *File) Mode() (straight bool, reason string) {
	ok, how := f.pool.Mode()
	if !ok {
		return false, how
	}
	if f.source != nil {
		return false, errSource.Error()
	}
	if err := f.enter(); err != nil {
		return false, err.Error()
	}
	defer f.requests.Done()
	if why := f.register(); why != nil {
		return false, why.Error()
	}
	return true, how
}

// register registers the file with cuFile once. It remembers refusals by file system, since chunks are many
// files.
func (f *File) register() error {
	f.registering.Do(func() {
		s := &f.pool.straight
		where, known := fileSystem(f.file)
		if why, ok := s.refuses.Load(where); known && ok {
			f.refused = why.(error)
			return
		}
		if why := drives(f.file, f.pool.settings.Compat); why != nil {
			f.refused = why
		} else if f.openDirect(); f.direct == nil {
			f.refused = errors.New("the file system has no direct I/O")
		} else {
			f.handle, f.refused = s.driver.Register(f.direct.Fd())
		}
		var e *cufile.Error
		if known && f.refused != nil && (f.direct == nil || errors.As(f.refused, &e) && e.OfFileSystem()) {
			s.refuses.Store(where, f.refused)
		}
	})
	return f.refused
}

// moveStraight moves a part of a task by cuFile and returns where it ended: at its end, at the end of the
// file, or where cuFile failed, with the reason. An error ends the task.
func (w *worker) moveStraight(t task, from, to int64) (done int64, why, err error) {
	if from == to {
		return to, nil, nil
	}
	if why := t.file.register(); why != nil {
		if w.pool.settings.Compat == settings.Off {
			return from, nil, fmt.Errorf("compat_mode is off, but cuFile does not take the file: %w", why)
		}
		return from, why, nil
	}
	if err := w.queue(); err != nil {
		return from, nil, err
	}
	a := t.memory()
	for done = from; done < to; {
		if err := t.ctx.Err(); err != nil {
			return done, nil, err
		}
		n := int64(0)
		part, off := t.dev.From(t.from+done, to-done), t.off+t.from+done
		a.move(func(b *cufile.Buffer) {
			w.stream.Queue(func(uintptr) error {
				if t.write {
					n, why = t.file.handle.Write(b, part, off)
				} else {
					n, why = t.file.handle.Read(b, part, off)
				}
				return nil // what fails here is done again
			})
		})
		if n == 0 || why != nil {
			return done, why, nil
		}
		done += n
		if t.write {
			t.file.count(writtenStraight, n)
			w.pool.device.CountStraight(0, n)
		} else {
			t.file.count(readStraight, n)
			w.pool.device.CountStraight(n, 0)
		}
	}
	return done, nil, nil
}

// memory returns the allocation of the request's memory, as cuFile knows it.
func (r *request) memory() *allocation {
	p := r.file.pool
	r.using.Do(func() { r.uses = p.straight.buffers.use(r.dev, p.settings.Register) })
	return r.uses
}

// fellBack counts a transfer that cuFile did not complete, and warns of the first one.
func (p *Pool) fellBack(f *File, write bool, why error) {
	f.count(fallbacks, 1)
	p.device.CountFallback()
	p.straight.warning.Do(func() {
		verb := "read"
		if write {
			verb = "written"
		}
		if why == nil {
			why = errors.New("cuFile moved less than there is")
		}
		p.warn(fmt.Sprintf("%s is %s through host memory, not directly: %v", f.path, verb, why))
	})
}
