package codec

import "context"

// Scratch holds the working memory of codecs: decoders with their tables, and buffers for blocks. It grows as
// needed and is reused, so that a worker with its own Scratch allocates nothing per chunk. The zero value is
// ready and small; each codec allocates its part on first use (up to about 1 MiB; with Blosc twice the block
// length; for encoding Zstandard see package enzstd). Only one goroutine at a time may use it.
type Scratch struct {
	zstd  zstdScratch
	blosc bloscScratch
	lz4   lz4Scratch
	gzip  gzipScratch

	chain [2][]byte // between the codecs of a chain, alternately
	ctx   context.Context
}

// Bind makes later decoding with s, and encoding of chunks above 8 MiB, stop with the error of ctx when ctx ends;
// codecs check every few MiB. Where a chunk can be divided, hands of ctx help ([work.Split]), with a Scratch of their
// own. What is encoded does not depend on them.
func (s *Scratch) Bind(ctx context.Context) { s.ctx = ctx }

// context returns the context given to Bind.
func (s *Scratch) context() context.Context {
	if s == nil || s.ctx == nil {
		return context.Background()
	}
	return s.ctx
}

// pieceElements is the number of elements after which a filter checks whether it has been cancelled.
const pieceElements = 1 << 20

// pause returns an error when decoding is to end. Loops over elements call it for each
// and get an answer every pieceElements.
func (s *Scratch) pause(i int) error {
	if i%pieceElements != 0 {
		return nil
	}
	return s.context().Err()
}

// NewScratch returns an empty Scratch.
func NewScratch() *Scratch { return new(Scratch) }

// between returns a buffer of n bytes for what passes between codec i-1 and codec i of a chain; the buffer of
// i-1 stays valid.
func (s *Scratch) between(i, n int) []byte {
	return room(&s.chain[i&1], n)
}

// keep remembers a buffer of between that an encoder may have grown.
func (s *Scratch) keep(i int, b []byte) { s.chain[i&1] = b[:cap(b)] }

// room returns the first n bytes of *b, which is made larger when it must be.
func room(b *[]byte, n int) []byte {
	if cap(*b) < n {
		*b = make([]byte, n)
	}
	return (*b)[:n]
}
