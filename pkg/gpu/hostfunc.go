package gpu

import (
	"sync"

	"strata/pkg/dynlib"
)

// Host queues a function: it runs on the host when what is queued before has run, and what
// is queued after waits for it. It must not use a device, nor wait for anything that
// does: the driver's thread that runs it may be what that waits for. After an error of
// the context it does not run.
func (s *Stream) Host(f func()) {
	id := hosted.add(f)
	s.After(func() { hosted.take(id) }) // of what did not run
	s.call("cuLaunchHostFunc", func() result { return driver.LaunchHostFunc(s.handle, hostedAddress(), id) })
}

// hosted are the functions that streams are to run, by numbers that the driver hands
// back.
var hosted = functions{queued: map[uintptr]func(){}}

type functions struct {
	mu     sync.Mutex
	queued map[uintptr]func()
	last   uintptr
}

func (h *functions) add(f func()) uintptr {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.last++
	h.queued[h.last] = f
	return h.last
}

func (h *functions) take(id uintptr) func() {
	h.mu.Lock()
	defer h.mu.Unlock()
	f := h.queued[id]
	delete(h.queued, id)
	return f
}

// hostedAddress is the function of C that the driver calls.
var hostedAddress = sync.OnceValue(func() uintptr {
	return dynlib.Callback(func(id uintptr) {
		if f := hosted.take(id); f != nil {
			f()
		}
	})
})
