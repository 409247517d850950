//go:build !noasm

package filter

//go:noescape
func rollAVX2(dst, src, t *float32, planes, stride int)

//go:noescape
func rollMaskedAVX2(dst, src, t *float32, planes, stride int, offsets *int32, offset int32)

// interpolateVector rolls eight A-lines side by side; where their whole shifts
// differ, once for each.
func (w *RollWorkspace) interpolateVector(x, planes int) bool {
	if !useAVX2 {
		return false
	}
	const stride = 4 * rollStride
	o := (*[8]int32)(w.offset[x:])
	first := o[0]
	if *o == [8]int32{first, first, first, first, first, first, first, first} {
		rollAVX2(&w.out[x], &w.in[int(first)*rollStride+x], &w.t[x], planes, stride)
		return true
	}
next:
	for i, k := range o {
		for _, done := range o[:i] {
			if done == k {
				continue next
			}
		}
		rollMaskedAVX2(&w.out[x], &w.in[int(k)*rollStride+x], &w.t[x], planes, stride, &o[0], k)
	}
	return true
}
