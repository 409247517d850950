package oct

import (
	"fmt"
	"sync"
	"sync/atomic"
)

// Content records whether voxels differ from each other, that is whether an image shows anything. It is safe for
// concurrent use, and nearly free once two different voxels have been found.
type Content struct {
	differ atomic.Bool
	mu     sync.Mutex
	some   bool
	value  float32
}

// Add records voxels. It ignores NaN and infinite ones.
func (c *Content) Add(voxels []float32) {
	if c.differ.Load() {
		return
	}
	first, some := float32(0), false
	for _, v := range voxels {
		switch {
		case v-v != 0:
		case !some:
			first, some = v, true
		case v != first:
			c.differ.Store(true)
			return
		}
	}
	if !some {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.some && c.value != first {
		c.differ.Store(true)
	}
	c.some, c.value = true, first
}

// Nothing describes the common value of all voxels, or returns "" if two of them differ.
func (c *Content) Nothing() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.differ.Load():
		return ""
	case !c.some:
		return "all voxels are NaN or infinite"
	}
	return fmt.Sprintf("all voxels are %v", c.value+0) // no -0
}
