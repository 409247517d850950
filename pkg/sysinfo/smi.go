package sysinfo

import (
	"encoding/csv"
	"strconv"
	"strings"
)

var smiFields = []string{"index", "name", "uuid", "pci.bus_id", "driver_version", "memory.total", "memory.used"}

// SMIGPU holds nvidia-smi's facts about a GPU. Unknown ones are "" or 0.
type SMIGPU struct {
	Name     string `json:"name"`
	UUID     string `json:"uuid"`
	Driver   string `json:"driver"`
	TotalMiB int64  `json:"memory_mib"`
	UsedMiB  int64  `json:"used_mib"`
}

// parseSMI reads lines of comma-separated values in the order of smiFields; recordings have more.
func parseSMI(text string) ([]SMIGPU, string) {
	c := csv.NewReader(strings.NewReader(text))
	c.FieldsPerRecord, c.TrimLeadingSpace, c.LazyQuotes = -1, true, true
	list := []SMIGPU{}
	for {
		row, err := c.Read()
		if err != nil {
			break
		}
		if len(row) < len(smiFields) || len(list) == mostNames {
			continue
		}
		for i, v := range row {
			if v = strings.TrimSpace(v); strings.HasPrefix(v, "[") {
				v = "" // [N/A], [Not Supported]
			}
			row[i] = v
		}
		n := func(i int) int64 { v, _ := strconv.ParseInt(row[i], 10, 64); return v }
		if _, err := strconv.ParseInt(row[0], 10, 64); err != nil {
			continue
		}
		list = append(list, SMIGPU{Name: row[1], UUID: row[2], Driver: row[4], TotalMiB: n(5), UsedMiB: n(6)})
	}
	if len(list) == 0 {
		return nil, "nvidia-smi lists no GPU: " + strconv.Quote(clip(strings.TrimSpace(text)))
	}
	return list, ""
}
