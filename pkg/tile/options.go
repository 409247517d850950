package tile

import (
	"errors"
	"fmt"

	"strata/pkg/dtype"
)

// Option configures a [Loader].
type Option func(*config)

type config struct {
	radius      int
	radii       []int
	cacheBytes  []int64
	logical     []int64
	ordered     bool
	release     []int
	views       []int
	traversal   Traversal
	border      any // BorderMode, constant[T] or BorderCreator[T]
	regions     map[int]region
	loaders     int
	copiers     int // 0: as many as loaders
	inline      bool
	memoryLimit int64
	checked     bool
	smallBytes  int // see ends.go
	errs        []error
}

type region struct{ start, shape []int }

func (c *config) fail(format string, args ...any) {
	c.errs = append(c.errs, fmt.Errorf(format, args...))
}

func newConfig(opts []Option) (*config, error) {
	c := &config{
		cacheBytes: []int64{10 << 20}, logical: []int64{10 << 20},
		release: []int{1}, views: []int{1},
		traversal: Naive, border: Zero,
		loaders: 1, regions: map[int]region{},
		smallBytes: defaultSmallBytes,
	}
	for _, o := range opts {
		o(c)
	}
	return c, errors.Join(c.errs...)
}

// Radius sets the width of the halo around the central tile, in pixels, on all
// axes. Default 0.
func Radius(n int) Option {
	return func(c *config) {
		if c.radius, c.radii = n, nil; n < 0 {
			c.fail("radius %d (must be at least 0)", n)
		}
	}
}

// atLeast returns values, and notes those below a least one as errors.
func atLeast[T int | int64](c *config, least T, values []T, format string) []T {
	for _, v := range values {
		if v < least {
			c.fail(format, v)
		}
	}
	return values
}

// Radii sets the width of the halo along each axis.
func Radii(perAxis ...int) Option {
	return func(c *config) {
		c.radii = append([]int{}, perAxis...)
		for _, r := range perAxis {
			if r < 0 {
				c.fail("radii %v (must be at least 0)", perAxis)
			}
		}
	}
}

// CacheBytes sets the size of the tile cache: one value for every level, or
// one per level. A cache holds at least one tile and at most all tiles of its
// level. Default 10 MiB.
func CacheBytes(perLevel ...int64) Option {
	return func(c *config) { c.cacheBytes = atLeast(c, 1, perLevel, "cache of %d bytes (must be above 0)") }
}

// LogicalCacheBytes sets the size of [NewAdaptive]'s cache of logical tiles per level, in bytes; the default
// is 10 MiB. [CacheBytes] sets that of stored tiles.
func LogicalCacheBytes(perLevel ...int64) Option {
	return func(c *config) {
		c.logical = atLeast(c, 1, perLevel, "cache of logical tiles of %d bytes (must be above 0)")
	}
}

// Ordered makes a stream deliver its views in the order of the requests; views that are ready early wait.
func Ordered() Option { return func(c *config) { c.ordered = true } }

// AsReady makes a stream deliver views as they become complete (the default). With one loader thread this is
// the order of the requests as well.
func AsReady() Option { return func(c *config) { c.ordered = false } }

// ReleaseCount sets how often a view must be released before its buffer is reused: one value for every level,
// or one per level. Default 1.
func ReleaseCount(perLevel ...int) Option {
	return func(c *config) { c.release = atLeast(c, 1, perLevel, "release count %d (must be at least 1)") }
}

// ViewsAvailable sets the maximum number of views: one value for every level, or one per level. The next view
// waits for a released one. Default 1, which leaves no room for loading ahead.
func ViewsAvailable(perLevel ...int) Option {
	return func(c *config) { c.views = atLeast(c, 1, perLevel, "%d views available (must be at least 1)") }
}

// Traverse sets the order of [Loader.AllViews]. Default [Naive].
func Traverse(t Traversal) Option {
	return func(c *config) {
		if c.traversal = t; t == nil {
			c.fail("traversal is nil (name one, such as tile.Snake, or give a function)")
		}
	}
}

// Border sets how positions outside the image are filled. Default [Zero].
func Border(mode BorderMode) Option {
	return func(c *config) {
		if c.border = mode; mode >= borderModes {
			c.fail("unknown border mode %d", mode)
		}
	}
}

// BorderConstant fills positions outside the image with v.
func BorderConstant[T dtype.Element](v T) Option {
	return func(c *config) { c.border = constant[T]{v} }
}

// BorderCustom makes the caller's code fill positions outside the image.
func BorderCustom[T dtype.Element](b BorderCreator[T]) Option {
	return func(c *config) {
		if c.border = b; b == nil {
			c.fail("border creator is nil")
		}
	}
}

// Region restricts [Loader.AllViews] of a level to the tiles that meet a box of pixels. Halos still extend
// beyond the box.
func Region(level int, start, shape []int) Option {
	return func(c *config) { c.regions[level] = region{start, shape} }
}

// LoaderThreads sets how many goroutines load tiles for one stream. Default 1.
func LoaderThreads(n int) Option {
	return func(c *config) {
		c.loaders = atLeast(c, 1, []int{n}, "%d loader threads (must be at least 1; Inline() loads in the caller's goroutine)")[0]
	}
}

// CopyThreads sets how many loader threads of all streams together may copy pixels from tiles into views at a
// time, for sources that wait more than they compute. Default: all loader threads.
func CopyThreads(n int) Option {
	return func(c *config) { c.copiers = atLeast(c, 1, []int{n}, "%d copy threads (must be at least 1)")[0] }
}

// Inline makes streams load each view on request in the goroutine that iterates: nothing is loaded ahead and
// no goroutine is started. [Loader.View] always works like this.
func Inline() Option { return func(c *config) { c.inline = true } }

// MemoryLimit limits the memory of all views and caches together. Caches shrink to stay within it; if the
// views and one tile per cache do not fit, [New] fails.
func MemoryLimit(bytes int64) Option {
	return func(c *config) {
		c.memoryLimit = atLeast(c, 1, []int64{bytes}, "memory limit of %d bytes (must be above 0)")[0]
	}
}

// Checked enables checks for tests: a view's pixels are overwritten when it is released, and requesting the
// next view fails if they were written to afterwards.
func Checked() Option { return func(c *config) { c.checked = true } }
