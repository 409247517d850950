package compute

import (
	"context"
	"errors"
	"sync"

	"strata/pkg/gpu"
	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/work"
)

// A Block is host memory or device memory, depending on where its worker runs.
type Block struct {
	host   []byte
	device gpu.Span
}

// From returns n bytes of the block from byte at on.
func (b Block) From(at, n int64) Block {
	if b.host != nil {
		return Block{host: b.host[at : at+n]}
	}
	return Block{device: b.device.From(at, n)}
}

// A Worker does pieces of a stage's work, on the host or on a device. The stage determines the operations and
// their order; the worker determines when they run. On the host they run immediately. On a device they are queued:
// while the device works, the host reads the next data, of the same piece of work or the next one, and writes the
// results of the preceding one.
//
// Errors are sticky: after one, the methods do nothing, and [Run] returns it.
type Worker interface {
	// Block returns the plan's i-th block. Its content lasts until the piece of work ends.
	Block(i int) Block
	// Stream reads a part of the input, one of those that Source.Parts returns, and passes it to take a few planes at
	// a time in increasing z: n planes from plane z on, in C order, valid until take returns.
	Stream(part oct.Rectangle, take func(z, n int, planes Block))
	// Bring calls f on the host with the bytes of a block as the piece of work has computed them by then.
	Bring(b Block, f func(bytes []byte))
	// Write writes a tile of the output with the given start and shape.
	Write(start, shape []int, tile Block)

	projector
	resizer
	roller
	counter
	finder
	changer
}

// A Plan describes what the workers of a stage need, read and write.
type Plan struct {
	What   string // description of the work for messages
	Source *Source
	Blocks []int64           // bytes of each block of a worker
	Back   int64             // bytes that Bring hands over in a piece of work
	Output *ngff.Writer      // nil: nothing is written
	Look   func(tile []byte) // inspects written tiles on the host; nil: not called
	Tile   []int             // shape written at a time
	Mem    int64             // bytes of the resources' host memory that the workers may use
	Shared int64             // bytes of device memory that workers use as well, which others made with [Shared]
	Most   int               // maximum number of useful workers; 0: no limit
	Pieces int               // of work; 0: as many as the mosaic has tiles
	Resize *Resizing         // parameters of Resize; nil: it is not called
	Roll   *Rolling          // parameters of RollTile; nil: it is not called

	Percentile *Percentile // used by Count; nil: it is not called
	Search     *Search     // used by FindInterfaces; nil: it is not called
	Changing   *Changing   // used by Take and Put, set by Change; nil: they are not called

	// NonFinite is called with numbers of non-finite voxels; nil: the meter counts them.
	NonFinite func(n int64)

	// Ahead is the number of pieces of work in flight on the host, being read or computed, once Slow reports that they
	// wait for their storage. The actual number is at least that of the workers, and limited by memory.
	Ahead int
	Slow  func() bool

	ahead chan struct{} // closed when reading ahead pays
	turns chan struct{} // a token for each worker that computes; nil: no limit
	crew  *oct.Crew

	start  func(ctx context.Context, number int) (running, error) // as returned by begin, set once
	starts int
}

// nonFinite reports non-finite voxels.
func (p *Plan) nonFinite(n int64) {
	if p.NonFinite != nil {
		p.NonFinite(n)
		return
	}
	p.Source.res.Meter.AddNonFinite(n)
}

// Check returns an error if there is not enough memory for the plan. On the host it also returns the part of Mem
// that the workers leave.
func (p *Plan) Check() (left int64, err error) {
	_, workers, err := p.begin()
	if err != nil || p.Source.res.Device != nil {
		return 0, err
	}
	return p.Mem - int64(workers)*p.onHost(), nil
}

// workers returns how many workers fit into host memory at the given number of bytes each.
func (p *Plan) workers(each int64) (int, error) {
	res := p.Source.res
	if each > p.Mem {
		return 0, res.TooLittle(max(each+res.Mem-p.Mem, int64(float64(each)*float64(res.Mem)/float64(p.Mem))), "%s: %s", p.Source.mosaic.Where, p.What)
	}
	return int(min(int64(max(p.Ahead, res.Workers)), p.Mem/each)), nil
}

// atMost limits a number of workers to those that are useful.
func (p *Plan) atMost(workers int) int {
	if p.Most > 0 {
		return min(workers, p.Most)
	}
	return workers
}

// Run calls do for all pieces of work that next returns, on the plan's workers. It never calls next concurrently.
// It returns the first error.
func Run[T any](ctx context.Context, p *Plan, next func() (T, bool), do func(w Worker, piece T)) error {
	var mu sync.Mutex
	begun := p.Ahead == 0 // reading ahead
	p.ahead = make(chan struct{})
	another := func() (T, bool) {
		mu.Lock()
		defer mu.Unlock()
		piece, ok := next()
		if !begun && (!ok || p.Slow()) {
			begun = true
			close(p.ahead)
		}
		return piece, ok
	}
	begin, workers, err := p.begin()
	if err != nil {
		return err
	}
	workers = p.atMost(workers)
	gate, ctx := p.crew.Gate(ctx, workers)
	g, ctx := work.WithContext(ctx)
	for i := range workers {
		g.Go(func() (err error) {
			if !gate.Admit(ctx, i) {
				return nil
			}
			defer gate.Leave(i)
			w, err := begin(ctx, i)
			if w == nil || err != nil {
				return err
			}
			defer func() { err = errors.Join(err, w.end()) }() // after a panic, too
			for w.failed() == nil {
				piece, ok := another()
				if !ok {
					break
				}
				w.start()
				do(w, piece)
				w.next()
				gate.Ended(i)
			}
			w.finish()
			return w.failed()
		})
	}
	return g.Wait()
}

// running is a worker as seen by Run.
type running interface {
	Worker
	failed() error
	start()     // begins a piece of work
	next()      // ends it
	finish()    // completes outstanding work
	end() error // releases everything; nothing may be running
}

// begin returns a function that starts the worker of a number, and the number of workers. The function returns nil
// if there is no memory for the worker.
func (p *Plan) begin() (begin func(ctx context.Context, number int) (running, error), workers int, err error) {
	if p.start != nil {
		return p.start, p.starts, nil
	}
	if p.Source.res.Device != nil {
		begin, workers, err = p.beginOnDevice()
	} else {
		begin, workers, err = p.beginOnHost()
	}
	if err == nil {
		p.Resize.begin()
		p.start, p.starts = begin, workers
		p.crew = p.team(workers)
	}
	return begin, workers, err
}

// team plans the workers that begin found room for.
func (p *Plan) team(workers int) *oct.Crew {
	res := p.Source.res
	if res.Device != nil {
		res.Decided("%s: %d on the GPU at a time", p.What, workers)
		return res.OnDevice(workers)
	}
	pieces := p.Pieces
	if pieces == 0 {
		ny, nx := p.Source.mosaic.Tiles()
		pieces = ny * nx
	}
	each := p.onHost()
	all := each * int64(max(res.Busy(pieces), 1))
	workers = p.atMost(workers)
	if p.Search != nil {
		all = all*4/3 + 3 // beside the seams
	}
	return res.Crew(oct.Team{What: p.What, Workers: workers, Each: each, Pieces: pieces, All: res.ForAll(all, p.Mem)})
}

// Each returns a function for [Run] that hands out the elements of a list in their order.
func Each[T any](all []T) func() (T, bool) {
	return func() (next T, ok bool) {
		if len(all) == 0 {
			return next, false
		}
		next, all = all[0], all[1:]
		return next, true
	}
}
