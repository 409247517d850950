package doctor

import (
	"fmt"
	"path/filepath"
	"runtime"

	"strata/cmd/internal/iobench"
	"strata/pkg/host"
	"strata/pkg/units"
)

// littleDisk is the free space below which a mosaic does not fit.
const littleDisk = 1 << 30

// capacity adds the resources for work on the CPU: processors, memory, and the free space and type of the file
// system of a place.
func (c *checks) capacity(place, fileSystem string) {
	text := fmt.Sprintf("%d for this process, %d in all", runtime.GOMAXPROCS(0), runtime.NumCPU())
	if model := host.CPUModel(); model != "" {
		text += ", " + model
	}
	c.add(good, "processors", text, "")
	if n := host.Memory(); n > 0 {
		c.add(good, "memory", units.FormatSize(n), "")
	} else {
		c.add(blank, "memory", "unknown", "")
	}
	free, err := iobench.FreeSpace(place)
	if err != nil {
		c.add(blank, "disk", "unknown: "+err.Error(), "")
		return
	}
	mark, next := good, ""
	if free < littleDisk {
		mark, next = bad, "outputs may not fit: make room, or write to another place"
	}
	where, err := filepath.Abs(place)
	if err != nil {
		where = place
	}
	text = fmt.Sprintf("%s free at %s", units.FormatSize(free), where)
	if fileSystem != "" {
		text += ", " + fileSystem
	}
	c.add(mark, "disk", text, next)
}
