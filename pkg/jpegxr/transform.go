package jpegxr

// The functions here work on 16 values of each of n blocks in the order of lifting: value p of block x at p*stride+x.

// inverse undoes the transform of blocks.
func inverse(v []int32, stride, n int) {
	from := 0
	if haveAVX2 && n >= 8 {
		from = n &^ 7
		_ = v[15*stride+from-1]
		inverseAVX2(&v[0], stride, from)
	}
	if from < n {
		inverseScalar(v[from:], stride, n-from)
	}
}

// overlap filters windows of 4×4 values where four blocks meet. Each block gives a quarter: four values, a stride
// apart, the innermost first.
func overlap(topLeft, topRight, bottomLeft, bottomRight []int32, stride, n int) {
	from := 0
	if haveAVX2 && n >= 8 {
		from = n &^ 7
		last := 3*stride + from - 1
		_, _, _, _ = topLeft[last], topRight[last], bottomLeft[last], bottomRight[last]
		overlapAVX2(&topLeft[0], &topRight[0], &bottomLeft[0], &bottomRight[0], stride, from)
	}
	if from < n {
		overlapScalar(topLeft[from:], topRight[from:], bottomLeft[from:], bottomRight[from:], stride, n-from)
	}
}

func inverseScalar(v []int32, stride, n int) {
	var p [16][]int32
	for i := range p {
		p[i] = v[i*stride:][:n]
	}
	for x := range n {
		var b [16]int32
		for i := range b {
			b[i] = p[i][x]
		}
		inverseBlock(&b)
		for i := range b {
			p[i][x] = b[i]
		}
	}
}

func inverseBlock(b *[16]int32) {
	b[0], b[1], b[2], b[3] = hadamardUp(b[0], b[1], b[2], b[3])
	b[5], b[4], b[7], b[6] = odd(b[5], b[4], b[7], b[6])
	b[10], b[8], b[11], b[9] = odd(b[10], b[8], b[11], b[9])
	b[15], b[14], b[13], b[12] = oddOdd(b[15], b[14], b[13], b[12])
	for i := range 4 {
		b[i], b[4+i], b[8+i], b[12+i] = hadamard(b[i], b[4+i], b[8+i], b[12+i])
	}
}

// butterflies makes the second-level transform of subsampled chroma: of four values, a stride apart.
func butterflies(v []int32, stride int) {
	v[0], v[stride], v[2*stride], v[3*stride] = hadamard(v[0], v[stride], v[2*stride], v[3*stride])
}

func hadamard(a, b, c, d int32) (int32, int32, int32, int32) {
	a += d
	b -= c
	t := (a - b) >> 1
	c, d = t-d, t-c
	return a - d, b + c, c, d
}

func hadamardUp(a, b, c, d int32) (int32, int32, int32, int32) {
	a += d
	b -= c
	t := (a - b + 1) >> 1
	c, d = t-d, t-c
	return a - d, b + c, c, d
}

// odd undoes a rotation by π/8 in one direction.
func odd(a, b, c, d int32) (int32, int32, int32, int32) {
	b += d
	a -= c
	d -= b >> 1
	c += (a + 1) >> 1
	a -= (3*b + 4) >> 3
	b += (3*a + 4) >> 3
	c -= (3*d + 4) >> 3
	d += (3*c + 4) >> 3
	c -= (b + 1) >> 1
	d = (a+1)>>1 - d
	return a - d, b + c, c, d
}

// oddOdd undoes rotations in both directions.
func oddOdd(a, b, c, d int32) (int32, int32, int32, int32) {
	d += a
	c -= b
	t, u := d>>1, c>>1
	a -= t
	b += u
	a -= (3*b + 3) >> 3
	b += (3*a + 3) >> 2
	a -= (3*b + 4) >> 3
	b -= u
	a += t
	c += b
	d -= a
	return a, -b, -c, d
}

func overlapScalar(topLeft, topRight, bottomLeft, bottomRight []int32, stride, n int) {
	for x := range n {
		var a, b, c, d [4]int32
		for i := range 4 {
			a[i], b[i], c[i], d[i] = topLeft[i*stride+x], topRight[i*stride+x], bottomLeft[i*stride+x], bottomRight[i*stride+x]
		}
		overlapWindow(&a, &b, &c, &d)
		for i := range 4 {
			topLeft[i*stride+x], topRight[i*stride+x], bottomLeft[i*stride+x], bottomRight[i*stride+x] = a[i], b[i], c[i], d[i]
		}
	}
}

func overlapWindow(a, b, c, d *[4]int32) {
	for i := range 4 {
		a[i], b[i], c[i], d[i] = hadamard(a[i], b[i], c[i], d[i])
	}
	d[0], d[1], d[2], d[3] = oddOddFilter(d[0], d[1], d[2], d[3])
	c[2], c[3] = rotate(c[2], c[3])
	c[0], c[1] = rotate(c[0], c[1])
	b[1], b[3] = rotate(b[1], b[3])
	b[0], b[2] = rotate(b[0], b[2])
	for i := range 4 {
		a[i], d[i] = scale(a[i], d[i])
		a[i], b[i], c[i], d[i] = unfold(a[i], b[i], c[i], d[i])
	}
}

func oddOddFilter(a, b, c, d int32) (int32, int32, int32, int32) {
	d += a
	c -= b
	t, u := d>>1, c>>1
	a -= t
	b += u
	a -= (3*b + 6) >> 3
	b += (3*a + 2) >> 2
	a -= (3*b + 4) >> 3
	b -= u
	a += t
	c += b
	d -= a
	return a, b, c, d
}

func rotate(a, b int32) (int32, int32) {
	a -= (b + 1) >> 1
	b += (a + 1) >> 1
	return a, b
}

func scale(a, d int32) (int32, int32) {
	a += d
	d = a>>1 - d
	a += (3 * d) >> 3
	d += (3 * a) >> 4
	d += a >> 7
	d -= a >> 10
	return a, d
}

func unfold(a, b, c, d int32) (int32, int32, int32, int32) {
	b -= c
	a += (3*d + 4) >> 3
	d -= b >> 1
	c = (a-b)>>1 - c
	return a - c, b + d, d, c
}

// overlap4 filters a line of four values, two on each side of an edge between blocks, or the four in a corner of the
// image.
func overlap4(a, b, c, d int32) (int32, int32, int32, int32) {
	a += d
	b += c
	d -= (a + 1) >> 1
	c -= (b + 1) >> 1
	a, d = scaleLine(a, d)
	b, c = scaleLine(b, c)
	c, d = rotate(c, d)
	d += (a + 1) >> 1
	c += (b + 1) >> 1
	return a - d, b - c, c, d
}

func scaleLine(a, d int32) (int32, int32) {
	a, d = scale(a, d)
	a += (3*d + 4) >> 3
	d -= a >> 1
	a += d
	return a, -d
}

// overlap2 filters two DCs of subsampled chroma.
func overlap2(a, b int32) (int32, int32) {
	b += (a + 2) >> 2
	a += (b + 1) >> 1
	a += b >> 5
	a += b >> 9
	a += b >> 13
	b += (a + 2) >> 2
	return a, b
}

// overlap2x2 filters four DCs of subsampled chroma where four macroblocks meet.
func overlap2x2(pa, pb, pc, pd *int32) {
	a, b, c, d := *pa, *pb, *pc, *pd
	a += d
	b += c
	d -= (a + 1) >> 1
	c -= (b + 1) >> 1
	a, b = overlap2(a, b)
	d += (a + 1) >> 1
	c += (b + 1) >> 1
	*pa, *pb, *pc, *pd = a-d, b-c, c, d
}
