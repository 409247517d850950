package surface

import (
	"strata/pkg/oct"
)

// CheckSearch returns an error for invalid filter sizes, naming the flag.
func CheckSearch(sigmaXY, sigmaZ float64) error {
	switch {
	case !(sigmaXY >= 0) || sigmaXY > 1<<20:
		return oct.LayoutErrorf("--sigma_xy is %v, must be from 0 to %d", sigmaXY, 1<<20)
	case !(sigmaZ > 0) || sigmaZ > 1<<20:
		return oct.LayoutErrorf("--sigma_z is %v, must be above 0, at most %d", sigmaZ, 1<<20)
	}
	return nil
}
