package sysinfo

import (
	"fmt"
	"path"
	"strings"
)

// Block is a block device with the devices that it consists of.
type Block struct {
	Name     string     `json:"name"` // "md0", "nvme0n1"
	Kind     string     `json:"kind"` // "nvme", "md", "lvm", "crypt", "multipath", "dm", "loop", "virtio", "scsi", "other"
	Rotating Fact[bool] `json:"rotational"`
	NVMe     *NVMe      `json:"nvme"`
	RAID     *RAID      `json:"raid"`
	Parts    []Block    `json:"parts"`
}

// NVMe is a drive.
type NVMe struct {
	Model     string       `json:"model"`
	Firmware  string       `json:"firmware"`
	Transport string       `json:"transport"` // "pcie", "rdma", "tcp", "fc"
	State     string       `json:"state"`     // "live"
	NUMA      Fact[int64]  `json:"numa"`
	Bus       Fact[string] `json:"bus"` // PCI address
	Link      Link         `json:"link"`
	Paths     int          `json:"paths"` // controllers that lead to it
}

// RAID is an array of the md driver.
type RAID struct {
	Level    string `json:"level"` // "raid0"
	State    string `json:"state"` // "clean", "active", "inactive" …
	Disks    int64  `json:"disks"` // that it should have
	Degraded int64  `json:"degraded"`
	Action   string `json:"action"` // "idle", "resync", "recover" …; "" where levels have none
	Done     string `json:"done"`   // "1234 / 5678" sectors while an action runs
	Faulty   int    `json:"faulty"` // members
}

// Drives returns the drives at the end of a chain of devices.
func (b Block) Drives() []Block {
	if len(b.Parts) == 0 {
		return []Block{b}
	}
	var list []Block
	for _, p := range b.Parts {
		list = append(list, p.Drives()...)
	}
	return list
}

// Walk calls visit for a device and for all devices that it consists of.
func (b Block) Walk(visit func(Block)) {
	visit(b)
	for _, p := range b.Parts {
		p.Walk(visit)
	}
}

// Limits of the devices that form one device (mdadm, LVM): their number, and the depth of nesting.
const (
	mostParts = 256
	mostDeep  = 8
)

// blockOf finds the device of a mount.
func (r Root) blockOf(m Mount) (*Block, string) {
	dir := ""
	if !strings.HasPrefix(m.Device, "0:") {
		if real, err := r.resolve("/sys/dev/block/" + m.Device); err == nil {
			dir = real
		}
	}
	if dir == "" && strings.HasPrefix(m.Source, "/dev/") {
		// Of file systems with several devices the mount names one; links such as /dev/mapper/x lead to it.
		name := path.Base(m.Source)
		if real, err := r.resolve(m.Source); err == nil {
			name = path.Base(real)
		}
		if real, err := r.resolve("/sys/class/block/" + name); err == nil {
			dir = real
		}
	}
	if dir == "" {
		if strings.HasPrefix(m.Device, "0:") {
			return nil, fmt.Sprintf("%s has no block device", m.Type)
		}
		return nil, "there is no /sys/dev/block/" + m.Device
	}
	count := 0
	b := r.block(dir, 0, &count)
	return &b, ""
}

// block describes the device of a folder of /sys that no link leads through.
func (r Root) block(dir string, depth int, count *int) Block {
	if r.exists(dir + "/partition") {
		dir = path.Dir(dir)
	}
	b := Block{Name: path.Base(dir), Kind: "other", Parts: []Block{}}
	b.Rotating = convert(r.text(dir+"/queue/rotational"), yes)
	switch {
	case r.exists(dir + "/md"):
		b.Kind, b.RAID = "md", r.raid(dir+"/md")
	case r.exists(dir + "/dm"):
		b.Kind = "dm"
		uuid := r.text(dir + "/dm/uuid")
		if f := r.text(dir + "/dm/name"); f.Known() && f.Value != "" {
			b.Name = clip(f.Value)
		}
		if strings.HasPrefix(uuid.Value, "LVM-") {
			b.Kind = "lvm"
		} else if strings.HasPrefix(strings.ToUpper(uuid.Value), "CRYPT-") {
			b.Kind = "crypt"
		} else if strings.HasPrefix(uuid.Value, "mpath-") {
			b.Kind = "multipath"
		}
	case strings.HasPrefix(b.Name, "nvme"):
		b.Kind, b.NVMe = "nvme", r.nvme(dir)
	case strings.HasPrefix(b.Name, "loop"):
		b.Kind = "loop"
	case strings.HasPrefix(b.Name, "vd"):
		b.Kind = "virtio"
	case strings.HasPrefix(b.Name, "sd"):
		b.Kind = "scsi"
	}
	if depth < mostDeep {
		for _, name := range r.list(dir + "/slaves") {
			real, err := r.resolve(dir + "/slaves/" + name)
			if *count++; err == nil && *count <= mostParts {
				b.Parts = append(b.Parts, r.block(real, depth+1, count))
			}
		}
	}
	return b
}

func (r Root) nvme(dir string) *NVMe {
	n := &NVMe{Bus: unknown[string]("the drive is not on this machine's PCI bus")}
	controllers := []string{dir + "/device"}
	if !r.exists(dir + "/device/transport") {
		// With several paths the drive belongs to a subsystem, whose controllers are the paths.
		controllers = nil
		for _, name := range r.list(dir + "/device") {
			if rest, ok := strings.CutPrefix(name, "nvme"); ok && digits(rest) == len(rest) && rest != "" {
				controllers = append(controllers, dir+"/device/"+name)
			}
		}
	}
	n.Paths = len(controllers)
	if n.Paths == 0 {
		n.NUMA = unknown[int64]("the drive has no controller")
		n.Link = noLink("the drive has no controller")
		return n
	}
	c, err := r.resolve(controllers[0])
	if err != nil {
		c = controllers[0]
	}
	n.Model, n.Firmware = r.text(c+"/model").Value, r.text(c+"/firmware_rev").Value
	n.Transport, n.State = r.text(c+"/transport").Value, r.text(c+"/state").Value
	n.NUMA = number(r.text(c+"/numa_node"), c+"/numa_node")
	n.Link = noLink("the drive is not on this machine's PCI bus")
	if real, err := r.resolve(c + "/device"); err == nil && isBus(path.Base(real)) {
		n.Bus = known(path.Base(real))
		n.Link = r.link(real)
		if !n.NUMA.Known() {
			n.NUMA = number(r.text(real+"/numa_node"), real+"/numa_node")
		}
	}
	return n
}

func (r Root) raid(dir string) *RAID {
	a := &RAID{Level: r.text(dir + "/level").Value, State: r.text(dir + "/array_state").Value}
	a.Disks = number(r.text(dir+"/raid_disks"), "").Value
	a.Degraded = number(r.text(dir+"/degraded"), "").Value
	a.Action = r.text(dir + "/sync_action").Value
	if done := r.text(dir + "/sync_completed").Value; done != "none" {
		a.Done = done
	}
	for _, name := range r.list(dir) {
		if strings.HasPrefix(name, "dev-") && strings.Contains(r.text(dir+"/"+name+"/state").Value, "faulty") {
			a.Faulty++
		}
	}
	return a
}
