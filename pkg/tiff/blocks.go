package tiff

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
)

// Source reads the file that holds a TIFF. Objects of package store are sources. ReadAt is safe for
// concurrent use.
type Source interface {
	ReadAt(ctx context.Context, p []byte, off int64) (int, error)
	Size() int64
}

// CacheBytes is the limit on directories and offset tables that a [File] keeps in memory.
const CacheBytes = blockBytes * mostBlocks

const (
	blockBytes = 32 << 10
	mostBlocks = 256
)

// blocks reads small parts of a source through a cache. Directories and tables of offsets are
// read a few bytes at a time, in any order; on a server each read would be a request.
type blocks struct {
	src   Source
	mu    sync.Mutex
	held  map[int64]*block // by number
	clock uint64
}

type block struct {
	data []byte
	used uint64
}

// read fills p from offset off of the source.
func (b *blocks) read(ctx context.Context, p []byte, off int64) error {
	if off < 0 || off > b.src.Size() || int64(len(p)) > b.src.Size()-off {
		return fmt.Errorf("bytes %d to %d lie beyond the file's end at %d", off, off+int64(len(p)), b.src.Size())
	}
	if len(p) > blockBytes {
		return readFull(ctx, b.src, p, off)
	}
	for len(p) > 0 {
		data, err := b.block(ctx, off/blockBytes)
		if err != nil {
			return err
		}
		n := copy(p, data[off%blockBytes:])
		p, off = p[n:], off+int64(n)
	}
	return nil
}

// block returns a block, from the cache if it is there.
func (b *blocks) block(ctx context.Context, number int64) ([]byte, error) {
	b.mu.Lock()
	b.clock++
	if k := b.held[number]; k != nil {
		k.used = b.clock
		b.mu.Unlock()
		return k.data, nil
	}
	b.mu.Unlock()
	data := make([]byte, min(blockBytes, b.src.Size()-number*blockBytes))
	if err := readFull(ctx, b.src, data, number*blockBytes); err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.held == nil {
		b.held = map[int64]*block{}
	}
	b.held[number] = &block{data, b.clock}
	if len(b.held) > mostBlocks {
		oldest := number
		for n, k := range b.held {
			if k.used < b.held[oldest].used {
				oldest = n
			}
		}
		delete(b.held, oldest)
	}
	return data, nil
}

func readFull(ctx context.Context, src Source, p []byte, off int64) error {
	n, err := src.ReadAt(ctx, p, off)
	if n == len(p) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		return fmt.Errorf("read %d bytes at %d, got %d: %w", len(p), off, n, io.ErrUnexpectedEOF)
	}
	return err
}
