package volume

import (
	"fmt"

	"strata/pkg/ngff"
	"strata/pkg/zarr/store"
)

// Canvas describes the volume to be written and the planes that are in memory until then.
type Canvas struct {
	Out    store.Writer
	Image  ngff.ImageSpec
	Levels [][]int // of the pyramid, as returned by ngff.AnalysisLevels

	// Least returns how many planes must be in memory at a time if batch planes are written at a time.
	Least func(batch int) int
	Once  int // additional planes with which overlapping planes are read once, instead of once per pass
	Mixed int // maximum number of weights passed to Mix; 0: it is not called
	// RawArea is the number of pixels of the largest plane to be resampled, and RawDepth the useful number of such
	// planes to read at a time; 0: none.
	RawArea  int64
	RawDepth int
	Matched  bool // Medians is called
	Refined  bool // Means is called
}

// area returns the number of pixels of a plane.
func (c *Canvas) area() int { return c.Image.Shape[1] * c.Image.Shape[2] }

// planes returns the number of planes of the volume.
func (c *Canvas) planes() int { return c.Image.Shape[0] }

// leastRaw returns the minimum number of raw planes.
func (c *Canvas) leastRaw() int { return min(1, c.RawDepth) }

// fit returns the numbers of planes (at most most) and of raw planes that fit into room, given least and leastRaw as
// their minima. It first adds planes that avoid reading planes again, then raw ones, then further planes.
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

// what describes the work for the message that least planes do not fit into memory.
func (c *Canvas) what(least int) string {
	return fmt.Sprintf("blending up to %d planes of %d × %d pixels", least, c.Image.Shape[1], c.Image.Shape[2])
}
