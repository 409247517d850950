package gds

import (
	"errors"
	"fmt"
	"sync"

	"strata/pkg/gds/settings"
	"strata/pkg/gpu"
	"strata/pkg/gpu/cufile"
)

// Available tells whether cuFile moves data straight between files and a device, and by
// what mechanism, or why it does not. cuFile is taken into use for the answer, which may take
// half a second, and given back. Whether it takes a certain file depends on the file system as well.
func Available(d *gpu.Device) (straight bool, reason string) {
	c, err := cufile.Open(d)
	if err != nil {
		return false, err.Error()
	}
	how := c.How()
	if err := c.Close(); err != nil {
		return false, err.Error()
	}
	return true, how
}

// straight is a pool's use of cuFile.
type straight struct {
	starting sync.Once
	driver   *cufile.Driver // nil: not in use
	reason   string         // why, or how it moves data
	closing  sync.Once
	refuses  sync.Map // file systems (fileSystem) whose files it does not take → error
	warning  sync.Once
}

// Mode tells whether cuFile moves data straight between files and the pool's device, and
// by what mechanism, or why it does not. The first call, or the first read or write that is large
// enough, takes cuFile into use.
func (p *Pool) Mode() (straight bool, reason string) {
	s := &p.straight
	s.starting.Do(func() {
		switch {
		case p.device == nil:
			s.reason = "there is no device"
		case p.settings.Compat == settings.On:
			s.reason = "compat_mode is on"
		default:
			d, err := cufile.Open(p.device)
			if err != nil {
				s.reason = err.Error()
				return
			}
			s.driver, s.reason = d, d.How()
		}
	})
	return s.driver != nil, s.reason
}

// close gives cuFile back.
func (s *straight) close() (err error) {
	s.starting.Do(func() { s.reason = errClosedPool.Error() })
	s.closing.Do(func() {
		if s.driver != nil {
			err = s.driver.Close()
		}
	})
	return err
}

// straight tells whether a task is left to cuFile.
func (w *worker) straight(t task) bool {
	if t.small {
		return false
	}
	ok, _ := w.pool.Mode()
	return ok
}

// register makes the file known to cuFile, once. What it says of a file system is
// remembered: chunks are many files.
func (f *File) register() error {
	f.registering.Do(func() {
		s := &f.pool.straight
		where, known := fileSystem(f.file)
		if why, ok := s.refuses.Load(where); known && ok {
			f.refused = why.(error)
			return
		}
		if f.openDirect(); f.direct == nil {
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

// moveStraight moves a part of a task by cuFile and returns where it ended: at the end, at
// the end of the file, or where cuFile failed, and why. An error ends the task.
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
	for done = from; done < to; {
		if err := t.ctx.Err(); err != nil {
			return done, nil, err
		}
		n := int64(0)
		part, off := t.dev.From(t.from+done, to-done), t.off+t.from+done
		w.stream.Queue(func(uintptr) error {
			if t.write {
				n, why = t.file.handle.Write(nil, part, off)
			} else {
				n, why = t.file.handle.Read(nil, part, off)
			}
			return nil // what fails here is done again
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

// fellBack counts a task that cuFile did not do to its end, and warns of the first.
func (p *Pool) fellBack(t task, why error) {
	t.file.count(fallbacks, 1)
	p.device.CountFallback()
	p.straight.warning.Do(func() {
		verb := "read"
		if t.write {
			verb = "written"
		}
		if why == nil {
			why = errors.New("cuFile moved less than there is")
		}
		p.warn(fmt.Sprintf("%s is %s by way of the host, not straight: %v", t.file.path, verb, why))
	})
}
