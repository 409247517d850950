package golden

import (
	"maps"
	"slices"
	"testing"
)

// The cases of what corrects and normalises slices are all there, with their arrays.
func TestCorrectionsAreWhole(t *testing.T) {
	arrays := map[string][]string{"attenuation": {"mask", "mean_per_plane", "volume_planes"}, "normalize": {"background", "max_per_plane", "mean_per_plane", "volume_planes"},
		"psf": {"agarose_mask", "beam_truth", "psf", "psf_reference", "volume_planes"}}
	for stage, want := range map[string][]string{
		"attenuation": {"li_default", "li_strong_k0", "liu_k2", "vermeer_k2"},
		"normalize":   {"f32", "specular_norim", "u16_p99"},
		"psf":         {"default", "gaussian_hot", "no_rim"},
	} {
		var got []string
		for _, c := range Cases(t, stage) {
			got = append(got, c.Name)
			if names := slices.Sorted(maps.Keys(c.Arrays)); !slices.Equal(names, arrays[stage]) {
				t.Errorf("%s/%s: arrays %v, want %v", stage, c.Name, names, arrays[stage])
			}
			Image(t, c)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: cases %v, want %v", stage, got, want)
		}
	}
}
