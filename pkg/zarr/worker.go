package zarr

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"

	"strata/pkg/mem"
	"strata/pkg/zarr/codec"
)

// worker holds what one goroutine needs to decode and encode: codec state, buffers and small vectors. Workers
// are kept between calls, so that steady reading or writing allocates nothing per chunk.
type worker struct {
	codec codec.Scratch
	key   []byte

	// buffers are handed out in order and taken back by mark and release: the
	// same step of the next chunk gets the same buffer.
	buffers [][]byte
	nbuf    int
	ints    []int
	nint    int

	scatter scatter
	emit    func(off int, piece []byte) error // scatter.emit, bound once
	planes  *planes                           // who takes what is read; nil: it goes to its place
	turns   *turns                            // to decode, where goroutines are more than workers
	front   bool                              // what lies behind the box may be written to
}

// bigBuffer is the size from which buffers lie outside the Go heap.
const bigBuffer = 64 << 10

// buffer returns n bytes with undefined content, valid until release of an earlier mark. The system provides
// the memory only as it is written.
func (w *worker) buffer(n int) ([]byte, error) {
	if w.nbuf == len(w.buffers) {
		w.buffers = append(w.buffers, nil)
	}
	b := w.buffers[w.nbuf]
	if cap(b) < n {
		freeBuffer(b)
		w.buffers[w.nbuf] = nil
		if n < bigBuffer {
			b = make([]byte, n, max(n, 1024))
		} else {
			var err error
			if b, err = mem.Alloc(n + n/8); err != nil { // sizes of stored chunks differ
				return nil, fmt.Errorf("scratch memory: %w", err)
			}
		}
		w.buffers[w.nbuf] = b
	}
	w.nbuf++
	return b[:n], nil
}

func freeBuffer(b []byte) {
	if cap(b) >= bigBuffer {
		mem.Free(b)
	}
}

// vector returns n ints with undefined content, valid until release of an earlier mark.
func (w *worker) vector(n int) []int {
	if w.nint+n > len(w.ints) {
		w.ints = make([]int, max(2*len(w.ints), w.nint+n, 256)) // vectors handed out keep the old one
	}
	v := w.ints[w.nint : w.nint+n : w.nint+n]
	w.nint += n
	return v
}

// mark is a point to which release frees buffers and vectors.
type mark struct{ nbuf, nint int }

func (w *worker) mark() mark     { return mark{w.nbuf, w.nint} }
func (w *worker) release(m mark) { w.nbuf, w.nint = m.nbuf, m.nint }

// held returns the number of bytes in the worker's buffers.
func (w *worker) held() (n int64) {
	for _, b := range w.buffers {
		n += int64(cap(b))
	}
	return n
}

// The idle workers of the process. What they hold together is bounded: a
// program that has read chunks of 64 MiB does not keep that forever.
var idle struct {
	sync.Mutex
	list []*worker
	held int64
}

const (
	idlePerCPU = 2
	idleBytes  = 256 << 20
)

// mostIdle returns the maximum number of bytes that idle workers may hold.
func mostIdle() int64 {
	if n := mem.Limit(); n > 0 {
		return min(n/4, idleBytes)
	}
	return idleBytes
}

// takeWorker returns a worker, reusing an idle one if possible.
func takeWorker() *worker {
	idle.Lock()
	defer idle.Unlock()
	if n := len(idle.list); n > 0 {
		w := idle.list[n-1]
		idle.list = idle.list[:n-1]
		idle.held -= w.held()
		return w
	}
	w := &worker{}
	w.emit = w.scatter.emit
	return w
}

// giveBack returns a worker for reuse.
func (w *worker) giveBack() {
	w.release(mark{})
	w.scatter, w.planes, w.turns, w.front = scatter{}, nil, nil, false
	w.codec.Bind(context.Background())
	idle.Lock()
	n := w.held()
	keep := len(idle.list) < idlePerCPU*runtime.GOMAXPROCS(0) && idle.held+n <= mostIdle()
	if keep {
		idle.list = append(idle.list, w)
		idle.held += n
	}
	idle.Unlock()
	if !keep {
		for _, b := range w.buffers {
			freeBuffer(b)
		}
	}
}

// turns holds the workers that decode for all fetching goroutines. A goroutine borrows one at a time.
type turns struct {
	free chan *worker
	populating
}

func newTurns(n int) *turns {
	t := &turns{free: make(chan *worker, n)}
	for range n {
		t.free <- takeWorker()
	}
	return t
}

// end waits until no goroutine uses the workers and returns them to the pool. It returns panics only.
func (t *turns) end() error {
	err := t.populating.end()
	for range cap(t.free) {
		(<-t.free).giveBack()
	}
	return err
}

// arrived records that the stored bytes of a chunk have arrived.
func (t *turns) arrived() {
	if t != nil {
		t.over.Store(true)
	}
}

// What passes between the codecs of a chain is as large as a chunk: it lies in two of the worker's buffers in turn, not
// on the heap.

// decodeChain fills dst with the decoded form of src.
func (w *worker) decodeChain(chain codec.Chain, dst, src []byte) error {
	if len(chain) > 1 {
		m := w.mark()
		defer w.release(m)
		var err error
		if src, err = w.decodeTail(chain, 1, len(dst), src); err != nil {
			return err
		}
	}
	return asFormatError(chain[:min(1, len(chain))].Decode(&w.codec, dst, src))
}

// decodeTail undoes the codecs of a chain from the last down to number first. It returns the input of that
// codec, which may lie in src and has at most as many bytes as it would have if the chain began with most bytes.
func (w *worker) decodeTail(chain codec.Chain, first, most int, src []byte) ([]byte, error) {
	var buffers [2][]byte
	for i, n := range chain.Between(first, most) {
		if n == 0 {
			continue
		}
		var err error
		if buffers[i], err = w.buffer(n); err != nil {
			return nil, err
		}
	}
	src, err := chain.DecodeTail(&w.codec, first, most, buffers, src)
	return src, asFormatError(err)
}

// encodeChain returns the encoded form of src, in the worker's buffers.
func (w *worker) encodeChain(chain codec.Chain, src []byte) ([]byte, error) {
	for len(chain) > 0 {
		step := chain.Step()
		_, hi := step.EncodedSize(len(src))
		buf, err := w.buffer(hi)
		if err != nil {
			return nil, err
		}
		if src, err = step.Encode(&w.codec, buf, src); err != nil {
			return nil, &FormatError{Err: err}
		}
		chain = chain[len(step):]
	}
	return src, nil
}

// asFormatError turns an error of stored bytes into a [*FormatError]. It passes nil through, and errors with
// another cause.
func asFormatError(err error) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	var fe *FormatError
	if errors.As(err, &fe) {
		return err
	}
	return &FormatError{Err: err}
}
