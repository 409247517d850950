package filter

// Separable filters an image of ny × nx pixels with the same taps along Y and along X, in float32. A window
// of n = len(taps) samples covers i−n/2 … i+(n−1)/2 of pixel i. Outside, the image is mirrored with its edge
// repeated (scipy's mode "reflect"). No tap or one tap copies. Products are added from first to last (see
// [Combine]), with the same bits on every machine. dst and src do not overlap. It allocates [SeparableBytes].
func Separable(dst, src []float32, ny, nx int, taps []float32) {
	n := len(taps)
	if n <= 1 {
		copy(dst, src[:ny*nx])
		return
	}
	rows, cols := windowSamples(0, ny, ny, n), windowSamples(0, nx, nx, n)
	before, _ := windowReach(n)
	width, band := len(cols), separableBand(ny, nx, n)
	wide, tall := make([]float32, (band+n-1)*width), make([]float32, band*width)
	for y := 0; y < ny; y += band {
		m := min(band, ny-y)
		for e, from := range rows[y : y+m+n-1] {
			line, row := src[from*nx:][:nx], wide[e*width:][:width]
			for c := range before {
				row[c] = line[cols[c]]
			}
			copy(row[before:], line)
			for c := before + nx; c < width; c++ {
				row[c] = line[cols[c]]
			}
		}
		combinePlane(dst[y*nx:], wide, tall, m, nx, taps, taps)
	}
}

// SeparableBytes returns the memory that [Separable] allocates for n taps.
func SeparableBytes(ny, nx, n int) int64 {
	if n <= 1 {
		return 0
	}
	width, height := int64(nx+n-1), int64(ny+n-1)
	return 4*width*int64(2*separableBand(ny, nx, n)+n-1) + 8*(width+height)
}

// separableBand returns how many rows of an image are filtered at a time: as many as a core's cache holds, but
// not fewer than taps, since each band begins with the rows that the taps reach.
func separableBand(ny, nx, n int) int {
	const cache = 512 << 10
	return min(ny, max(n, cache/4/(nx+n-1)))
}

// combinePlane filters a plane along Y, then along X: src has the ny + len(tapsY) − 1 rows of nx + len(tapsX) − 1
// samples that the taps cover. scratch has room for ny rows of src.
func combinePlane[F float32 | float64](dst, src, scratch []F, ny, nx int, tapsY, tapsX []F) {
	width := nx + len(tapsX) - 1
	if !one(tapsY) {
		tall := scratch[:ny*width]
		Combine(tall, src, width, tapsY)
		src = tall
	}
	for y := range ny {
		Combine(dst[y*nx:(y+1)*nx], src[y*width:], 1, tapsX)
	}
}

// one reports whether taps leave their input unchanged.
func one[F float32 | float64](taps []F) bool { return len(taps) == 1 && taps[0] == 1 }

// LocalContrast replaces each pixel of an image of ny × nx pixels by its relative brightness against its
// surroundings: v/m − 1, where m is the mean of the positive numbers among the n × n pixels around it. Pixels
// that are not positive numbers become 0. This removes shading (attenuation with depth, the microscope's
// illumination), and makes noise, which in OCT grows with the brightness, uniform.
func LocalContrast(dst, src []float32, ny, nx, n int) {
	v, mask := make([]float32, ny*nx), make([]float32, ny*nx)
	for i, f := range src[:ny*nx] {
		if f > 0 && f-f == 0 {
			v[i], mask[i] = f, 1
		}
	}
	taps := windowTaps(max(n, 1))
	mean, known := make([]float32, ny*nx), make([]float32, ny*nx)
	Separable(mean, v, ny, nx, taps)
	Separable(known, mask, ny, nx, taps)
	for i := range dst[:ny*nx] {
		dst[i] = 0
		if mask[i] > 0 && mean[i] > 0 {
			dst[i] = v[i]*known[i]/mean[i] - 1
		}
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

// windowReach returns how far a window of n samples extends before and behind its own sample.
func windowReach(n int) (before, after int) {
	if n <= 1 {
		return 0, 0
	}
	return n / 2, n - 1 - n/2
}

// windowTaps returns the weights of the mean over n samples.
func windowTaps(n int) []float32 {
	taps := make([]float32, n)
	for i := range taps {
		taps[i] = 1 / float32(n)
	}
	return taps
}
