package zarrtool

import (
	"fmt"
	"strconv"
	"strings"

	"strata/pkg/zarr"
)

// selection is a region in numpy's notation: for each axis a start:stop, or an index, which removes the axis.
type selection struct {
	zarr.Region
	shape []int // without the axes that an index took away
}

// parseRegion parses "0:4,:,10:20". Missing limits are the array's, negative ones count from its end, missing axes
// are selected whole.
func parseRegion(text string, shape []int) (selection, error) {
	s := selection{Region: zarr.Region{Start: make([]int, len(shape)), Shape: append([]int{}, shape...)}}
	var parts []string
	if text != "" {
		parts = strings.Split(text, ",")
	}
	if len(parts) > len(shape) {
		return s, fmt.Errorf("%q has %d axes, the array has %d", text, len(parts), len(shape))
	}
	for d, n := range shape {
		part := ":"
		if d < len(parts) {
			part = strings.TrimSpace(parts[d])
		}
		from, to, isRange := strings.Cut(part, ":")
		lo, err := limit(from, 0, n)
		if err != nil {
			return s, fmt.Errorf("%q: %w", part, err)
		}
		hi := lo + 1
		if isRange {
			if hi, err = limit(to, n, n); err != nil {
				return s, fmt.Errorf("%q: %w", part, err)
			}
		}
		if lo < 0 || hi > n || lo > hi || (!isRange && from == "") {
			return s, fmt.Errorf("%q is outside of 0:%d, the extent of axis %d", part, n, d)
		}
		s.Start[d], s.Region.Shape[d] = lo, hi-lo
		if isRange {
			s.shape = append(s.shape, hi-lo)
		}
	}
	return s, nil
}

func limit(text string, absent, n int) (int, error) {
	if text == "" {
		return absent, nil
	}
	v, err := strconv.Atoi(text)
	if err != nil {
		return 0, fmt.Errorf("%q is not a whole number", text)
	}
	if v < 0 {
		v += n
	}
	return v, nil
}
