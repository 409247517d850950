package golden

import (
	"slices"
	"testing"
)

// The cases of the flat-field are all there.
func TestIllumIsWhole(t *testing.T) {
	var got []string
	for _, c := range Cases(t, "illum") {
		got = append(got, c.Name)
		if c.Arrays["flatfield"].Data == nil {
			t.Errorf("%s has no flat-field", c.Name)
		}
	}
	if want := []string{"basic_auto_per_z", "basic_global", "basic_large_tile", "bp_dark_per_z", "bp_global"}; !slices.Equal(got, want) {
		t.Errorf("cases %v, want %v", got, want)
	}
}
