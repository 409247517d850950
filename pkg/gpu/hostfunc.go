package gpu

import (
	"sync"

	"strata/pkg/dynlib"
)

// Host queues a function that runs on the host after earlier work; later work waits for it. It must neither
// use a device nor wait for anything that does, since that may need the driver thread that runs it. It does
// not run after an error of the context.
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
