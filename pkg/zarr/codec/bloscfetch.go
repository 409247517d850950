package codec

const (
	// bloscFront is the number of bytes fetched first from a container: the header and the offsets of about a thousand
	// blocks.
	bloscFront = 4096
	// bloscLooks limits the work of searching for the ends of blocks: the number of blocks times the number of wanted
	// blocks.
	bloscLooks = 1 << 20
)

// FetchRange fetches the header, the offsets, and the blocks that cover bytes [off, off+n).
func (b *bloscCodec) FetchRange(src []byte, off, n, size int, fetch func(from, to int) error) error {
	return fetchBlosc(src, off, n, size, bloscFront, fetch)
}

// fetchBlosc is FetchRange with front bytes first, at least the header.
func fetchBlosc(src []byte, off, n, size, front int, fetch func(from, to int) error) error {
	front = min(len(src), front)
	if err := fetch(0, front); err != nil {
		return err
	}
	f, err := openBlosc(src, size)
	if err != nil || n == 0 {
		return nil // DecodeRange says what is wrong
	}
	missing := func(from, to int) error { // beyond the front
		if from = max(from, front); from >= to {
			return nil
		}
		return fetch(from, to)
	}
	if f.flags&bloscStored != 0 {
		return missing(bloscHeader+off, bloscHeader+off+n)
	}
	first, last := off/f.blocksize, (off+n-1)/f.blocksize
	if (last-first+1)*f.blocks > bloscLooks {
		return missing(front, len(f.src))
	}
	if err := missing(front, bloscHeader+4*f.blocks); err != nil {
		return err
	}
	from, to := 0, 0 // neighbours in the container are fetched together
	for j := first; j <= last; j++ {
		at, end := f.extent(j)
		if at != to {
			if err := missing(from, to); err != nil {
				return err
			}
			from = at
		}
		to = end
	}
	if err := missing(from, to); err != nil {
		return err
	}
	for j := first; j <= last; j++ {
		if !f.within(j) { // blocks overlap
			return missing(front, len(f.src))
		}
	}
	return nil
}

// extent returns where block j begins in the container, and where the next one there does or the container ends. Blocks
// may lie in any order. An offset outside the container gives an empty range.
func (f *bloscFrame) extent(j int) (at, end int) {
	at, end = signed(f.src[bloscHeader+4*j:]), len(f.src)
	if at < bloscHeader+4*f.blocks || at > end {
		return 0, 0
	}
	for k := range f.blocks {
		if next := signed(f.src[bloscHeader+4*k:]); next > at && next < end {
			end = next
		}
	}
	return at, end
}

// within reports whether the streams of block j end where its extent does, or have lengths that no block can have.
func (f *bloscFrame) within(j int) bool {
	at, end := f.extent(j)
	if end == 0 {
		return true
	}
	from, to := f.block(j)
	for range f.streams(to - from) {
		if end-at < 4 {
			return false
		}
		length := signed(f.src[at:])
		if length < 0 {
			return true
		}
		if length > end-at-4 {
			return false
		}
		at += 4 + length
	}
	return true
}
