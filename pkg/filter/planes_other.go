//go:build !amd64 || noasm

package filter

func windowVector([]float32, float32, float32) (done int, below int64)               { return 0, 0 }
func addClippedVector([]float64, []float32, int, int, float32) (done int, bad int64) { return 0, 0 }
func dividePlaneVector([]float32, float64) (done int)                                { return 0 }
func scalePlaneVector([]float32, float32, float32, float32) (done int)               { return 0 }
func addFourVector(*[4]float64, []float32) (done int)                                { return 0 }
