package filter

// Feather fills dst, a plane of height × width weights (y, x), with weights for blending overlapping tiles:
// the product, over the two axes, of the distance in pixels of a pixel's centre to the nearer border. Divided
// by their sum they form a linear ramp across the overlap of two adjacent tiles of one size. They are never
// zero.
func Feather(dst []float32, height, width int) {
	for y := range height {
		dy := float32(min(y, height-1-y)) + 0.5
		for x := range width {
			dst[y*width+x] = dy * (float32(min(x, width-1-x)) + 0.5)
		}
	}
}
