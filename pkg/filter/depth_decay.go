package filter

import "math"

// DepthDecay estimates how much each voxel of an A-line attenuates the light, from how its signal falls with depth
// (Vermeer et al., Biomedical Optics Express 5, 2014; Liu et al., Journal of Biomedical Optics 24, 2019; Li et al.,
// 2020). It computes in float64 by math.Log and its kin, whose last digit may differ between processors.
type DepthDecay struct {
	// Tail adds the signal below an A-line's last voxel, which the slope of its deepest voxels predicts.
	Tail bool
	// Slope of the logarithm of the signal per plane, for all A-lines in place of their own; 0: their own.
	Slope float64
	// Floor is the noise that is subtracted from the signal, not below 0; Least is the signal above which a voxel
	// counts: the mask of an A-line ends at the deepest one. Without Noise neither is used.
	Noise        bool
	Floor, Least float32
}

// DecayPlanes is the number of planes from which the slope at the end of an A-line is taken.
const DecayPlanes = 20

// Line computes the optical depth of each voxel of an A-line, twice its attenuation times its length, from its signal
// f: the logarithm of 1 + f/(sum of f below). Sums run over the voxels of mask, whose end the noise may bring forward;
// f and mask are changed. Beyond the first and the last voxel of the mask the result is 0. NaN in f counts as 0.
func (d *DepthDecay) Line(x, f []float32, mask []bool) {
	n := len(f)
	for i, v := range f {
		if v != v {
			f[i] = 0
		}
	}
	if d.Noise {
		last := n - 1
		for last >= 0 && !(f[last] > d.Least) {
			last--
		}
		if last >= 0 {
			clear(mask[last+1:])
		}
		for i, v := range f {
			f[i] = max(v-d.Floor, 0)
		}
	}
	below := 0.0
	if d.Tail {
		end, slope := f[max(0, n-DecayPlanes):], d.Slope
		if slope == 0 {
			slope = Decay(end)
		}
		if rise := math.Expm1(max(-slope, 0)); rise > 1e-12 {
			below = float64(end[len(end)-1]) / rise
		}
	}
	first := 0
	for first < n && !mask[first] {
		first++
	}
	clear(x)
	inside := false
	for z := n - 1; z >= first && first < n; z-- {
		if inside = inside || mask[z]; !inside {
			continue
		}
		v := float64(f[z])
		if below > 0 {
			x[z] = float32(math.Log1p(v / below))
		}
		if mask[z] {
			below += v
		}
	}
}

// Decay returns the slope of the logarithm of at most [DecayPlanes] values of a signal, per plane.
func Decay[F float32 | float64](f []F) float64 {
	largest := 0.0
	for _, v := range f {
		largest = max(largest, float64(v))
	}
	least := max(1e-12*largest, 1e-30)
	mean, n := 0.0, float64(len(f))
	var logs [DecayPlanes]float64
	for i, v := range f {
		logs[i] = math.Log(max(float64(v), least))
		mean += logs[i]
	}
	mean /= n
	slope, squares := 0.0, 0.0
	for i := range f {
		t := float64(i) - (n-1)/2
		slope += float64(t * (logs[i] - mean))
		squares += float64(t * t)
	}
	if squares > 0 {
		slope /= squares
	}
	return slope
}
