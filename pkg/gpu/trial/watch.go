package trial

import (
	"errors"

	"strata/pkg/gpu"
)

// Watch measures the time between two points of a stream, including the host's work between queuing them if
// the stream waits for nothing else. Under the tests' double of a GPU, the device's clock is the double's.
type Watch struct{ from, to *gpu.Event }

// Begin marks the first point. After an error of the stream nothing is measured.
func (w *Watch) Begin(s *gpu.Stream) (err error) {
	for _, e := range []**gpu.Event{&w.from, &w.to} {
		if *e == nil {
			if *e, err = s.Device().TimedEvent(); err != nil {
				return err
			}
		}
	}
	s.Record(w.from)
	return nil
}

// End marks the second point. On a closed watch it does nothing.
func (w *Watch) End(s *gpu.Stream) {
	if w.to != nil {
		s.Record(w.to)
	}
}

// Seconds returns the time between the points. The caller has waited for both.
func (w *Watch) Seconds() (float64, error) {
	if w.to == nil {
		return 0, errors.New("the watch is closed")
	}
	return w.to.Since(w.from)
}

// Close destroys the events. A second Close does nothing.
func (w *Watch) Close() error {
	var errs []error
	for _, e := range []**gpu.Event{&w.from, &w.to} {
		if *e != nil {
			errs = append(errs, (*e).Close())
			*e = nil
		}
	}
	return errors.Join(errs...)
}
