package filter

// Crop copies ny × nx pixels out of a plane of the given width, beginning at pixel at, (y, x).
func Crop(v []float32, width int, at [2]int, ny, nx int) []float32 {
	out := make([]float32, ny*nx)
	for y := range ny {
		copy(out[y*nx:][:nx], v[(at[0]+y)*width+at[1]:])
	}
	return out
}
