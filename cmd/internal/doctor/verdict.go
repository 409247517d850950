package doctor

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"strata/pkg/sysinfo"
)

// reading describes how data reaches a GPU, and why not in a better way.
type reading struct {
	Path    string `json:"path"`    // "" for any file
	Backend string `json:"backend"` // as --backend: "gds", "bounce"; "host" where there is no GPU
	Rule    string `json:"rule"`    // which rule decided
	Because string `json:"because"` // the fact that decided
	Next    string `json:"next"`    // what to do to get a better way; "" if there is nothing
}

// situation holds the facts on which the verdict is based.
type situation struct {
	m        *sysinfo.Machine
	noGPU    string // why there is no usable GPU; "" if there is one
	model    string // of the GPU that is read into
	settings string // which of our settings forbids cuFile; "" if none does
	library  string // why libcufile cannot be used; "" if it can
	answer   *answer
}

// answer is cuFile's own answer; a recorded machine has none.
type answer struct {
	straight bool
	reason   string // how, or why not
}

// rule is a possible reason for a verdict. Texts that do not apply are "".
type rule struct {
	name    string
	backend string
	// applies returns the deciding fact, "" if the rule does not apply, and the next step.
	applies func(s *situation) (because, next string)
	// known: the rule is skipped if cuFile itself has reported direct transfers.
	known bool
}

const guide = "; see docs/gpu-direct.md"

// rules lists the rules in the order of evaluation: first what no setting changes, then what an administrator can
// change, then what a user can change.
var rules = []rule{
	{name: "no-gpu", backend: "host", applies: noGPU},
	{name: "settings", backend: "bounce", applies: func(s *situation) (string, string) {
		if s.settings == "" {
			return "", ""
		}
		return s.settings, "unset it"
	}},
	{name: "path", backend: "bounce", applies: func(s *situation) (string, string) {
		if s.m.Path == nil || s.m.Path.Reason == "" {
			return "", ""
		}
		return "it is not known where it lies: " + s.m.Path.Reason, ""
	}},
	{name: "wsl", backend: "bounce", known: true, applies: func(s *situation) (string, string) {
		if !s.m.Kernel.WSL.Value {
			return "", ""
		}
		return "GPUDirect Storage does not exist in the Windows Subsystem for Linux", "start Linux itself on this machine"
	}},
	{name: "file-system", backend: "bounce", applies: fileSystem},
	{name: "denied", backend: "bounce", applies: denied},
	{name: "transport", backend: "bounce", applies: transport},
	{name: "stacked", backend: "bounce", applies: stacked},
	{name: "gpu-model", backend: "bounce", known: true, applies: func(s *situation) (string, string) {
		if l := sysinfo.ListGPU(s.model); s.model != "" && !l.Listed && strings.Contains(l.Note, "GeForce") {
			return s.model + ": " + l.Note, "use a data-centre or professional GPU"
		}
		return "", ""
	}},
	{name: "library", backend: "bounce", known: true, applies: func(s *situation) (string, string) {
		if s.library == "" {
			return "", ""
		}
		if s.m.Container.Kind != "" {
			return s.library, "use an image that has libcufile (made with --with_nvidia), or bind the host's and name it in STRATA_LIBCUFILE" + guide
		}
		return s.library, "install libcufile (CUDA's package libcufile, or pip install nvidia-cufile-cu12), or name it in STRATA_LIBCUFILE" + guide
	}},
	{name: "cufile-json", backend: "bounce", known: true, applies: func(s *situation) (string, string) {
		if s.m.CuFile.Reason == "" {
			return "", ""
		}
		return "cuFile's configuration cannot be used: " + s.m.CuFile.Reason, "mend the file, or name another in CUFILE_ENV_PATH_JSON"
	}},
	{name: "force-compat", backend: "bounce", known: true, applies: func(s *situation) (string, string) {
		if !sysinfo.On(s.m.CuFile.ForceCompat) {
			return "", ""
		}
		return "force_compat_mode is on in " + configured(s.m, "CUFILE_FORCE_COMPAT_MODE"), "set it to false"
	}},
	{name: "mechanism", backend: "bounce", known: true, applies: mechanism},
	{name: "driver", backend: "bounce", applies: storageDriver},
	{name: "peer-memory", backend: "bounce", applies: peerMemory},
	{name: "udev", backend: "bounce", known: true, applies: func(s *situation) (string, string) {
		if u := s.m.Container.Udev; u.Known() || !local(s.m) {
			return "", ""
		}
		because := "cuFile cannot see on which devices files lie: " + s.m.Container.Udev.Reason
		switch s.m.Container.Kind {
		case "":
			return because, "start udev (systemd-udevd)"
		case "apptainer":
			return because, "start the container with --bind /run/udev"
		case "kubernetes":
			return because, "mount the host's /run/udev into the pod, read-only"
		}
		return because, "start the container with --volume /run/udev:/run/udev:ro"
	}},
	{name: "cufile", backend: "bounce", applies: func(s *situation) (string, string) {
		if s.answer == nil || s.answer.straight {
			return "", ""
		}
		return s.answer.reason, strings.TrimPrefix(guide, "; ")
	}},
	{name: "straight", backend: "gds", applies: func(s *situation) (string, string) {
		if s.answer != nil {
			return "straight into the GPU's memory: " + s.answer.reason, ""
		}
		return "straight into the GPU's memory: " + byWhat(s.m), ""
	}},
}

// judge returns the verdict of the first rule that applies.
func judge(s *situation) reading {
	r := reading{}
	if s.m.Path != nil {
		r.Path = s.m.Path.Name
	}
	for _, rule := range rules {
		if rule.known && s.answer != nil && s.answer.straight {
			continue
		}
		if because, next := rule.applies(s); because != "" {
			r.Backend, r.Rule, r.Because, r.Next = rule.backend, rule.name, because, next
			break
		}
	}
	return r
}

// text returns the verdict in one line.
func (r reading) text() string {
	what := "files"
	if r.Path != "" {
		what = r.Path
	}
	switch r.Backend {
	case "gds":
		return fmt.Sprintf("reads of %s: gds, %s", what, r.Because)
	case "host":
		return fmt.Sprintf("reads of %s: host, because there is no usable GPU: %s", what, r.Because)
	}
	return fmt.Sprintf("reads of %s: %s (through the host's memory), because %s", what, r.Backend, r.Because)
}

func noGPU(s *situation) (because, next string) {
	if s.noGPU == "" {
		return "", ""
	}
	m := s.m
	switch {
	case m.Job != nil && m.Job.GPUs == "" && len(m.Driver.GPUs) > 0:
		return s.noGPU, "ask SLURM for one: --gres=gpu:1"
	case m.Container.Kind == "apptainer" && m.Driver.Version.Known():
		return s.noGPU, "start the container with --nv"
	case m.Container.Kind != "" && m.Driver.Version.Known():
		return s.noGPU, "start the container with --gpus all"
	case len(m.PCI.GPUs) > 0 && !m.Driver.Version.Known():
		if m.Driver.Module.File != "" {
			return s.noGPU, "load the driver: modprobe nvidia"
		}
		return s.noGPU, "install NVIDIA's driver, with the open kernel modules" + guide
	}
	return s.noGPU, ""
}

func fileSystem(s *situation) (because, next string) {
	p := s.m.Path
	if p == nil || p.Support.Supported {
		return "", ""
	}
	return fmt.Sprintf("its file system (%s on %s) is not supported: %s", p.Mount.Type, p.Mount.Point, p.Support.Reason), p.Support.Next
}

// denied checks the lists in cuFile's configuration.
func denied(s *situation) (because, next string) {
	c, p := s.m.CuFile, s.m.Path
	if p == nil {
		return "", ""
	}
	for _, d := range c.DenyMounts {
		if d != "" && (p.Mount.Point == path.Clean(d) || strings.HasPrefix(p.Mount.Point, path.Clean(d)+"/")) {
			return fmt.Sprintf("%s denies the mount %s", c.File, d), "take it from denylist.mounts"
		}
	}
	if slices.Contains(c.DenyFileSystems, p.Mount.Type) {
		return fmt.Sprintf("%s denies the file system %s", c.File, p.Mount.Type), "take it from denylist.filesystems"
	}
	if p.Block != nil {
		var name string
		p.Block.Walk(func(b sysinfo.Block) {
			for _, d := range c.DenyDevices {
				if path.Base(d) == b.Name {
					name = d
				}
			}
		})
		if name != "" {
			return fmt.Sprintf("%s denies the device %s", c.File, name), "take it from denylist.devices"
		}
	}
	return "", ""
}

// transport requires NVMe below local file systems.
func transport(s *situation) (because, next string) {
	p := s.m.Path
	if p == nil || !local(s.m) {
		return "", ""
	}
	if p.Block == nil {
		return "", ""
	}
	for _, d := range p.Block.Drives() {
		if d.Kind != "nvme" {
			return fmt.Sprintf("it lies on %s, which is not an NVMe drive", d.Name), "put the data on ext4 or xfs on NVMe"
		}
		if d.NVMe != nil && d.NVMe.Transport == "tcp" {
			return fmt.Sprintf("the drive %s comes over TCP, only PCIe and RDMA are supported", d.Name), "connect it over RDMA"
		}
	}
	return "", ""
}

// stacked requires that only RAID 0 lies between file system and drives.
func stacked(s *situation) (because, next string) {
	p := s.m.Path
	if p == nil || p.Block == nil {
		return "", ""
	}
	p.Block.Walk(func(b sysinfo.Block) {
		switch {
		case because != "":
		case b.Kind == "md" && b.RAID != nil && b.RAID.Level != "raid0":
			because = fmt.Sprintf("it lies on %s, a %s: of the levels of md NVIDIA lists only RAID 0", b.Name, b.RAID.Level)
			next = "make a RAID 0 of the drives for data that can be had again, or use one drive"
		case b.Kind == "md" && s.answer != nil && s.answer.straight && !byNvidiaFS(s.answer) && peerToPeer(s.m, s.model) != "":
			because = fmt.Sprintf("it lies on %s, and of PCI peer-to-peer transfers: %s", b.Name, peerToPeer(s.m, s.model))
			next = "load nvidia-fs, or use one drive" + guide
		case b.Kind == "crypt":
			because, next = fmt.Sprintf("it lies on %s, which is encrypted", b.Name), "put data that need not be encrypted on a drive without"
		case b.Kind == "lvm" || b.Kind == "dm" || b.Kind == "multipath":
			because, next = fmt.Sprintf("it lies on %s of the device mapper: of stacked devices NVIDIA lists only RAID 0 of md", b.Name), "put the file system on the drive itself, or on a RAID 0 of md"
		}
	})
	return because, next
}

// mechanism requires nvidia-fs, or what PCI peer-to-peer transfers need.
func mechanism(s *situation) (because, next string) {
	m := s.m
	if m.NvidiaFS.Reason == "" {
		return "", ""
	}
	p2p := peerToPeer(m, s.model)
	if p2p == "" {
		return "", ""
	}
	because = m.NvidiaFS.Reason
	if sysinfo.On(m.CuFile.P2PDMA) {
		because += ", and PCI peer-to-peer transfers are not possible: " + p2p
	}
	n := m.NvidiaFS
	version := strings.TrimPrefix(n.Source, "/usr/src/nvidia-fs-")
	newest := sysinfo.KernelOf(version)
	open := m.Driver.Open
	switch {
	case n.Module.Loaded:
		return because, "load it again: modprobe -r nvidia-fs; modprobe nvidia-fs" + guide
	case m.Container.Kind != "":
		return because, "have it loaded on the host" + guide
	case open.Known() && !open.Value && !sysinfo.VersionLess(m.Driver.Version.Value, "515"):
		return because, "install the open kernel modules of the driver, which nvidia-fs since 2.17.5 needs, and nvidia-fs" + guide
	case n.Module.File != "" && m.Security.OnlySigned():
		return because + ": the kernel takes only signed modules (" + signedBy(m.Security) + ")", "sign it and enrol the key (mokutil --import), then modprobe nvidia-fs" + guide
	case n.Module.File != "":
		return because, "load nvidia-fs: modprobe nvidia-fs" + guide
	case version != "" && newest != "" && m.Kernel.Release.Known() && sysinfo.VersionLess(newest+".999", m.Kernel.Release.Value):
		return because + fmt.Sprintf(", and its source %s does not build on kernel %s", version, m.Kernel.Release.Value), "patch it: server_setup/nvfs_patch.sh, then dkms install nvidia-fs/" + version + guide
	case version != "":
		return because + ", its source is not built for this kernel", "dkms install nvidia-fs/" + version + guide
	}
	return because, "install nvidia-fs: server_setup/install_gds.sh" + guide
}

// signedBy returns what makes the kernel refuse modules.
func signedBy(s sysinfo.Security) string {
	if s.Lockdown.Known() && s.Lockdown.Value != "none" {
		text := "lockdown " + s.Lockdown.Value
		if s.SecureBoot.Known() && s.SecureBoot.Value {
			text += " by Secure Boot"
		}
		return text
	}
	return "module.sig_enforce"
}

// peerToPeer returns the reason why cuFile needs nvidia-fs, or "" if it does not.
func peerToPeer(m *sysinfo.Machine, model string) string {
	release := m.Kernel.Release
	switch {
	case !sysinfo.On(m.CuFile.P2PDMA):
		return "use_pci_p2pdma is off in " + configured(m, "CUFILE_USE_PCIP2PDMA")
	case m.Kernel.P2PDMA.Known() && !m.Kernel.P2PDMA.Value:
		return "the kernel has no CONFIG_PCI_P2PDMA"
	case release.Known() && sysinfo.VersionLess(release.Value, "6.2"):
		return "they need kernel 6.2 or newer"
	case m.Driver.Open.Known() && !m.Driver.Open.Value:
		return "they need the open kernel modules of the driver"
	case m.Driver.Version.Known() && sysinfo.VersionLess(m.Driver.Version.Value, "565"):
		return "they need driver 565 or newer"
	case model != "" && !strings.Contains(sysinfo.ListGPU(model).Note, "and by P2PDMA"):
		return model + " is not among the GPUs that have them"
	case m.Driver.Arch != "aarch64" && !strings.Contains(m.Driver.Registry, "RMForceStaticBar1=1") && !strings.Contains(m.Driver.Registry, "RmForceStaticBar1=1"):
		return `the driver has no NVreg_RegistryDwords="RMForceStaticBar1=1;RmForceDisableIomapWC=1;"`
	}
	if p := m.Path; p != nil {
		if !local(m) {
			return "they serve local NVMe drives only"
		}
		switch kind := kindOf(p.Block); {
		case kind == "raid" && (!m.CuFile.BlockP2PDMA["raid"] || m.Driver.Arch != "aarch64" && sysinfo.VersionLess(release.Value, "7.1")):
			return "for a RAID 0 they need kernel 7.1 and use_pci_p2pdma of raid in cufile.json"
		case kind == "other":
			return "they serve NVMe drives only"
		default:
			if on, set := m.CuFile.BlockP2PDMA[kind]; set && !on {
				return "use_pci_p2pdma of " + kind + " is off in " + m.CuFile.File
			}
		}
		if p.Block != nil && p.Block.NVMe != nil && p.Block.NVMe.Paths > 1 && m.Driver.Arch != "aarch64" {
			return "they do not work with several paths to a drive (nvme_core.multipath=N)"
		}
	}
	return ""
}

// kindOf returns a device's kind in terms of cuFile's configuration: "nvme", "nvmeof", "raid"; "other" for the
// rest, "" for none.
func kindOf(b *sysinfo.Block) string {
	switch {
	case b == nil:
		return ""
	case b.NVMe != nil && (b.NVMe.Transport == "pcie" || b.NVMe.Transport == ""):
		return "nvme"
	case b.NVMe != nil:
		return "nvmeof"
	case b.RAID != nil:
		return "raid"
	}
	return "other"
}

// storageDriver requires that the storage's driver has registered with nvidia-fs.
func storageDriver(s *situation) (because, next string) {
	m := s.m
	if m.Path == nil || m.NvidiaFS.Reason != "" || peerToPeer(m, s.model) == "" || s.answer != nil && s.answer.straight && !byNvidiaFS(s.answer) {
		return "", ""
	}
	want := m.Path.Support.Driver
	if want == "" {
		return "", ""
	}
	if want == "nvme" && m.Path.Block != nil {
		for _, d := range m.Path.Block.Drives() {
			if d.NVMe != nil && d.NVMe.Transport == "rdma" {
				want = "nvme_rdma"
			}
		}
	}
	if slices.Contains(m.NvidiaFS.Drivers, want) {
		return "", ""
	}
	because = fmt.Sprintf("the storage driver %s has not registered with nvidia-fs", want)
	switch want {
	case "nvme", "nvme_rdma":
		if m.Kernel.Release.Known() && !sysinfo.VersionLess(m.Kernel.Release.Value, "6.2") {
			return because, "install the NVMe driver of DOCA or MLNX_OFED (--with-nvmf), or set use_pci_p2pdma in cufile.json" + guide
		}
		return because, "install the NVMe driver of DOCA or MLNX_OFED (--with-nvmf)" + guide
	case "rpcrdma":
		return because, "install NFS over RDMA of DOCA or MLNX_OFED (--with-nfsrdma) and load rpcrdma" + guide
	}
	return because, "install a client of the file system that knows GPUDirect Storage: " + m.Path.Support.Reason
}

// byNvidiaFS reports whether cuFile said that it moves data by nvidia-fs, not by its other way.
func byNvidiaFS(a *answer) bool { return strings.HasPrefix(a.reason, "nvidia-fs") }

// peerMemory requires what RDMA by a file system's software needs to reach the GPU's memory.
func peerMemory(s *situation) (because, next string) {
	m := s.m
	switch {
	case m.Path == nil || !m.Path.Support.PeerMem:
		return "", ""
	case !m.Driver.PeerMem.Loaded && m.CuFile.PeerType != "dmabuf":
		return "RDMA cannot reach the GPU's memory: the module nvidia_peermem is not loaded", "modprobe nvidia-peermem, or set rdma_peer_type to dmabuf in cufile.json" + guide
	case len(m.CuFile.RDMA) == 0:
		return "rdma_dev_addr_list is empty in " + configured(m, ""), "name the addresses of the RDMA cards there" + guide
	}
	return "", ""
}

// local reports whether the path, if there is one, is on drives of this machine.
func local(m *sysinfo.Machine) bool {
	return m.Path == nil || m.Path.Support.Driver == "nvme"
}

// configured returns the source of a cuFile setting.
func configured(m *sysinfo.Machine, variable string) string {
	if m.Environment[variable] != "" {
		return variable
	}
	if m.CuFile.File == "" {
		return "cuFile's defaults"
	}
	return m.CuFile.File
}

// byWhat returns how data moves directly on a recorded machine.
func byWhat(m *sysinfo.Machine) string {
	if m.NvidiaFS.Reason == "" {
		if m.NvidiaFS.Module.Version != "" {
			return "nvidia-fs " + m.NvidiaFS.Module.Version
		}
		return "nvidia-fs " + m.NvidiaFS.Version.Value
	}
	return "PCI peer-to-peer transfers"
}
