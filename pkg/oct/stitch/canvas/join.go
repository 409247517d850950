package canvas

import (
	"context"
	"sync"
	"time"

	"strata/pkg/oct"
	"strata/pkg/oct/compute/fusion"
	"strata/pkg/oct/compute/transfer"
	"strata/pkg/work"
)

// sharing is the work of an assembly on the host, which a device joins that is being taken into use. When it is there,
// the host completes the columns that it has in memory, while the device makes all that are left. Tiles on columns of
// both are read twice.
type sharing struct {
	*Assembly
	began time.Time
	all   int // tiles of all passes
	ended context.Context
	end   context.CancelFunc // called when the host has ended

	mu   sync.Mutex
	pass *pass     // at work; nil: none has begun
	left []passBox // after that
	done int       // tiles of the passes before
}

func newSharing(f *Assembly) *sharing {
	s := &sharing{Assembly: f, left: f.cut(f.whole().passBox), began: time.Now()}
	s.all = s.tilesOf(s.left)
	return s
}

// tilesOf returns the number of tiles that passes over the boxes read; a tile counts once per pass.
func (s *sharing) tilesOf(boxes []passBox) (n int) {
	var order, position []int
	for _, b := range boxes {
		order, position = s.order(b.x0, b.x1, order, position)
		n += len(order)
	}
	return n
}

// run assembles the canvas. A device that is available from the start does all of the work.
func (s *sharing) run(ctx context.Context) error {
	g, ctx := work.WithContext(ctx)
	s.ended, s.end = context.WithCancel(ctx)
	defer s.end()
	select {
	case <-s.coming.Known():
		s.end() // it has not begun
		if joined, err := s.join(ctx, s.fusion.Mem); joined || err != nil {
			return err
		}
		return s.host(ctx)
	default:
	}
	g.Go(func() error {
		defer s.end()
		return s.host(ctx)
	})
	g.Go(func() (err error) {
		select {
		case <-s.coming.Known():
			_, err = s.join(ctx, s.fusion.Mem-s.total)
		case <-s.ended.Done():
		}
		return err
	})
	return g.Wait()
}

// host makes one pass after another until none is left.
func (s *sharing) host(ctx context.Context) error {
	if err := s.fusion.Open(s.workers, s.bytes); err != nil {
		return err
	}
	defer s.fusion.Close()
	for {
		p := s.next()
		if p == nil {
			return nil
		}
		if err := s.fill(ctx, p.passBox, true, func(ctx context.Context) error { return p.run(ctx, s.workers) }); err != nil {
			return err
		}
	}
}

// next begins a pass of the host, or returns nil if nothing is left.
func (s *sharing) next() *pass {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pass != nil {
		s.done += len(s.pass.tiles)
	}
	if s.pass = nil; len(s.left) > 0 {
		s.pass = newPass(s.Assembly, s.left[0], map[*fusion.Column]bool{})
		s.left = s.left[1:]
	}
	return s.pass
}

// join lets the device work beside the host, with the memory that the host leaves. If that memory is too small, the
// device works after the host instead. The device does not join if even all of the memory is too small, which causes a
// warning, or if the host is about to finish.
func (s *sharing) join(ctx context.Context, mem int64) (joined bool, err error) {
	res, there := s.Res.WithDevice()
	if !there {
		s.coming = nil
		return false, nil
	}
	s.mu.Lock()
	left := s.forDevice()
	s.mu.Unlock()
	if left == 0 {
		return false, nil
	}
	d, err := s.onDevice(res, mem)
	after := err != nil && mem < s.fusion.Mem
	if after {
		d, err = s.onDevice(res, s.fusion.Mem)
	}
	if err != nil {
		s.coming = nil
		return false, transfer.Unjoined(ctx, &res, err)
	}
	now, later := s.handOver(d)
	if len(now)+len(later) == 0 {
		return false, nil
	}
	if after {
		<-s.ended.Done()
	}
	if err := d.run(ctx, now); err != nil {
		return true, err
	}
	if s.Seams != nil { // whose sums grow in the order of z
		<-s.ended.Done()
	}
	if err := d.run(ctx, later); err != nil {
		return true, err
	}
	<-s.ended.Done()
	for t, n := range d.blank {
		s.blank[t] = max(s.blank[t], n)
	}
	return true, ctx.Err()
}

// onDevice plans an assembly of the same columns on the device of res.
func (s *sharing) onDevice(res oct.Resources, mem int64) (*Assembly, error) {
	c := s.Canvas
	c.Res = res
	d := newAssembly(c, &schedule{unit: s.unit, columns: s.columns, across: s.across}, s.near, mem)
	d.fusion.Output = s.fusion.Output
	return d, d.makePlan()
}

// forDevice returns how many tiles lie on what the host has not begun; 0 if it would have ended before the device has
// done anything. s.mu must be held.
func (s *sharing) forDevice() int {
	left, done := s.tilesOf(s.left), s.done
	if p := s.pass; p != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		n, finished := p.untouched()
		left, done = left+n, done+finished
	}
	if s.coming.Late(done, done+left, time.Since(s.began)) {
		return 0
	}
	return left
}

// handOver stops the host from beginning further columns, and returns the remaining work: now is the rest of the host's
// current pass, later the passes after it. Both are nil if nothing remains for the device.
func (s *sharing) handOver(d *Assembly) (now, later []share) {
	s.mu.Lock()
	defer s.mu.Unlock()
	left := s.forDevice()
	if left == 0 {
		return nil, nil
	}
	d.Res.Decided("%s: %d of %d tiles are left for the GPU", d.fusion.What, left, s.all)
	s.left = nil
	p := s.pass
	if p == nil {
		return []share{s.whole()}, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now = []share{{p.passBox, p.hand()}}
	depth := s.Mosaic.Shape[0]
	for _, box := range []passBox{{p.x0, p.x1, p.z1, depth}, {p.x1, s.across, 0, depth}} {
		if box.x0 < box.x1 && box.z0 < box.z1 {
			later = append(later, share{passBox: box})
		}
	}
	p.tell(d)
	return now, later
}
