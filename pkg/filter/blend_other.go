//go:build !amd64 || noasm

package filter

func blendVector[F float32 | float64](acc, v []F, alpha []float32) int { return 0 }

func betweenVector[F float32 | float64](dst, a, b []F, t F) int { return 0 }
