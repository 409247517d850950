package sysinfo

import (
	"fmt"
	"slices"
	"strings"
)

// Support says whether cuFile can move a file system's data directly to a GPU.
type Support struct {
	Supported bool   `json:"supported"`
	Driver    string `json:"driver"`      // which must have registered with nvidia-fs: "nvme", "rpcrdma", "lnet" …; "" if none must
	PeerMem   bool   `json:"peer_memory"` // GPU memory for RDMA by programs must be there: nvidia_peermem, or dmabuf in cufile.json
	Reason    string `json:"reason"`      // why not, or under which condition
	Next      string `json:"next"`        // what would help; "" if nothing
}

const moveData = "put the data on ext4 or xfs on NVMe"

// parallel lists distributed file systems whose clients support cuFile, with their driver's name in nvidia-fs and their
// requirements. File systems without such a driver use RDMA of their own.
var parallel = map[string]struct{ driver, needs string }{
	"lustre":  {"lnet", "with the client of DDN EXAScaler or Lustre 2.15 or newer and an RDMA network"},
	"beegfs":  {"beegfs", "with BeeGFS 7.3 or newer and an RDMA network"},
	"fhgfs":   {"beegfs", "with BeeGFS 7.3 or newer and an RDMA network"},
	"gpfs":    {"", "with IBM Spectrum Scale 5.1.2 or newer, verbsGPUDirectStorage enabled and an RDMA network"},
	"mmfs":    {"", "with IBM Spectrum Scale 5.1.2 or newer, verbsGPUDirectStorage enabled and an RDMA network"},
	"wekafs":  {"", "with an RDMA network"},
	"scatefs": {"scatefs", "with an RDMA network"},
}

// local are file systems that never are read straight into a GPU, and why.
var local = map[string]string{
	"tmpfs":     "its files lie in memory, not on a device",
	"ramfs":     "its files lie in memory, not on a device",
	"overlay":   "it is an overlay of other file systems, as the root folder of a container is",
	"zfs":       "its blocks have checksums and may be compressed",
	"btrfs":     "its blocks have checksums and may be compressed",
	"bcachefs":  "its blocks have checksums and may be compressed",
	"squashfs":  "it is compressed",
	"9p":        "its files come from the host of a virtual machine",
	"virtiofs":  "its files come from the host of a virtual machine",
	"drvfs":     "its files come from Windows",
	"cifs":      "it comes over the network without RDMA",
	"smb3":      "it comes over the network without RDMA",
	"ceph":      "its client does not work with nvidia-fs",
	"afs":       "its client does not work with nvidia-fs",
	"glusterfs": "its client does not work with nvidia-fs",
	"ext2":      "of the ext family only ext4 is supported",
	"ext3":      "of the ext family only ext4 is supported",
	"f2fs":      "of local file systems only ext4 and xfs are supported",
	"vfat":      "of local file systems only ext4 and xfs are supported",
	"exfat":     "of local file systems only ext4 and xfs are supported",
	"ntfs3":     "of local file systems only ext4 and xfs are supported",
}

// supportOf returns what NVIDIA documents for a file system with its mount options (nvidia-fs 2.30, Key Features;
// GPUDirect Storage Troubleshooting Guide; MagnumIO, gds-diag; 2026-09). The devices below it are judged elsewhere.
func supportOf(m Mount) Support {
	s := Support{}
	switch {
	case m.Type == "ext4":
		// What is ordered by default does not count: cuFile looks for the option.
		mode, set := m.option("data")
		s.Supported, s.Driver = mode == "ordered", "nvme"
		s.Reason = "in ordered mode"
		switch {
		case set && !s.Supported:
			s.Reason = fmt.Sprintf("it is mounted with data=%s, only data=ordered is supported", mode)
			s.Next = "mount it with data=ordered"
		case !set:
			s.Reason = "cuFile wants to see the option data=ordered, though that is the default"
			s.Next = "mount it with data=ordered (in /etc/fstab; for the root folder rootflags=data=ordered)"
		}
	case m.Type == "xfs":
		s.Supported, s.Driver, s.Reason = true, "nvme", "on NVMe"
	case m.Type == "nfs" || m.Type == "nfs4":
		proto, _ := m.option("proto")
		_, rdma := m.option("rdma")
		s.Supported, s.Driver = strings.HasPrefix(proto, "rdma") || rdma, "rpcrdma"
		s.Reason = "over RDMA"
		if !s.Supported {
			if proto == "" {
				proto = "tcp"
			}
			s.Reason = fmt.Sprintf("it is mounted with proto=%s, only RDMA is supported", proto)
			s.Next = "mount it with proto=rdma, port=20049, if the server and the network have RDMA"
		}
	case parallel[m.Type].needs != "":
		p := parallel[m.Type]
		s.Supported, s.Driver, s.PeerMem, s.Reason = true, p.driver, p.driver == "", p.needs
	case local[m.Type] != "":
		s.Reason, s.Next = local[m.Type], moveData
	case m.Type == "fuse" || strings.HasPrefix(m.Type, "fuse.") || m.Type == "fuseblk":
		s.Reason, s.Next = "it is served by a program (FUSE)", moveData
	default:
		s.Reason, s.Next = "it is not among the file systems that NVIDIA lists", moveData
	}
	return s
}

// noDirect are file systems that cannot be read past the page cache.
var noDirect = []string{"ramfs", "squashfs", "proc", "sysfs", "cgroup", "cgroup2", "iso9660", "devtmpfs"}

func hasDirect(fsType string) Fact[bool] {
	switch {
	case slices.Contains(noDirect, fsType):
		return known(false)
	case slices.Contains([]string{"ext4", "xfs", "nfs", "nfs4", "lustre", "gpfs", "mmfs", "beegfs", "wekafs", "btrfs", "ext2", "ext3", "f2fs"}, fsType):
		return known(true)
	}
	return unknown[bool]("it depends on the version or on what lies below")
}
