package registration

import (
	"bytes"
	"testing"

	"strata/pkg/filter"
	"strata/pkg/filter/mattes"
)

// What is written is what ITK reads, and what readTransform finds in it.
func TestWriteEuler3D(t *testing.T) {
	e := mattes.Euler{Angles: mattes.Vec{0.01, -0.02, 0.3}, Translation: mattes.Vec{1.5, -2, 1e-7}, Centre: mattes.Vec{4, 5, 6}}
	var b bytes.Buffer
	if err := WriteEuler3D(&b, &e); err != nil {
		t.Fatal(err)
	}
	want := "#Insight Transform File V1.0\n#Transform 0\nTransform: Euler3DTransform_double_3_3\nParameters: 0.01 -0.02 0.3 1.5 -2 1e-07\nFixedParameters: 4 5 6 0\n"
	if b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
	got, warning, err := readTransform(&b, "t.tfm")
	if err != nil || warning == "" || got != (filter.Rigid{Angle: 0.3, TX: 1.5, TY: -2, CX: 4, CY: 5}) {
		t.Errorf("%+v, %q, %v", got, warning, err)
	}
}
