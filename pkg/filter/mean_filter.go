package filter

// MeanFilter is the mean over an n × n window of an image of ny × nx pixels, in
// float32, first along Y, then along X. The window of pixel i covers i−n/2 …
// i+(n−1)/2 along each axis; outside the image lie the pixels of the edge mirrored, the
// edge itself repeated (scipy.ndimage.uniform_filter, mode "reflect"). n ≤ 1
// copies. (Stages specification, focal, step 1.)
//
// Each pixel of a window is multiplied by 1/n and the products are added from
// the first to the last (see [Combine]): the same bits on every machine,
// whatever part of an image is filtered.
func MeanFilter(dst, src []float32, ny, nx, n int) {
	if n <= 1 {
		copy(dst, src[:ny*nx])
		return
	}
	rows, cols := windowSamples(0, ny, ny, n), windowSamples(0, nx, nx, n)
	width, taps := len(cols), windowTaps(n)
	wide := make([]float32, len(rows)*width)
	for e, y := range rows {
		for c, x := range cols {
			wide[e*width+c] = src[y*nx+x]
		}
	}
	tall := make([]float32, ny*width)
	Combine(tall, wide, width, taps)
	for y := range ny {
		Combine(dst[y*nx:(y+1)*nx], tall[y*width:], 1, taps)
	}
}

// windowSamples lists the samples that the windows of outputs from…to−1 of an axis of
// length samples cover, the mirrored ones included: output i is made of
// entries i−from … i−from+n−1.
func windowSamples(from, to, length, n int) []int {
	before, after := windowReach(n)
	out := make([]int, 0, to-from+n-1)
	for i := from - before; i < to+after; i++ {
		out = append(out, Reflect.Index(i, length))
	}
	return out
}

// windowReach is how far a window of n samples reaches before and after its own.
func windowReach(n int) (before, after int) {
	if n <= 1 {
		return 0, 0
	}
	return n / 2, n - 1 - n/2
}

// windowTaps are the weights of the mean over n samples.
func windowTaps(n int) []float32 {
	taps := make([]float32, n)
	for i := range taps {
		taps[i] = 1 / float32(n)
	}
	return taps
}
