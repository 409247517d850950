package registration

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"strata/pkg/filter/bspline"
)

// ElasticName is the name of the file with the displacements of a pair, beside its rigid transform.
const ElasticName = "transform_elastic.tfm"

const (
	// maxControl is the number of control points, at most, that displacements may have along an axis.
	maxControl = 4096
	// maxDisplacement is the largest displacement of a control point, in pixels.
	maxDisplacement = 1e6
)

// WriteElastic writes displacements of a plane as an ITK transform file with a two-dimensional BSplineTransform of
// order 3, in pixels: all displacements along x, then those along y, to a millionth of a pixel.
func WriteElastic(w io.Writer, e *bspline.Warp) error {
	list := func(precision int, all ...float64) string {
		words := make([]string, len(all))
		for i, v := range all {
			words[i] = strconv.FormatFloat(v, 'f', precision, 64)
		}
		return strings.Join(words, " ")
	}
	_, err := fmt.Fprintf(w, "#Insight Transform File V1.0\n#Transform 0\nTransform: BSplineTransform_double_2_2\nParameters: %s %s\nFixedParameters: %d %d %s 1 0 0 1\n",
		list(6, e.DX...), list(6, e.DY...), e.Control[1], e.Control[0], list(-1, e.Origin[1], e.Origin[0], e.Spacing[1], e.Spacing[0]))
	return err
}

// ReadElastic reads what [WriteElastic] writes, or ITK for a transform of this kind.
func ReadElastic(r io.Reader, name string) (*bspline.Warp, error) {
	f, err := readTFM(r, name)
	if err != nil {
		return nil, err
	}
	bad := func(line int, format string, args ...any) (*bspline.Warp, error) {
		return nil, fmt.Errorf("%s:%d: %w", name, max(line, 1), fmt.Errorf(format, args...))
	}
	if kind := f.types[0]; len(f.types) > 1 || !strings.HasPrefix(kind, "BSplineTransform_") || !strings.HasSuffix(kind, "_2_2") {
		return bad(f.line, "holds %s, want one BSplineTransform_double_2_2", strings.Join(f.types, ", "))
	}
	p := f.fixed
	if len(p) != 10 {
		return bad(f.fixedLine, "%d fixed parameters of a BSplineTransform, want 10", len(p))
	}
	w := &bspline.Warp{}
	for d := range 2 {
		n, origin, spacing := p[1-d], p[3-d], p[5-d]
		switch {
		case !(n >= 4 && n <= maxControl && n == math.Trunc(n)):
			return bad(f.fixedLine, "%v control points along an axis, want 4 to %d", n, maxControl)
		case !(spacing > 1e-6 && spacing < 1e9 && math.Abs(origin) < 1e9):
			return bad(f.fixedLine, "control points from %v on, %v apart: want a positive distance", origin, spacing)
		}
		w.Control[d], w.Origin[d], w.Spacing[d] = int(n), origin, spacing
	}
	if p[6] != 1 || p[7] != 0 || p[8] != 0 || p[9] != 1 {
		return bad(f.fixedLine, "the grid is turned: direction %v, want 1 0 0 1", p[6:])
	}
	n := w.Control[0] * w.Control[1]
	if len(f.parameters) != 2*n {
		return bad(f.parametersLine, "%d parameters for %d × %d control points, want %d", len(f.parameters), w.Control[1], w.Control[0], 2*n)
	}
	for _, v := range f.parameters {
		if math.Abs(v) > maxDisplacement {
			return bad(f.parametersLine, "a displacement of %v pixels", v)
		}
	}
	w.DX, w.DY = f.parameters[:n:n], f.parameters[n:]
	return w, nil
}
