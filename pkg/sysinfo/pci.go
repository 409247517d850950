package sysinfo

import (
	"path"
	"strconv"
	"strings"
)

// PCI lists the relevant devices and their relative positions.
type PCI struct {
	GPUs   []PCIDevice `json:"gpus"`
	Drives []PCIDevice `json:"nvme"`
	NICs   []PCIDevice `json:"rdma_nics"`
	Ways   []Way       `json:"ways"` // from every GPU to every drive and RDMA card
	ACS    ACS         `json:"acs"`
	Reason string      `json:"reason"`
}

// PCIDevice is a device on the PCI bus.
type PCIDevice struct {
	Bus    string       `json:"bus"`
	Vendor string       `json:"vendor"` // "0x10de"
	ID     string       `json:"id"`
	Driver string       `json:"driver"` // "nvidia", "nvme", "vfio-pci"; "" if none
	Link   Link         `json:"link"`
	NUMA   Fact[int64]  `json:"numa"` // -1: the machine does not say
	Group  Fact[string] `json:"iommu_group"`
	BAR1   Fact[int64]  `json:"bar1"` // bytes of a GPU's memory that other devices can reach; GPUs only

	dir string // in /sys, no links
}

// Link describes a device's connection: transfers per second and lanes, now and at most. An idle link may be
// slower than under load.
type Link struct {
	Speed    Fact[string] `json:"speed"` // "16.0 GT/s PCIe"
	Width    Fact[int64]  `json:"width"`
	MaxSpeed Fact[string] `json:"max_speed"`
	MaxWidth Fact[int64]  `json:"max_width"`
}

// Way describes the path between two devices.
type Way struct {
	From string `json:"from"`
	To   string `json:"to"`
	// Over is "switch" (a PCIe switch), "host bridge" (the root complex of a processor), "node" (several root
	// complexes of a NUMA node) or "system" (the link between processors).
	Over string `json:"over"`
}

func noLink(reason string) Link {
	return Link{Speed: unknown[string]("%s", reason), Width: unknown[int64]("%s", reason), MaxSpeed: unknown[string]("%s", reason), MaxWidth: unknown[int64]("%s", reason)}
}

const pciDir = "/sys/bus/pci/devices"

func (r Root) pci() PCI {
	p := PCI{GPUs: []PCIDevice{}, Drives: []PCIDevice{}, NICs: []PCIDevice{}, Ways: []Way{}}
	names, err := r.entries(pciDir)
	if err != nil {
		p.Reason = why(pciDir, err)
	}
	rdma := map[string]bool{}
	for _, name := range r.list("/sys/class/infiniband") {
		if real, err := r.resolve("/sys/class/infiniband/" + name + "/device"); err == nil {
			rdma[path.Base(real)] = true
		}
	}
	for _, name := range names {
		dir, err := r.resolve(pciDir + "/" + name)
		if err != nil || !isBus(name) {
			continue
		}
		class, vendor := r.text(dir+"/class").Value, r.text(dir+"/vendor").Value
		switch {
		case vendor == "0x10de" && strings.HasPrefix(class, "0x03"):
			p.GPUs = append(p.GPUs, r.pciDevice(dir, vendor, true))
		case strings.HasPrefix(class, "0x0108"):
			p.Drives = append(p.Drives, r.pciDevice(dir, vendor, false))
		case rdma[name]:
			p.NICs = append(p.NICs, r.pciDevice(dir, vendor, false))
		}
	}
	for _, g := range p.GPUs {
		for _, d := range p.Drives {
			p.Ways = append(p.Ways, Way{g.Bus, d.Bus, over(g, d)})
		}
		for _, d := range p.NICs {
			p.Ways = append(p.Ways, Way{g.Bus, d.Bus, over(g, d)})
		}
	}
	p.ACS = r.acs(p)
	return p
}

func (r Root) pciDevice(dir, vendor string, gpu bool) PCIDevice {
	d := PCIDevice{Bus: path.Base(dir), Vendor: vendor, ID: r.text(dir + "/device").Value, Link: r.link(dir), dir: dir}
	if real, err := r.resolve(dir + "/driver"); err == nil {
		d.Driver = path.Base(real)
	}
	d.NUMA = number(r.text(dir+"/numa_node"), dir+"/numa_node")
	if real, err := r.resolve(dir + "/iommu_group"); err == nil {
		d.Group = known(path.Base(real))
	} else {
		d.Group = unknown[string]("the device is in no IOMMU group")
	}
	d.BAR1 = unknown[int64]("only GPUs have it")
	if gpu {
		d.BAR1 = convert(r.text(dir+"/resource"), parseBAR1)
	}
	return d
}

// parseBAR1 reads the second line of a device's resources: "0x0000209000000000 0x0000209fffffffff 0x000000000014220c".
func parseBAR1(text string) (int64, string) {
	lines := strings.Split(text, "\n")
	if len(lines) < 2 {
		return 0, "the device has no second memory region"
	}
	words := strings.Fields(lines[1])
	if len(words) < 2 {
		return 0, "the second memory region has no addresses"
	}
	from, err1 := strconv.ParseUint(words[0], 0, 64)
	to, err2 := strconv.ParseUint(words[1], 0, 64)
	if err1 != nil || err2 != nil || to < from || to-from >= 1<<62 {
		return 0, "the second memory region has no usable addresses"
	}
	if to == from {
		return 0, "the firmware gave BAR1 no addresses"
	}
	return int64(to - from + 1), ""
}

func (r Root) link(dir string) Link {
	speed := func(name string) Fact[string] {
		return convert(r.text(dir+"/"+name), func(s string) (string, string) {
			if !strings.HasSuffix(strings.TrimSuffix(s, " PCIe"), "GT/s") {
				return "", dir + "/" + name + ": " + strconv.Quote(clip(s)) + " is not a speed"
			}
			return s, ""
		})
	}
	return Link{
		Speed: speed("current_link_speed"), MaxSpeed: speed("max_link_speed"),
		Width: number(r.text(dir+"/current_link_width"), dir+"/current_link_width"), MaxWidth: number(r.text(dir+"/max_link_width"), dir+"/max_link_width"),
	}
}

// String returns the link as "16.0 GT/s ×4", with the possible maximum if that is more.
func (l Link) String() string {
	if !l.Speed.Known() || !l.Width.Known() {
		return "link unknown"
	}
	s := linkText(l.Speed.Value, l.Width.Value)
	if l.MaxSpeed.Known() && l.MaxWidth.Known() && (l.MaxSpeed.Value != l.Speed.Value || l.MaxWidth.Value != l.Width.Value) {
		s += " (at most " + linkText(l.MaxSpeed.Value, l.MaxWidth.Value) + ")"
	}
	return s
}

func linkText(speed string, width int64) string {
	return strings.TrimSuffix(speed, " PCIe") + " x" + strconv.FormatInt(width, 10)
}

// isBus reports whether a name is a PCI address.
func isBus(s string) bool {
	// 0000:41:00.0, and longer domains behind volume management controllers
	domain, rest, ok := strings.Cut(s, ":")
	if !ok || len(domain) < 4 || len(rest) != 7 || rest[2] != ':' || rest[5] != '.' {
		return false
	}
	for _, c := range domain + rest[:2] + rest[3:5] + rest[6:] {
		if !strings.ContainsRune("0123456789abcdef", c) {
			return false
		}
	}
	return true
}

// chain returns the PCI addresses on the way to a device, from the root port on, and its host bridge before
// them.
func (d PCIDevice) chain() []string {
	var list []string
	for _, part := range strings.Split(d.dir, "/") {
		if strings.HasPrefix(part, "pci") && strings.Contains(part, ":") || isBus(part) {
			list = append(list, part)
		}
	}
	return list
}

// over returns what two devices reach each other over.
func over(a, b PCIDevice) string {
	x, y := a.chain(), b.chain()
	same := 0
	for same < len(x) && same < len(y) && x[same] == y[same] {
		same++
	}
	switch {
	case same >= 2: // the host bridge and at least the root port
		return "switch"
	case same == 1:
		return "host bridge"
	case a.NUMA.Known() && b.NUMA.Known() && a.NUMA.Value == b.NUMA.Value && a.NUMA.Value >= 0:
		return "node"
	}
	return "system"
}
