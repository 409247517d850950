//go:build !amd64 || noasm

package filter

func mixVector([]float32, []float32, float64, float32) int { return 0 }

func dots4([]float64, []float32, [][]float32) bool { return false }

func rigidVector([]float32, []float32, *rigidRow) int { return 0 }

func sumsVector([]float32, *[4]float64, *[4]float64) int { return 0 }

func commonVector(_, _ []float32, _, _ *Bracket) int { return 0 }
