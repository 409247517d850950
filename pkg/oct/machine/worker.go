package machine

import (
	"context"
	"errors"
	"sync"

	"strata/pkg/gpu"
	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/units"
	"strata/pkg/work"
)

// Block is memory of a worker's machine: of the host, or of a device.
type Block struct {
	host   []byte
	device gpu.Span
}

// From is n bytes of the block from byte at on.
func (b Block) From(at, n int64) Block {
	if b.host != nil {
		return Block{host: b.host[at : at+n]}
	}
	return Block{device: b.device.From(at, n)}
}

// Worker is one of those that do a stage's work, on the host or on a device: the stage says what is done in which
// order, the worker when. On the host all is done at once. On a device it is queued; while the device works on what was
// read, the host reads what comes next, of the same piece of work or of the one behind it, and
// writes what came of the one before.
//
// Errors stick: after one, nothing is done any more, and [Run] returns it.
type Worker interface {
	// Block is the i-th of the plan's blocks. What it holds is the worker's until the piece of work ends.
	Block(i int) Block
	// Stream hands over a part of the input, one of those that Parts of the plan's source names, some planes at a time in
	// increasing z: n planes from plane z on, in C order, that are the taker's until it returns.
	Stream(part oct.Rectangle, take func(z, n int, planes Block))
	// Bring hands the bytes of a block to f, on the host, once they are there: as the piece of work leaves them.
	Bring(b Block, f func(bytes []byte))
	// Write writes a tile of the output, of a shape from start on.
	Write(start, shape []int, tile Block)

	projector
	resizer
	roller
	counter
	finder
}

// Plan says what the workers of a stage take, and what they read and write.
type Plan struct {
	What   string // the work, for messages
	Source *Source
	Blocks []int64           // bytes of each block of a worker
	Back   int64             // bytes that Bring hands over, of a piece of work
	Output *ngff.Writer      // nil: nothing is written
	Look   func(tile []byte) // sees what is written, on the host; nil: there is no need
	Tile   []int             // shape of what is written at a time
	Mem    int64             // bytes of the host's memory that the workers may take, of those that the resources grant
	Most   int               // workers that there is work for; 0: any number
	Resize *Resizing         // what Resize needs; nil: it is not called
	Roll   *Rolling          // what RollTile needs; nil: it is not called

	Percentile *Percentile // that Count is for; nil: it is not called
	Search     *Search     // that FindInterfaces is for; nil: it is not called

	// NonFinite is told of voxels that are not finite; nil: the meter counts them.
	NonFinite func(n int64)

	// Ahead is how many pieces of work are in flight on the host, read or worked on, once Slow reports that they wait for their
	// storage. There are as many as workers at least, and no more than fit in memory.
	Ahead int
	Slow  func() bool

	ahead chan struct{} // closed when reading ahead pays
	turns chan struct{} // a token for each worker that computes; nil: all may

	start  func(ctx context.Context, number int) (running, error) // as begin returns it, once
	starts int
}

// nonFinite notes voxels that are not finite.
func (p *Plan) nonFinite(n int64) {
	if p.NonFinite != nil {
		p.NonFinite(n)
		return
	}
	p.Source.res.Meter.AddNonFinite(n)
}

// Check reports a plan for which there is not enough memory, and what its workers leave of Mem.
func (p *Plan) Check() (left int64, err error) {
	_, workers, err := p.begin()
	if err != nil || p.Source.res.Device != nil {
		return 0, err
	}
	return p.Mem - int64(workers)*p.onHost(), nil
}

// workers is how many workers the memory of the host holds, each taking so many bytes.
func (p *Plan) workers(each int64) (int, error) {
	res := p.Source.res
	if each > p.Mem {
		return 0, res.TooLittle(max(each+res.Mem-p.Mem, int64(float64(each)*float64(res.Mem)/float64(p.Mem))), "%s: %s", p.Source.mosaic.Where, p.What)
	}
	return int(min(int64(max(p.Ahead, res.Workers)), p.Mem/each)), nil
}

// Run lets workers do pieces of work until next has no more. Calls of next follow each other.
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
	if p.Most > 0 {
		workers = min(workers, p.Most)
	}
	g, ctx := work.WithContext(ctx)
	for i := range workers {
		g.Go(func() (err error) {
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
			}
			w.finish()
			return w.failed()
		})
	}
	return g.Wait()
}

// running is a worker as Run sees it.
type running interface {
	Worker
	failed() error
	start()     // begins a piece of work
	next()      // ends it
	finish()    // does what is still to be done
	end() error // gives all back, once nothing runs any more
}

// begin is how the worker of a number begins, and how many there are. One that there is no memory for is nil.
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
		if res := p.Source.res; res.Device != nil {
			res.Decided("%s: %d on the GPU at a time", p.What, workers)
		} else {
			res.Decided("%s: %d at a time, each with %s of the %s for buffers", p.What, workers, units.FormatSize(p.onHost()), units.FormatSize(p.Mem))
		}
	}
	return begin, workers, err
}
