package doctor

import (
	"fmt"
	"strconv"
	"strings"

	"strata/pkg/bench"
	"strata/pkg/sysinfo"
	"strata/pkg/units"
)

// check is a line of findings, with a remedy if there is one.
type check struct {
	Section string `json:"section"`
	Name    string `json:"name"`
	Mark    string `json:"mark"` // "ok", "!" or "–"
	Text    string `json:"text"`
	Next    string `json:"next"`
}

// Marks.
const (
	good  = "ok"
	bad   = "!"
	blank = "–"
)

// Sections in their order.
const (
	theMachine = "machine"
	theStorage = "GPUDirect Storage"
	thePath    = "path"
)

// checks collects lines.
type checks struct {
	section string
	list    []check
}

func (c *checks) add(mark, name, text, next string) {
	c.list = append(c.list, check{c.section, name, mark, text, next})
}

// check returns the lines of all facts.
func (s *state) check() []check {
	c := &checks{section: theMachine}
	if s.Root == "/" {
		c.capacity(s.place, s.fileSystem)
	}
	c.machine(s.Machine)
	c.section = theStorage
	c.storage(s)
	if s.Machine.Path != nil {
		c.section = thePath
		c.path(s.Machine, s.Machine.Path)
	}
	return c.list
}

// hasGPU reports whether a machine shows a GPU or its driver. A machine without is not judged by the requirements
// of GPUDirect Storage.
func hasGPU(m *sysinfo.Machine) bool { return len(m.PCI.GPUs) > 0 || m.Driver.Version.Known() }

func (c *checks) machine(m *sysinfo.Machine) {
	text := m.Kernel.Release.String()
	mark, next := good, ""
	if m.Distribution.Reason == "" {
		text += ", " + m.Distribution.Name
	}
	switch {
	case m.Kernel.WSL.Value:
		text += ", in the Windows Subsystem for Linux"
	case !hasGPU(m):
	case !m.Listed.Kernel.Listed && m.Kernel.Release.Known():
		mark, next = blank, "for GDS: "+m.Listed.Kernel.Note
	case !m.Listed.Distribution.Listed:
		mark, next = blank, "for GDS: "+m.Listed.Distribution.Note
	default:
		text += ", both on NVIDIA's list for GDS"
	}
	c.add(mark, "system", text, next)

	if m.Container.Kind != "" {
		c.add(good, "container", m.Container.Kind+", by "+m.Container.By, "")
	} else {
		c.add(blank, "container", "none", "")
	}
	if j := m.Job; j != nil {
		text := "job " + j.ID
		if j.Partition != "" {
			text += " in " + j.Partition
		}
		if j.GPUs != "" {
			text += ", GPUs " + j.GPUs
		} else {
			text += ", without GPUs"
		}
		c.add(good, "SLURM", text, "")
	}
	c.limits(m)
	c.security(m)
}

// Limits that are too low: less locked memory than registered buffers need, fewer files than sharded arrays open.
const (
	littleLocked = 64 << 20
	littleFiles  = 1024
)

func (c *checks) limits(m *sysinfo.Machine) {
	l := m.Limits
	mark, text, next := good, "", ""
	if n := l.Locked.Value; l.Locked.Known() {
		text = "memlock unlimited"
		if n >= 0 {
			text = "memlock " + units.FormatSize(n)
		}
		if n >= 0 && n < littleLocked && len(m.RDMA.Devices) > 0 {
			mark, next = bad, "RDMA needs more locked memory: ulimit -l unlimited (limits.conf: memlock)"
		}
	} else {
		mark, text = blank, "memlock unknown"
	}
	if n := l.Files.Value; l.Files.Known() {
		if n < 0 {
			text += ", nofile unlimited"
		} else {
			text += ", nofile " + strconv.FormatInt(n, 10)
		}
		if n >= 0 && n < littleFiles {
			mark, next = bad, "sharded arrays keep shards open: ulimit -n 4096"
		}
	}
	if l.CPUs.Known() {
		text += fmt.Sprintf("; cgroup %.4g CPUs", l.CPUs.Value)
	}
	if l.Memory.Known() {
		text += "; cgroup " + units.FormatSize(l.Memory.Value)
	}
	c.add(mark, "limits", text, next)
}

func (c *checks) security(m *sysinfo.Machine) {
	s := m.Security
	var parts []string
	if s.SecureBoot.Known() {
		parts = append(parts, "Secure Boot "+switched(s.SecureBoot.Value))
	}
	if s.Lockdown.Known() {
		parts = append(parts, "lockdown "+s.Lockdown.Value)
	}
	if s.SigEnforce.Known() && s.SigEnforce.Value {
		parts = append(parts, "sig_enforce on")
	}
	mark, next := good, ""
	if s.OnlySigned() {
		mark, next = blank, "only modules with a trusted signature are loaded"
	}
	if len(parts) == 0 {
		mark, parts = blank, []string{"unknown: " + s.SecureBoot.Reason}
	}
	c.add(mark, "modules", strings.Join(parts, ", "), next)
}

func (c *checks) storage(s *state) {
	m := s.Machine
	c.driver(s)
	c.nvidiaFS(m)
	c.configuration(m)
	if u := m.Container.Udev; u.Known() {
		c.add(good, "udev", fmt.Sprintf("/run/udev describes %d devices", u.Value), "")
	} else {
		mark := blank
		if m.Driver.Version.Known() {
			mark = bad
		}
		c.add(mark, "udev", u.Reason, "cuFile looks there for the devices of files")
	}
	c.bus(m)
	c.rdma(m)
	c.tools(m.Tools)
}

func (c *checks) tools(t sysinfo.Tools) {
	if g := t.GDSCheck; g.Known() {
		var works []string
		for _, name := range []string{"NVMe P2PDMA", "NVMe", "NVMeOF", "DDN EXAScaler", "IBM Spectrum Scale", "NFS", "BeeGFS", "WekaFS"} {
			if v := g.Value.Drivers[name]; v != "" && v != "Unsupported" && v != "compat" {
				works = append(works, name)
			}
		}
		mark, text := good, g.Value.Release+", supported: "+strings.Join(works, ", ")
		if len(works) == 0 {
			mark, text = bad, g.Value.Release+", nothing is supported"
		}
		c.add(mark, "gdscheck", text, "")
	} else {
		c.add(blank, "gdscheck", g.Reason, "")
	}
	if n := t.SMI; n.Known() {
		c.add(good, "nvidia-smi", fmt.Sprintf("%s, driver %s", units.Count(len(n.Value), "GPU"), n.Value[0].Driver), "")
	} else {
		c.add(blank, "nvidia-smi", n.Reason, "")
	}
}

func (c *checks) path(m *sysinfo.Machine, p *sysinfo.Path) {
	if p.Reason != "" {
		c.add(bad, "file system", p.Reason, "")
		return
	}
	mark, text := good, fmt.Sprintf("%s on %s from %s", p.Mount.Type, p.Mount.Point, p.Mount.Source)
	switch {
	case !hasGPU(m):
	case p.Support.Supported:
		text += ", supported " + p.Support.Reason
	default:
		mark, text = bad, text+", not supported: "+p.Support.Reason
	}
	c.add(mark, "file system", text, "")
	switch {
	case !p.Direct.Known():
		c.add(blank, "O_DIRECT", "unknown: "+p.Direct.Reason, "")
	case p.Direct.Value:
		c.add(good, "O_DIRECT", "files can be read past the page cache", "")
	default:
		c.add(bad, "O_DIRECT", "files cannot be read past the page cache", "")
	}
	if p.Block == nil {
		return
	}
	c.device(*p.Block, "")
}

// Most drives of an array that have a line each.
const mostLines = 12

func (c *checks) device(b sysinfo.Block, indent string) {
	mark, text, next := good, "", ""
	switch {
	case b.RAID != nil:
		r := b.RAID
		text = fmt.Sprintf("%s of %d drives, %s", r.Level, r.Disks, r.State)
		if r.Degraded > 0 || r.Faulty > 0 {
			mark, next = bad, "replace the drive: mdadm --detail /dev/"+b.Name
			text += fmt.Sprintf(", degraded: %d missing, %d faulty", r.Degraded, r.Faulty)
		}
		if r.Action != "" && r.Action != "idle" {
			text += ", " + r.Action
			if r.Done != "" {
				text += " " + r.Done
			}
		}
	case b.NVMe != nil:
		n := b.NVMe
		text = fmt.Sprintf("%s (firmware %s)", n.Model, n.Firmware)
		if n.Transport != "pcie" && n.Transport != "" {
			text += ", over " + n.Transport
		}
		if n.Bus.Known() {
			text += ", " + n.Link.String()
			if w := n.Link; w.Width.Known() && w.MaxWidth.Known() && (w.Width.Value < w.MaxWidth.Value || w.Speed.Known() && w.MaxSpeed.Known() && w.Speed.Value != w.MaxSpeed.Value) {
				mark, next = bad, "the drive could be connected faster: look at its slot and the firmware's settings"
			}
		}
		if n.NUMA.Known() && n.NUMA.Value >= 0 {
			text += fmt.Sprintf(", node %d", n.NUMA.Value)
		}
		if n.State != "" && n.State != "live" {
			mark, text = bad, text+", "+n.State
		}
	default:
		text = b.Kind
		if b.Rotating.Known() && b.Rotating.Value && b.Kind == "scsi" {
			text += ", rotating"
		}
	}
	c.add(mark, indent+b.Name, text, next)
	for i, p := range b.Parts {
		if i == mostLines {
			c.add(blank, indent+"  …", fmt.Sprintf("%d more", len(b.Parts)-i), "")
			break
		}
		c.device(p, indent+"  ")
	}
}

func switched(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

// printChecks writes the lines of a section.
func (s *state) printChecks(b *strings.Builder, section string) {
	title := section
	if section == thePath && s.Machine.Path != nil {
		title += " " + s.Machine.Path.Name
	}
	for _, c := range s.Checks {
		if c.Section != section {
			continue
		}
		if title != "" {
			fmt.Fprintln(b, bench.Plain(title))
			title = ""
		}
		fmt.Fprintf(b, "  %-2s %-12s %s\n", c.Mark, bench.Plain(c.Name), bench.Plain(c.Text))
		if c.Next != "" {
			fmt.Fprintf(b, "                  %s\n", bench.Plain(c.Next))
		}
	}
}
