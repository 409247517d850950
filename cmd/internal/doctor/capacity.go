package doctor

import (
	"fmt"
	"path/filepath"
	"runtime"

	"strata/cmd/internal/iobench"
	"strata/pkg/host"
	"strata/pkg/units"
)

// littleDisk is less free space than a mosaic takes.
const littleDisk = 1 << 30

// capacity adds what this machine has for work on the CPU: processors, memory, and room on the disk of a place
// and the type of its file system.
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
