package registration

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"strata/pkg/filter/mattes"
)

// WriteEuler3D writes a rigid transform as an ITK transform file, in mm: an Euler3DTransform, which maps points of the
// fixed image to the moving one.
func WriteEuler3D(w io.Writer, e *mattes.Euler) error {
	list := func(all ...float64) string {
		var words []string
		for _, v := range all {
			words = append(words, strconv.FormatFloat(v, 'g', -1, 64))
		}
		return strings.Join(words, " ")
	}
	a, t, c := e.Angles, e.Translation, e.Centre
	_, err := fmt.Fprintf(w, "#Insight Transform File V1.0\n#Transform 0\nTransform: Euler3DTransform_double_3_3\nParameters: %s\nFixedParameters: %s\n",
		list(a[0], a[1], a[2], t[0], t[1], t[2]), list(c[0], c[1], c[2], 0))
	return err
}
