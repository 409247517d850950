package filelayer

// page is the alignment of direct I/O: file offsets, lengths and memory.
const page = 4096

// firstTask returns how many of n bytes from offset off of a file the next task takes, at most size. For
// tasks of a page or more, tasks end at page boundaries, so that later ones begin there.
func firstTask(off, n, size int64) int64 {
	if n <= size {
		return n
	}
	if end := (off + size) / page * page; end > off {
		return end - off
	}
	return size
}

// aligned returns the part of n bytes from byte off of a file on that are whole pages: first head bytes that
// are not, then direct bytes that are.
func aligned(off, n int64) (head, direct int64) {
	head = min(n, (page-off%page)%page)
	return head, (n - head) / page * page
}
