package units

import "fmt"

// The sides of voxels that microscopes have, in µm: 1 nm to 1 m. A side beyond them is a unit mistaken or a broken
// number, and sizes computed from it overflow memory and pictures.
const (
	leastVoxel = 1e-3
	mostVoxel  = 1e6
)

// VoxelLimits says which sides are accepted.
const VoxelLimits = "must be from 0.001 to 1000000 µm (1 nm to 1 m)"

// CheckVoxel returns an error for a side of a voxel in µm that no microscope has. Sides that a unit or an average
// has rounded pass at the limits.
func CheckVoxel(um float64) error {
	const rounding = 1e-9
	if um >= leastVoxel*(1-rounding) && um <= mostVoxel*(1+rounding) {
		return nil
	}
	return fmt.Errorf("voxel size %.6g µm: %s", um, VoxelLimits)
}
