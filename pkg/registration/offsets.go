package registration

import (
	"fmt"
	"io"
	"strings"

	"strata/pkg/smallfile"
)

// Offsets gives a plane of a slice and the plane of the slice before it that it lies on.
type Offsets struct {
	FixedZ, MovingZ int
}

// ReadOffsets reads a file with two whole numbers, fixed_z and moving_z, on one or two lines. Lines that
// begin with # are comments.
func ReadOffsets(r io.Reader, name string) (o Offsets, err error) {
	b, err := smallfile.Lines(r, name)
	if err != nil {
		return o, err
	}
	var got []int
	line := 0
	for text := range strings.Lines(strings.TrimPrefix(string(b), "\ufeff")) {
		line++
		if strings.HasPrefix(strings.TrimSpace(text), "#") {
			continue
		}
		for _, w := range strings.Fields(text) {
			v, ok := wholeNumber(w)
			if !ok {
				return o, fmt.Errorf("%s:%d: %.40q, want the number of a plane", name, line, w)
			}
			got = append(got, v)
		}
	}
	if len(got) != 2 {
		return o, fmt.Errorf("%s:%d: %d numbers, want two: fixed_z and moving_z", name, max(line, 1), len(got))
	}
	return Offsets{got[0], got[1]}, nil
}

// Write writes the offsets on two lines, in the form that [ReadOffsets] reads.
func (o Offsets) Write(w io.Writer) error {
	_, err := fmt.Fprintf(w, "%d\n%d\n", o.FixedZ, o.MovingZ)
	return err
}
