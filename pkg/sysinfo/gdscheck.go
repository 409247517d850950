package sysinfo

import (
	"strconv"
	"strings"
)

// GDSCheck holds what "gdscheck -p" of GDS 1.0 to 1.18 reports about drivers.
type GDSCheck struct {
	Release string            `json:"release"` // "1.14.0.30"
	Drivers map[string]string `json:"drivers"` // "NVMe": "Supported", "Unsupported", "nvfs", "p2pdma", "compat"
}

func parseGDSCheck(text string) (GDSCheck, string) {
	c := GDSCheck{Drivers: map[string]string{}}
	section, found := "", false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		key, value, ok := strings.Cut(line, ":")
		key, value = strings.TrimSpace(strings.TrimLeft(key, "-")), strings.TrimSpace(value)
		switch {
		case !ok || key == "":
		case key == "GDS release version":
			c.Release, found = value, true
		case value == "" && strings.ToUpper(line) == line:
			section, found = key, true
		case section == "DRIVER CONFIGURATION":
			c.Drivers[key] = value
		}
	}
	if !found {
		return c, "gdscheck printed nothing that is known: " + strconv.Quote(clip(strings.TrimSpace(text)))
	}
	return c, ""
}
