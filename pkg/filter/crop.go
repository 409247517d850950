package filter

// Crop returns a copy of ny × nx pixels of a plane of a width, from the pixel at (y, x) on.
func Crop(v []float32, width int, at [2]int, ny, nx int) []float32 {
	out := make([]float32, ny*nx)
	for y := range ny {
		copy(out[y*nx:][:nx], v[(at[0]+y)*width+at[1]:])
	}
	return out
}
