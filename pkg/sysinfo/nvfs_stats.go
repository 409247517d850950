package sysinfo

import (
	"strconv"
	"strings"
)

// NvfsStats holds the counts of /proc/driver/nvidia-fs/stats that show whether nvidia-fs is used and fails, as
// nvidia-fs 2.3 to 2.30 write them. Numbers that a version does not count are 0.
type NvfsStats struct {
	IOStats bool   `json:"io_stats"` // reads and writes are counted
	Logging string `json:"logging"`  // "warn", "info" or "debug"
	Reads   NvfsIO `json:"reads"`
	Writes  NvfsIO `json:"writes"`
	Errors  uint64 `json:"errors"` // of all kinds: reads, writes, batches, mappings, transfers
}

// NvfsIO counts reads or writes.
type NvfsIO struct {
	N   uint64 `json:"n"`
	MiB uint64 `json:"mib"`
}

// parseNvfsStats reads lines "Name : key=value key=value". A line that begins with white space continues the line
// before it, as in documentation that wraps long lines.
func parseNvfsStats(text string) *NvfsStats {
	s := &NvfsStats{}
	section := ""
	for line := range strings.Lines(text) {
		name, value, ok := strings.Cut(line, ":")
		if ok && strings.TrimLeft(line, " \t") == line {
			section = strings.TrimSpace(name)
		} else {
			value = line
		}
		switch section {
		case "IO stats":
			s.IOStats = strings.HasPrefix(strings.TrimSpace(value), "Enabled")
		case "Logging level":
			s.Logging = clip(s.Logging + strings.TrimSpace(value))
		default:
			for word := range strings.FieldsSeq(value) {
				s.count(section, word)
			}
		}
	}
	return s
}

// count adds a word key=value of a section.
func (s *NvfsStats) count(section, word string) {
	key, value, _ := strings.Cut(word, "=")
	n, err := strconv.ParseUint(value, 10, 64)
	switch {
	case err != nil:
	case section == "Error" || key == "err" || key == "io_state_err":
		s.Errors += n
	case section == "Reads" && key == "n":
		s.Reads.N = n
	case section == "Reads" && key == "readMiB":
		s.Reads.MiB = n
	case section == "Writes" && key == "n":
		s.Writes.N = n
	case section == "Writes" && key == "writeMiB":
		s.Writes.MiB = n
	}
}
