package filter

// network is a sequence of comparators, which each put the smaller of two wires' values on the first of them and the
// larger on the second. A wire is a row of values: a network works on all elements of its rows alike, without a
// branch.
type network struct {
	wires int
	pairs [][2]uint32
	order []int // the wires in the order of what they hold in the end
}

// mergeLists makes a network that merges lists of values that are sorted already: of n·length wires each
// list has length neighbours. It is Batcher's odd-even merge (Knuth, The Art of Computer Programming 3, 5.3.4), of the
// two shortest lists at a time.
func mergeLists(n, length int) *network {
	w := &network{wires: n * length}
	lists := make([][]int, n)
	for k := range lists {
		for i := range length {
			lists[k] = append(lists[k], k*length+i)
		}
	}
	for len(lists) > 1 {
		lists = append(lists[2:], w.merge(lists[0], lists[1])) // the longest come last
	}
	w.order = lists[0]
	return w
}

// merge adds comparators that merge two sorted lists of wires, and returns the merged list.
func (w *network) merge(a, b []int) []int {
	switch {
	case len(a) == 0:
		return b
	case len(b) == 0:
		return a
	case len(a) == 1 && len(b) == 1:
		w.pairs = append(w.pairs, [2]uint32{uint32(a[0]), uint32(b[0])})
		return []int{a[0], b[0]}
	}
	v, u := w.merge(alternate(a, 0), alternate(b, 0)), w.merge(alternate(a, 1), alternate(b, 1))
	out := v[:1:1]
	for i, wire := range u {
		if i+1 < len(v) {
			w.pairs = append(w.pairs, [2]uint32{uint32(wire), uint32(v[i+1])})
			out = append(out, wire, v[i+1])
		} else {
			out = append(out, wire)
		}
	}
	return append(out, v[min(len(u)+1, len(v)):]...)
}

// alternate returns every second element of a list, beginning with element from.
func alternate(list []int, from int) (out []int) {
	for i := from; i < len(list); i += 2 {
		out = append(out, list[i])
	}
	return out
}

// prune leaves the comparators out on which none of the wanted places of the order depends, and returns which
// wires do count at the beginning.
func (w *network) prune(wanted []int) (counts []bool) {
	counts = make([]bool, w.wires)
	for _, place := range wanted {
		counts[w.order[place]] = true
	}
	kept := len(w.pairs)
	for i := len(w.pairs) - 1; i >= 0; i-- {
		if p := w.pairs[i]; counts[p[0]] || counts[p[1]] {
			counts[p[0]], counts[p[1]] = true, true
			kept--
			w.pairs[kept] = p
		}
	}
	w.pairs = w.pairs[kept:]
	return counts
}

// compare puts rows of n values through a network; they lie stride apart. Behind the n values a row is spoiled up to
// rowBlock bytes.
func compare[U uint8 | uint16 | uint32 | uint64](w *network, rows []U, stride, n int) {
	if n == 0 || len(w.pairs) == 0 {
		return
	}
	_ = rows[(w.wires-1)*stride+n-1]
	if networkVector(w, rows, stride, n) {
		return
	}
	for _, p := range w.pairs {
		a, b := rows[int(p[0])*stride:][:n], rows[int(p[1])*stride:][:n]
		for i, x := range a {
			y := b[i]
			a[i], b[i] = min(x, y), max(x, y)
		}
	}
}

// rowBlock is the number of bytes of a row that a network processes at a time; its rows are a multiple of it
// apart.
const rowBlock = 64

// rowStride returns the distance of rows of n values.
func rowStride(n, size int) int {
	per := rowBlock / size
	return (n + per - 1) / per * per
}
