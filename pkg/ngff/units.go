package ngff

import (
	"fmt"
	"strings"
)

// micrometres per unit: the space units of NGFF (UDUNITS-2 names) that a
// microscope can meet.
var micrometres = map[string]float64{
	"angstrom":   1e-4,
	"attometer":  1e-12,
	"centimeter": 1e4,
	"decimeter":  1e5,
	"femtometer": 1e-9,
	"foot":       304800,
	"hectometer": 1e8,
	"inch":       25400,
	"kilometer":  1e9,
	"meter":      1e6,
	"micrometer": 1,
	"millimeter": 1e3,
	"nanometer":  1e-3,
	"picometer":  1e-6,
	"yard":       914400,
}

// what programs write instead of the names that NGFF asks for.
var unitAliases = map[string]string{
	"m": "meter", "cm": "centimeter", "mm": "millimeter", "nm": "nanometer", "pm": "picometer",
	"um": "micrometer", "\u00b5m": "micrometer", "\u03bcm": "micrometer", "micron": "micrometer",
	"\u00e5": "angstrom", "\u212b": "angstrom", "in": "inch", "ft": "foot",
}

// axisLength says what the scale of an axis means.
type axisLength struct {
	um     float64 // µm of its unit; 0: the axis is no axis of space
	unit   string  // NGFF's name of the unit, stated or guessed
	stated bool
}

// measureAxes returns what the scale of each axis means. It guesses a missing or unknown unit for the whole image,
// following the programs that omit it: millimetres if the first space component is below 1, otherwise micrometres.
func measureAxes(axes []Axis, scale []float64) []axisLength {
	lengths, guess := make([]axisLength, len(axes)), ""
	for d, a := range axes {
		if a.Type != TypeSpace {
			continue
		}
		if guess == "" {
			if guess = "micrometer"; scale[d] < 1 {
				guess = "millimeter"
			}
		}
		l := &lengths[d]
		if l.um, l.unit, l.stated = Micrometres(a.Unit); !l.stated {
			l.um, l.unit = micrometres[guess], guess
		}
	}
	return lengths
}

// describeUnit names a unit that is guessed.
func describeUnit(unit string) string {
	if unit == "" {
		return "missing"
	}
	return fmt.Sprintf("unknown (%.100q)", unit)
}

// Micrometres returns the length of a space unit in micrometres. Beyond the names of NGFF it accepts their
// plurals, the spelling -metre, and symbols such as "um"; canonical is NGFF's name. ok is false for other
// units.
func Micrometres(unit string) (factor float64, canonical string, ok bool) {
	if f, ok := micrometres[unit]; ok {
		return f, unit, true
	}
	u := strings.ToLower(strings.TrimSpace(unit))
	for _, s := range []string{u, strings.TrimSuffix(u, "s")} {
		if c, ok := unitAliases[s]; ok {
			s = c
		}
		if t, ok := strings.CutSuffix(s, "metre"); ok {
			s = t + "meter"
		}
		if f, ok := micrometres[s]; ok {
			return f, s, true
		}
	}
	return 0, "", false
}
