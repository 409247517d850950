package volume

import (
	"fmt"

	"strata/pkg/ngff"
	"strata/pkg/zarr/store"
)

// Canvas says what a volume is written to, and what is in memory until it is.
type Canvas struct {
	Out    store.Writer
	Image  ngff.ImageSpec
	Levels [][]int // of the pyramid, as of ngff.AnalysisLevels

	// Least returns how many planes must be there at a time, of which so many are written at a time.
	Least func(batch int) int
	Once  int // planes beside those, with which what is blended is read once, and not again for each pass
	Mixed int // weights that Mix is given at most; 0: it is not called
	// RawArea is the pixels of the largest plane that is resampled, and RawDepth how many of them it pays to read at a time; 0: none.
	RawArea  int64
	RawDepth int
	Matched  bool // Medians is called
	Refined  bool // Means is called
}

// area is the pixels of a plane.
func (c *Canvas) area() int { return c.Image.Shape[1] * c.Image.Shape[2] }

// planes are those of the volume.
func (c *Canvas) planes() int { return c.Image.Shape[0] }

// leastRaw is how many raw planes there must be.
func (c *Canvas) leastRaw() int { return min(1, c.RawDepth) }

// fit is how many planes, up to so many, and how many raw ones there is room for, the least of both having it: first those that spare reading
// again, then raw ones, then all others.
func (c *Canvas) fit(least, most, rawDepth int, room int64, size func(planes, raw int) int64) (planes, raw int) {
	planes, raw = least, c.leastRaw()
	for _, grow := range []struct {
		n  *int
		to int
	}{{&planes, min(least+c.Once, most)}, {&raw, rawDepth}, {&planes, most}} {
		for *grow.n < grow.to {
			if *grow.n++; size(planes, raw) > room {
				*grow.n--
				break
			}
		}
	}
	return planes, raw
}

// what says for what so many planes are needed.
func (c *Canvas) what(least int) string {
	return fmt.Sprintf("blending up to %d planes of %d × %d pixels", least, c.Image.Shape[1], c.Image.Shape[2])
}
