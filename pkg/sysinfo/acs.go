package sysinfo

import (
	"encoding/binary"
	"path"
	"slices"
	"strings"
)

// ACS describes PCIe access control: where it redirects, transfers between two devices cross the root
// complex.
type ACS struct {
	Redirects []string `json:"redirects"` // bridges above GPUs, drives and RDMA cards that redirect
	Reason    string   `json:"reason"`    // why it is not known of all of them
}

// Bits of the ACS control register (PCI Express Base Specification 6.0, 7.7.11.3) that send transfers between
// devices below a bridge up to the root complex: P2P request redirect, P2P completion redirect, upstream forwarding.
const acsRedirect = 1<<2 | 1<<3 | 1<<4

// acs looks at the bridges above the devices.
func (r Root) acs(p PCI) ACS {
	a := ACS{Redirects: []string{}}
	seen := map[string]bool{}
	for _, d := range slices.Concat(p.GPUs, p.Drives, p.NICs) {
		for dir := path.Dir(d.dir); isBus(path.Base(dir)); dir = path.Dir(dir) {
			if seen[dir] {
				break
			}
			seen[dir] = true
			b, err := r.read(dir + "/config")
			if err != nil {
				a.Reason = why(dir+"/config", err)
				continue
			}
			switch on, ok := parseACS(b); {
			case !ok:
				a.Reason = "only root may read the whole configuration of PCI devices"
			case on&acsRedirect != 0:
				a.Redirects = append(a.Redirects, path.Base(dir))
			}
		}
	}
	sortNames(a.Redirects)
	if len(seen) == 0 {
		a.Reason = "there are no bridges above GPUs and drives"
	}
	return a
}

// parseACS finds the ACS control register in a device's configuration space, 0 if it has none; ok is false if only
// the first part of the space is there.
func parseACS(config []byte) (control uint16, ok bool) {
	if len(config) <= 0x100 {
		return 0, false
	}
	at := 0x100
	for range 96 { // capabilities, and a chain that goes in circles ends
		if at < 0x100 || at+8 > len(config) {
			break
		}
		head := binary.LittleEndian.Uint32(config[at:])
		if head&0xffff == 0x000d {
			return binary.LittleEndian.Uint16(config[at+6:]), true
		}
		at = int(head >> 20 &^ 3)
	}
	return 0, true
}

// IOMMU describes how the IOMMU treats devices.
type IOMMU struct {
	Mode   string   `json:"mode"`  // "off", "passthrough", "translated", "unknown"
	Units  []string `json:"units"` // "dmar0", "ivhd0"
	Line   []string `json:"line"`  // its options on the kernel's command line
	Reason string   `json:"reason"`
}

func (r Root) iommu(k Kernel, p PCI) IOMMU {
	m := IOMMU{Units: []string{}, Line: []string{}}
	m.Units = append(m.Units, r.list("/sys/class/iommu")...)
	passthrough := false
	for word := range strings.FieldsSeq(k.Line.Value) {
		name, value, _ := strings.Cut(word, "=")
		if name == "iommu" || name == "intel_iommu" || name == "amd_iommu" || name == "iommu.passthrough" {
			m.Line = append(m.Line, clip(word))
			passthrough = passthrough || name == "iommu" && value == "pt" || name == "iommu.passthrough" && value == "1"
		}
	}
	types := map[string]bool{}
	for _, d := range slices.Concat(p.GPUs, p.Drives) {
		if d.Group.Known() {
			if f := r.text("/sys/kernel/iommu_groups/" + d.Group.Value + "/type"); f.Known() {
				types[f.Value] = true
			}
		}
	}
	switch {
	case !r.exists("/sys/class"):
		m.Mode, m.Reason = "unknown", "there is no /sys/class"
	case len(m.Units) == 0 && len(r.list("/sys/kernel/iommu_groups")) == 0:
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
