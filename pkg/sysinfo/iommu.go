package sysinfo

import (
	"path"
	"strings"
)

// IOMMU describes how the IOMMU treats GPUs.
type IOMMU struct {
	Mode   string   `json:"mode"` // "off", "passthrough", "translated", "unknown"
	Line   []string `json:"line"` // its options on the kernel's command line
	Reason string   `json:"reason"`
}

func (r Root) iommu(k Kernel, p PCI) IOMMU {
	m := IOMMU{Line: []string{}}
	passthrough := false
	for word := range strings.FieldsSeq(k.Line.Value) {
		name, value, _ := strings.Cut(word, "=")
		if name == "iommu" || name == "intel_iommu" || name == "amd_iommu" || name == "iommu.passthrough" {
			m.Line = append(m.Line, clip(word))
			passthrough = passthrough || name == "iommu" && value == "pt" || name == "iommu.passthrough" && value == "1"
		}
	}
	types := map[string]bool{}
	for _, d := range p.GPUs {
		if group, err := r.resolve(pciDir + "/" + d.Bus + "/iommu_group"); err == nil {
			if f := r.text("/sys/kernel/iommu_groups/" + path.Base(group) + "/type"); f.Known() {
				types[f.Value] = true
			}
		}
	}
	switch {
	case !r.exists("/sys/class"):
		m.Mode, m.Reason = "unknown", "there is no /sys/class"
	case len(r.list("/sys/class/iommu")) == 0 && len(r.list("/sys/kernel/iommu_groups")) == 0:
		m.Mode = "off"
	case types["DMA"] || types["DMA-FQ"]:
		m.Mode = "translated"
	case types["identity"] || passthrough:
		m.Mode = "passthrough"
	case len(types) > 0:
		m.Mode, m.Reason = "unknown", "devices are in groups for virtual machines"
	default:
		m.Mode = "translated"
	}
	return m
}
