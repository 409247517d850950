package registration

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

// Offsets say which plane of a slice lies on which of the slice before it.
type Offsets struct {
	FixedZ, MovingZ int
}

// ReadOffsets reads a file with two whole numbers, fixed_z and moving_z, in one
// or two lines. Lines that begin with # are comments.
func ReadOffsets(r io.Reader, name string) (o Offsets, err error) {
	var got []int
	line := 0
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		line++
		text := strings.TrimPrefix(lines.Text(), "\ufeff")
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
	if err := lines.Err(); err != nil {
		return o, fmt.Errorf("%s:%d: %w", name, line+1, err)
	}
	if len(got) != 2 {
		return o, fmt.Errorf("%s:%d: %d numbers, want two: fixed_z and moving_z", name, max(line, 1), len(got))
	}
	return Offsets{got[0], got[1]}, nil
}
