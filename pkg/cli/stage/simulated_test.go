package stage

import (
	"math"
	"sync"
	"testing"
	"time"

	"strata/pkg/gpu/cost"
	"strata/pkg/meter"
	"strata/pkg/oct"
	"strata/pkg/oct/compute"
	"strata/pkg/oct/compute/transfer"
)

// A part of a machine is shared by those who use it at the same time: each gets as much of it as the others, and at
// most what one can use.
type part struct {
	rate, most float64 // a second, of all and of one

	mu    sync.Mutex
	users map[*user]struct{}
	at    time.Time
	timer *time.Timer
}

type user struct {
	left float64
	done chan struct{}
}

func newPart(rate, most float64) *part {
	return &part{rate: rate, most: most, users: map[*user]struct{}{}}
}

// use takes n of the part, which lasts.
func (p *part) use(n float64) {
	if n <= 0 {
		return
	}
	u := &user{n, make(chan struct{})}
	p.mu.Lock()
	p.pass()
	p.users[u] = struct{}{}
	p.wake()
	p.mu.Unlock()
	<-u.done
}

func (p *part) each() float64 { return min(p.most, p.rate/float64(len(p.users))) }

// pass gives the users what they have got since they or others came.
func (p *part) pass() {
	took := time.Since(p.at).Seconds()
	p.at = time.Now()
	if len(p.users) == 0 {
		return
	}
	each := p.each()
	for u := range p.users {
		if u.left -= took * each; u.left <= each*1e-9 {
			close(u.done)
			delete(p.users, u)
		}
	}
}

// wake lets time pass until the next user is done.
func (p *part) wake() {
	if p.timer != nil {
		p.timer.Stop()
	}
	if len(p.users) == 0 {
		return
	}
	least := math.Inf(1)
	for u := range p.users {
		least = min(least, u.left)
	}
	p.timer = time.AfterFunc(time.Duration(math.Ceil(least/p.each()*1e9)), func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.pass()
		p.wake()
	})
}

// simulated is a machine in the virtual time of package synctest. The work of a job on it is that of the model, and
// each part takes its time for it.
type simulated struct {
	pieces              int
	cores               int
	storage, processors *part
	up, down, device    *part
	host, beside        cost.Load // on the host alone, and with a device
	computes            float64   // seconds of the device
	init, start         float64   // seconds until the driver says which GPUs there are, and until one of them works
	workers             int       // on it
	image               *oct.Mosaic
	chosen              bool
	joined              int // pieces that the device has done
}

// wrong says by how much the model is wrong: how many times as long as it says the host takes for its part of the work,
// a device for its own, and the host for what a device leaves to it.
type wrong struct{ host, device, beside float64 }

// on returns a machine for a job of so many pieces, for which that choice has been made.
func on(image *oct.Mosaic, q question, choice cost.Choice, d *cost.Device, pieces int, by wrong) *simulated {
	f, cores, one := q.host.Figures, float64(q.host.Cores), *d
	one.Workers = 1
	s := &simulated{
		image: image, pieces: pieces, cores: q.host.Cores, workers: d.Workers, chosen: choice.GPU, host: choice.Host.Load, beside: choice.Best.Load,
		init: d.Figures["init"] * by.device, start: choice.Best.Load.Start * by.device, computes: choice.Best.Load.Device(*d) * by.device,
		storage: newPart(f["storage"], math.Inf(1)), processors: newPart((1+(cores-1)*f["scaling"])/by.host, 1/by.host),
		up: newPart(d.Figures["up"]/by.device, math.Inf(1)), down: newPart(d.Figures["down"]/by.device, math.Inf(1)),
		device: newPart(1, choice.Best.Load.Device(*d)/choice.Best.Load.Device(one)),
	}
	s.beside.Host *= by.beside
	return s
}

// without returns the seconds of the work on the host alone, and with those when a device joins as the program has it.
func (s *simulated) without(t *testing.T) float64 { return s.run(t, nil) }

func (s *simulated) with(t *testing.T, coming *oct.Coming) float64 {
	var start sync.WaitGroup
	defer start.Wait() // the end of a run does not wait for it
	start.Go(func() {
		time.Sleep(duration(s.init))
		if !s.chosen {
			coming.Settle(nil)
			return
		}
		time.Sleep(duration(s.start - s.init))
		coming.Settle(func(*oct.Resources) {})
	})
	return s.run(t, coming)
}

func (s *simulated) run(t *testing.T, coming *oct.Coming) float64 {
	n := float64(s.pieces)
	host := compute.Side[int, compute.Worker]{Plan: s.plan(t, s.cores, coming), Do: func(compute.Worker, int) {
		s.storage.use(float64(s.host.Storage) / n)
		s.processors.use(s.host.Host / n)
	}}
	left := s.pieces
	next := func() (int, bool) { left--; return left, left >= 0 }
	begun := time.Now()
	if err := compute.RunBoth(t.Context(), host, s.pieces, next, func(oct.Resources, int64) (compute.Side[int, compute.Worker], error) {
		return s.aside(t), nil
	}); err != nil {
		t.Fatal(err)
	}
	return time.Since(begun).Seconds()
}

// aside is the device's side. A worker fetches a piece when it has a slot for it, and goes on to the next while the
// device does it after those before, and the host writes it after those before.
func (s *simulated) aside(t *testing.T) compute.Side[int, compute.Worker] {
	type worker struct {
		slots          chan struct{}
		device, writes *sync.WaitGroup // of the piece before
	}
	n := float64(s.pieces)
	var mu sync.Mutex
	workers := map[compute.Worker]*worker{}
	var all sync.WaitGroup
	return compute.Side[int, compute.Worker]{
		Plan: s.plan(t, s.workers, nil),
		Do: func(id compute.Worker, _ int) {
			mu.Lock()
			w := workers[id]
			if w == nil {
				w = &worker{make(chan struct{}, transfer.MostSlots), new(sync.WaitGroup), new(sync.WaitGroup)}
				workers[id] = w
			}
			s.joined++
			mu.Unlock()
			w.slots <- struct{}{}
			s.storage.use(float64(s.beside.Storage) / n)
			s.processors.use(s.beside.Host / n / 2)
			before, device, writes := *w, new(sync.WaitGroup), new(sync.WaitGroup)
			w.device, w.writes = device, writes
			device.Add(1)
			writes.Add(1)
			all.Go(func() {
				before.device.Wait()
				s.up.use(float64(s.beside.Up) / n)
				s.device.use(s.computes / n)
				s.down.use(float64(s.beside.Down) / n)
				<-w.slots
				device.Done()
				before.writes.Wait()
				s.processors.use(s.beside.Host / n / 2)
				writes.Done()
			})
		},
		Free: all.Wait,
	}
}

// seen returns the seconds of the processors that the pieces take which a device has in hand at first, those by which
// it is seen what they cost, and those that it has then.
func (s *simulated) seen() float64 {
	pieces := min(3*s.workers*(transfer.MostSlots+1), s.pieces)
	return float64(pieces) / float64(s.pieces) * s.beside.Host / s.processors.rate
}

// plan is one of workers that have no memory to speak of.
func (s *simulated) plan(t *testing.T, workers int, coming *oct.Coming) *compute.Plan {
	res := &oct.Resources{Workers: workers, Mem: 1 << 30, Coming: coming}
	source, err := compute.NewSource(s.image, res, new(meter.Meter))
	if err != nil {
		t.Fatal(err)
	}
	return &compute.Plan{What: "work", Source: source, Memory: compute.Memory{Host: res.Mem}, Pieces: s.pieces}
}
