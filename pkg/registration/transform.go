package registration

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"strata/pkg/filter"
	"strata/pkg/smallfile"
)

// readTransform reads an ITK transform file (.tfm, "Insight Transform File V1.0") as a rigid transform in the
// plane, in pixels: an Euler2DTransform as it is, and of an Euler3DTransform the angle about z, the
// translation along x and y and the centre. Other types give the identity. The warning names what was
// ignored, or is "".
func readTransform(r io.Reader, name string) (t filter.Rigid, warning string, err error) {
	f, err := readTFM(r, name)
	if err != nil {
		return t, "", err
	}
	kind, _, _ := strings.Cut(f.types[0], "_")
	if len(f.types) > 1 {
		return t, fmt.Sprintf("%s: %d transforms in one file: no transform applied, only single Euler transforms are", name, len(f.types)), nil
	}
	need := func(parameters, fixed int) error {
		switch {
		case len(f.parameters) != parameters:
			return fmt.Errorf("%s:%d: %d parameters of an %s, want %d", name, max(f.parametersLine, 1), len(f.parameters), kind, parameters)
		case len(f.fixed) < fixed:
			return fmt.Errorf("%s:%d: %d fixed parameters of an %s, want at least %d", name, max(f.fixedLine, 1), len(f.fixed), kind, fixed)
		}
		return nil
	}
	switch kind {
	case "Euler3DTransform":
		if err := need(6, 3); err != nil {
			return t, "", err
		}
		p := f.parameters
		t = filter.Rigid{Angle: p[2], TX: p[3], TY: p[4], CX: f.fixed[0], CY: f.fixed[1]}
		if p[0] != 0 || p[1] != 0 || p[5] != 0 {
			warning = fmt.Sprintf("%s: rotation about x and y and translation along z are not applied", name)
		}
	case "Euler2DTransform":
		if err := need(3, 2); err != nil {
			return t, "", err
		}
		t = filter.Rigid{Angle: f.parameters[0], TX: f.parameters[1], TY: f.parameters[2], CX: f.fixed[0], CY: f.fixed[1]}
	default:
		warning = fmt.Sprintf("%s: %s is no Euler transform: no transform applied", name, kind)
	}
	if math.Abs(t.Angle) > fullTurn {
		return t, "", fmt.Errorf("%s:%d: an angle of %g radians: want at most a full turn", name, f.parametersLine, t.Angle)
	}
	return t, warning, nil
}

// fullTurn is the largest angle of a transform, in radians.
const fullTurn = 2 * math.Pi

// tfm is an ITK transform file as it is read.
type tfm struct {
	line                      int
	magic                     bool
	types                     []string
	parameters, fixed         []float64
	parametersLine, fixedLine int
}

// readTFM reads an ITK transform file with one transform or more.
func readTFM(r io.Reader, name string) (*tfm, error) {
	b, err := smallfile.Lines(r, name)
	if err != nil {
		return nil, err
	}
	f := &tfm{}
	for line := range strings.Lines(strings.TrimPrefix(string(b), "\ufeff")) {
		f.line++
		if err := f.read(strings.TrimSpace(line)); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, f.line, err)
		}
	}
	if !f.magic {
		return nil, fmt.Errorf("%s:%d: no line \"#Insight Transform File V1.0\": not an ITK transform file", name, max(f.line, 1))
	}
	if len(f.types) == 0 {
		return nil, fmt.Errorf("%s:%d: no line \"Transform: …\"", name, max(f.line, 1))
	}
	return f, nil
}

func (f *tfm) read(line string) (err error) {
	if !f.magic {
		if line == "" {
			return nil
		}
		if !strings.HasPrefix(line, "#Insight Transform File") {
			return fmt.Errorf("%.40q where \"#Insight Transform File V1.0\" should be: not an ITK transform file", line)
		}
		f.magic = true
		return nil
	}
	if line == "" || strings.HasPrefix(line, "#") {
		return nil
	}
	key, value, ok := strings.Cut(line, ":")
	if !ok {
		return fmt.Errorf("%.40q, want \"Transform:\", \"Parameters:\" or \"FixedParameters:\"", line)
	}
	switch strings.TrimSpace(key) {
	case "Transform":
		f.types = append(f.types, strings.TrimSpace(value))
	case "Parameters":
		f.parametersLine = f.line
		f.parameters, err = numbers(value)
	case "FixedParameters":
		f.fixedLine = f.line
		f.fixed, err = numbers(value)
	}
	return err
}

// numbers reads numbers between spaces.
func numbers(s string) (out []float64, err error) {
	for i, w := range strings.Fields(s) {
		v, err := number(w)
		if err != nil {
			return nil, fmt.Errorf("number %d is %w", i+1, err)
		}
		out = append(out, v)
	}
	return out, nil
}

// WriteTransform writes a rigid transform of the plane as an ITK transform file with an Euler3DTransform, the form that
// [readTransform] reads and that other programs write for slices.
func WriteTransform(w io.Writer, t filter.Rigid) error {
	n := func(v float64) string { return strconv.FormatFloat(v+0, 'g', -1, 64) } // +0: no minus zero
	_, err := fmt.Fprintf(w, "#Insight Transform File V1.0\n#Transform 0\nTransform: Euler3DTransform_double_3_3\nParameters: 0 0 %s %s %s 0\nFixedParameters: %s %s 0 0\n",
		n(t.Angle), n(t.TX), n(t.TY), n(t.CX), n(t.CY))
	return err
}
