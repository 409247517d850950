package doctor

import (
	"fmt"
	"strings"

	"strata/pkg/sysinfo"
	"strata/pkg/units"
)

func (c *checks) driver(s *state) {
	m := s.Machine
	d := m.Driver
	if !d.Version.Known() {
		mark := blank
		if len(m.PCI.GPUs) > 0 {
			mark = bad
		}
		c.add(mark, "driver", "not loaded: "+d.Version.Reason, "")
		return
	}
	kind := "proprietary kernel modules"
	if d.Open.Value {
		kind = "open kernel modules"
	}
	text := d.Version.Value + ", " + kind
	if d.PeerMem.Loaded {
		text += ", nvidia_peermem"
	}
	c.add(good, "driver", text, "")
	told := map[string]bool{} // by the management library, among the GPUs
	for _, g := range s.GPUs {
		told[g.pci] = g.Hardware != nil
	}
	for _, g := range d.GPUs {
		if told[g.Bus] && sysinfo.ListGPU(g.Model).Listed {
			continue
		}
		text := g.Bus + " " + g.Model
		mark, next := good, ""
		for _, p := range m.PCI.GPUs {
			if p.Bus != g.Bus {
				continue
			}
			if p.BAR1.Known() {
				text += ", BAR1 " + units.FormatSize(p.BAR1.Value)
				if p.BAR1.Value <= 256<<20 {
					mark, next = bad, "BAR1 of 256 MiB limits what is registered: switch on Above 4G Decoding and Resizable BAR in the firmware"
				}
			}
			text += ", " + p.Link.String()
			if p.NUMA.Known() && p.NUMA.Value >= 0 {
				text += fmt.Sprintf(", node %d", p.NUMA.Value)
			}
			if p.Link.Width.Known() && p.Link.MaxWidth.Known() && p.Link.Width.Value < p.Link.MaxWidth.Value {
				mark, next = bad, "fewer PCI Express lanes than it has: look at the slot"
			}
		}
		if l := sysinfo.ListGPU(g.Model); !l.Listed {
			mark, next = bad, l.Note
		}
		c.add(mark, "GPU", text, next)
	}
}

func (c *checks) nvidiaFS(m *sysinfo.Machine) {
	n := m.NvidiaFS
	if n.Reason != "" {
		mark := blank
		if m.Driver.Version.Known() {
			mark = bad
		}
		text := n.Reason
		switch {
		case n.Module.File != "":
			text += "; it is built: " + n.Module.File
		case n.Source != "":
			text += "; its source is " + n.Source
		}
		c.add(mark, "nvidia-fs", text, "")
		return
	}
	version := n.Module.Version
	if version == "" {
		version = n.Version.Value
	}
	text := version + ", storage drivers: " + strings.Join(n.Drivers, ", ")
	if len(n.Drivers) == 0 {
		text = version + ", no storage driver has registered"
	}
	c.add(good, "nvidia-fs", text, "")
	st := n.Stats
	if st == nil {
		return
	}
	mark, next := good, ""
	text = fmt.Sprintf("%d reads (%d MiB), %d writes (%d MiB), logging %s", st.Reads.N, st.Reads.MiB, st.Writes.N, st.Writes.MiB, st.Logging)
	if !st.IOStats {
		text = "reads and writes are not counted (rw_stats_enabled), logging " + st.Logging
	}
	if st.Errors > 0 {
		mark, next = bad, "dmesg says which"
		text += fmt.Sprintf(", %d errors", st.Errors)
	}
	c.add(mark, "  statistics", text, next)
}

func (c *checks) configuration(m *sysinfo.Machine) {
	f := m.CuFile
	if f.Reason != "" {
		c.add(bad, "cufile.json", f.Reason, "")
		return
	}
	if f.File == "" {
		c.add(blank, "cufile.json", "none: cuFile's defaults", "")
		return
	}
	text := f.File
	if f.From != "" {
		text += " (" + f.From + ")"
	}
	mark, next := good, ""
	switch {
	case sysinfo.On(f.ForceCompat):
		mark, text, next = bad, text+": force_compat_mode", "cuFile copies through the host"
	case f.AllowCompat != nil && !*f.AllowCompat:
		text += ": no compatibility mode"
	default:
		text += ": compatibility mode where nothing better goes"
	}
	if sysinfo.On(f.P2PDMA) {
		text += ", use_pci_p2pdma"
	}
	if sysinfo.On(f.PollMode) {
		text += ", use_poll_mode"
	}
	if f.MaxDirectKiB != nil {
		text += fmt.Sprintf(", pieces of %d KiB", *f.MaxDirectKiB)
	}
	if len(f.RDMA) > 0 {
		text += ", RDMA by " + strings.Join(f.RDMA, " ")
	}
	c.add(mark, "cufile.json", text, next)
}

func (c *checks) bus(m *sysinfo.Machine) {
	if len(m.PCI.GPUs) == 0 {
		return
	}
	mark, next := good, ""
	text := m.IOMMU.Mode
	if len(m.IOMMU.Line) > 0 {
		text += " (" + strings.Join(m.IOMMU.Line, " ") + ")"
	}
	switch m.IOMMU.Mode {
	case "translated":
		mark, next = bad, "GDS wants it off or passing through: amd_iommu=off, intel_iommu=off or iommu=pt"
	case "unknown":
		mark = blank
		text += ": " + m.IOMMU.Reason
	}
	c.add(mark, "IOMMU", text, next)
	switch redirects := m.NvidiaFS.Bridges; {
	case m.NvidiaFS.Reason != "": // it finds the bridges
	case len(redirects) == 0:
		c.add(good, "ACS", "redirects nothing", "")
	default:
		c.add(bad, "ACS", "redirects at "+strings.Join(redirects, " "), "transfers between devices go over the root complex: switch ACS off in the firmware or with setpci")
	}
}

func (c *checks) rdma(m *sysinfo.Machine) {
	for _, d := range m.RDMA.Devices {
		mark := good
		if d.State != "ACTIVE" {
			mark = blank
		}
		c.add(mark, "RDMA", fmt.Sprintf("%s port %s, %s, %s, %s", d.Name, d.Port, d.State, d.Layer, d.Rate), "")
	}
}
