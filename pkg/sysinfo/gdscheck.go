package sysinfo

import (
	"strconv"
	"strings"
)

// GDSCheck holds the output of "gdscheck -p" of GDS 1.0 to 1.18.
type GDSCheck struct {
	Release  string            `json:"release"`   // "1.14.0.30"
	NvidiaFS string            `json:"nvidia_fs"` // "2.25"
	CuFile   string            `json:"libcufile"` // "2.12"
	Drivers  map[string]string `json:"drivers"`   // "NVMe": "Supported", "Unsupported", "nvfs", "p2pdma", "compat"
	Settings map[string]string `json:"settings"`  // "properties.use_compat_mode": "true"
	GPUs     []GDSCheckGPU     `json:"gpus"`
	Platform map[string]string `json:"platform"`
	OK       bool              `json:"ok"` // it ends with "Platform verification succeeded"
}

// GDSCheckGPU is a line "GPU index 0 NVIDIA RTX A6000 bar:1 bar size (MiB):65536 supports GDS, IOMMU State: Disabled".
type GDSCheckGPU struct {
	Index    int    `json:"index"`
	Name     string `json:"name"`
	BARMiB   int64  `json:"bar_mib"`
	Supports bool   `json:"supports_gds"`
	IOMMU    string `json:"iommu"`
}

func parseGDSCheck(text string) (GDSCheck, string) {
	c := GDSCheck{Drivers: map[string]string{}, Settings: map[string]string{}, GPUs: []GDSCheckGPU{}, Platform: map[string]string{}}
	section, found := "", false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || strings.Trim(line, "=") == "":
			continue
		case strings.HasPrefix(line, "GDS release version:"):
			c.Release, found = strings.TrimSpace(line[len("GDS release version:"):]), true
			continue
		case strings.HasPrefix(line, "nvidia_fs version:"):
			f := strings.Fields(line[len("nvidia_fs version:"):])
			if len(f) > 0 {
				c.NvidiaFS = f[0]
			}
			if _, v, ok := strings.Cut(line, "libcufile version:"); ok {
				c.CuFile = strings.TrimSpace(v)
			}
			continue
		case strings.HasPrefix(line, "libcufile version:"):
			c.CuFile = strings.TrimSpace(line[len("libcufile version:"):])
			continue
		case strings.HasPrefix(line, "Platform verification"):
			c.OK = strings.HasSuffix(line, "succeeded")
			continue
		case strings.HasSuffix(line, ":") && strings.ToUpper(line) == line:
			section, found = strings.TrimSuffix(line, ":"), true
			continue
		}
		if section == "GPU INFO" {
			if g, ok := parseGDSCheckGPU(line); ok && len(c.GPUs) < mostNames {
				c.GPUs = append(c.GPUs, g)
			}
			continue
		}
		key, value, ok := strings.Cut(line, ":")
		key, value = strings.TrimSpace(strings.TrimLeft(key, "-")), strings.TrimSpace(value)
		if !ok || key == "" {
			continue
		}
		switch section {
		case "DRIVER CONFIGURATION":
			c.Drivers[key] = value
		case "CUFILE CONFIGURATION":
			c.Settings[key] = value
		case "PLATFORM INFO":
			c.Platform[key] = value
		}
	}
	if !found {
		return c, "gdscheck printed nothing that is known: " + strconv.Quote(clip(strings.TrimSpace(text)))
	}
	return c, ""
}

func parseGDSCheckGPU(line string) (g GDSCheckGPU, ok bool) {
	rest, ok := strings.CutPrefix(line, "GPU index ")
	if !ok {
		return g, false
	}
	index, rest, _ := strings.Cut(rest, " ")
	n, err := strconv.Atoi(index)
	if err != nil {
		return g, false
	}
	g.Index = n
	g.Name, rest, _ = strings.Cut(rest, " bar:")
	g.Name = strings.TrimSpace(g.Name)
	if _, size, ok := strings.Cut(rest, "bar size (MiB):"); ok {
		g.BARMiB, _ = strconv.ParseInt(size[:digits(size)], 10, 64)
	}
	g.Supports = strings.Contains(rest, "supports GDS") && !strings.Contains(rest, "not supports GDS")
	if _, state, ok := strings.Cut(rest, "IOMMU State:"); ok {
		g.IOMMU = strings.TrimSpace(state)
	}
	return g, true
}
