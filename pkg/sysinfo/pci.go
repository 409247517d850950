package sysinfo

import (
	"strconv"
	"strings"
)

// PCI lists the GPUs on the PCI bus.
type PCI struct {
	GPUs   []PCIDevice `json:"gpus"`
	Reason string      `json:"reason"`
}

// PCIDevice is a GPU on the PCI bus.
type PCIDevice struct {
	Bus  string      `json:"bus"`
	Link Link        `json:"link"`
	NUMA Fact[int64] `json:"numa"` // -1: the machine does not say
	BAR1 Fact[int64] `json:"bar1"` // bytes of its memory that other devices can reach
}

// Link describes a device's connection: transfers per second and lanes, now and at most. An idle link may be
// slower than under load.
type Link struct {
	Speed    Fact[string] `json:"speed"` // "16.0 GT/s PCIe"
	Width    Fact[int64]  `json:"width"`
	MaxSpeed Fact[string] `json:"max_speed"`
	MaxWidth Fact[int64]  `json:"max_width"`
}

func noLink(reason string) Link {
	return Link{Speed: unknown[string]("%s", reason), Width: unknown[int64]("%s", reason), MaxSpeed: unknown[string]("%s", reason), MaxWidth: unknown[int64]("%s", reason)}
}

const pciDir = "/sys/bus/pci/devices"

func (r Root) pci() PCI {
	p := PCI{GPUs: []PCIDevice{}}
	names, err := r.entries(pciDir)
	if err != nil {
		p.Reason = why(pciDir, err)
	}
	for _, name := range names {
		dir, err := r.resolve(pciDir + "/" + name)
		if err != nil || !isBus(name) || r.text(dir+"/vendor").Value != "0x10de" || !strings.HasPrefix(r.text(dir+"/class").Value, "0x03") {
			continue
		}
		p.GPUs = append(p.GPUs, PCIDevice{
			Bus: name, Link: r.link(dir), NUMA: number(r.text(dir+"/numa_node"), dir+"/numa_node"), BAR1: convert(r.text(dir+"/resource"), parseBAR1),
		})
	}
	return p
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
