package registration

import (
	"bytes"
	"math"
	"testing"

	"strata/pkg/filter"
)

// What is written is what is read, in the other programs' form.
func TestWritten(t *testing.T) {
	for want, r := range map[string]filter.Rigid{
		"Parameters: 0 0 0.008140638281559937 174.83761825305496 -97.11749195484313 0\nFixedParameters: 40 36 0 0\n": {
			Angle: 0.008140638281559937, TX: 174.83761825305496, TY: -97.11749195484313, CX: 40, CY: 36,
		},
		"Parameters: 0 0 0 0 1e-07 0\nFixedParameters: 20.5 0 0 0\n": {Angle: math.Copysign(0, -1), TY: 1e-7, CX: 20.5},
	} {
		var b bytes.Buffer
		if err := WriteTransform(&b, r); err != nil {
			t.Fatal(err)
		}
		if got := b.String(); got != magic+"Transform: Euler3DTransform_double_3_3\n"+want {
			t.Errorf("%s, want %s", got, want)
		}
		again, warning, err := readTransform(&b, "t.tfm")
		if err != nil || warning != "" || again != r {
			t.Errorf("%+v, %q, %v, want %+v", again, warning, err, r)
		}
	}
	var b bytes.Buffer
	if err := (Offsets{13, 1}).Write(&b); err != nil || b.String() != "13\n1\n" {
		t.Errorf("%q, %v", b.String(), err)
	}
}
