package doctor

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"strata/pkg/sysinfo"
	"strata/tests/sysinfotest"
)

// machine reads a recorded machine, which is unpacked into a folder once.
func machine(t *testing.T, below, name, path string) *sysinfo.Machine {
	t.Helper()
	dir := filepath.Join(below, name)
	if _, err := os.Stat(dir); err != nil {
		if err := sysinfotest.Unpack(filepath.Join("../../../pkg/sysinfo/testdata", name+".txtar"), dir); err != nil {
			t.Fatal(err)
		}
	}
	r, err := sysinfo.At(dir)
	if err != nil {
		t.Fatal(err)
	}
	return sysinfo.Read(context.Background(), r, sysinfo.Options{Path: path})
}

// Every rule decides somewhere, by its fact and with its next step.
func TestVerdict(t *testing.T) {
	yes := true
	straight, peers, no := &answer{true, "nvidia-fs 2.24"}, &answer{true, "PCI peer-to-peer transfers"}, &answer{false, "cuFile says no"}
	seen, below := map[string]bool{}, t.TempDir()
	for _, c := range []struct {
		machine, path          string
		change                 func(s *situation)
		backend, rule, because string
		next                   string
	}{
		{"a6000", "/data", nil, "gds", "straight", "straight into the GPU's memory: nvidia-fs 2.24.2", ""},
		{"a6000", "", nil, "gds", "straight", "straight into the GPU's memory: nvidia-fs 2.24.2", ""},
		{"a6000", "/data", func(s *situation) { s.answer = straight }, "gds", "straight", "straight into the GPU's memory: nvidia-fs 2.24", ""},
		{"a6000", "/data", func(s *situation) { s.answer = no }, "bounce", "cufile", "cuFile says no", "see docs/gpu-direct.md"},
		{"a6000", "/dev/shm", nil, "bounce", "file-system", "its file system (tmpfs on /dev/shm) is not supported: its files lie in memory, not on a device", "put the data on ext4 or xfs on NVMe"},
		{"a6000", "/home", func(s *situation) { s.answer = straight }, "bounce", "file-system", "its file system (nfs4 on /home) is not supported: it is mounted with proto=tcp, only RDMA is supported",
			"mount it with proto=rdma, port=20049, if the server and the network have RDMA"},
		{"a6000", "/data", func(s *situation) { s.noGPU = "no device" }, "host", "no-gpu", "no device", ""},
		{"a6000", "/data", func(s *situation) { s.settings = "KVIKIO_COMPAT_MODE is on" }, "bounce", "settings", "KVIKIO_COMPAT_MODE is on", "unset it"},
		{"a6000", "/data", func(s *situation) { s.model = "NVIDIA GeForce RTX 4090" }, "bounce", "gpu-model", "NVIDIA GeForce RTX 4090: GDS serves data-centre and professional cards, not GeForce",
			"use a data-centre or professional GPU"},
		{"a6000", "/data", func(s *situation) { s.library = "there is no libcufile.so.0" }, "bounce", "library", "there is no libcufile.so.0",
			"install libcufile (CUDA's package libcufile, or pip install nvidia-cufile-cu12), or name it in STRATA_LIBCUFILE; see docs/gpu-direct.md"},
		{"a6000", "/data", func(s *situation) { s.m.CuFile.Reason = "/etc/cufile.json: line 3: x" }, "bounce", "cufile-json", "cuFile's configuration cannot be used: /etc/cufile.json: line 3: x",
			"mend the file, or name another in CUFILE_ENV_PATH_JSON"},
		{"a6000", "/data", func(s *situation) { s.m.CuFile.ForceCompat = &yes }, "bounce", "force-compat", "force_compat_mode is on in /etc/cufile.json", "set it to false"},
		{"a6000", "/data", func(s *situation) {
			s.m.CuFile.ForceCompat = &yes
			s.m.Environment["CUFILE_FORCE_COMPAT_MODE"] = "true"
		}, "bounce", "force-compat", "force_compat_mode is on in CUFILE_FORCE_COMPAT_MODE",
			"set it to false"},
		{"a6000", "/data", func(s *situation) { s.m.CuFile.DenyMounts = []string{"/data/"} }, "bounce", "denied", "/etc/cufile.json denies the mount /data/", "take it from denylist.mounts"},
		{"a6000", "/data", func(s *situation) { s.m.CuFile.DenyFileSystems = []string{"xfs", "ext4"} }, "bounce", "denied", "/etc/cufile.json denies the file system ext4", "take it from denylist.filesystems"},
		{"a6000", "/data", func(s *situation) { s.m.CuFile.DenyDevices = []string{"/dev/nvme3n1"} }, "bounce", "denied", "/etc/cufile.json denies the device /dev/nvme3n1", "take it from denylist.devices"},
		{"a6000", "/data", func(s *situation) { s.m.NvidiaFS.Drivers = nil }, "bounce", "driver", "the storage driver nvme has not registered with nvidia-fs",
			"install the NVMe driver of DOCA or MLNX_OFED (--with-nvmf), or set use_pci_p2pdma in cufile.json; see docs/gpu-direct.md"},
		{"a6000", "/data", func(s *situation) { s.m.Path.Block.Parts[0].NVMe.Transport = "tcp" }, "bounce", "transport", "the drive nvme1n1 comes over TCP, only PCIe and RDMA are supported", "connect it over RDMA"},
		{"a6000", "/data", func(s *situation) { s.m.Path.Reason = "there is no /data" }, "bounce", "path", "it is not known where it lies: there is no /data", ""},
		{"a6000", "/data", func(s *situation) { s.answer = peers }, "bounce", "stacked", "it lies on md0, and of PCI peer-to-peer transfers: use_pci_p2pdma is off in /etc/cufile.json", "load nvidia-fs, or use one drive; see docs/gpu-direct.md"},
		{"mig", "/raid", func(s *situation) { s.answer, s.m.NvidiaFS.Drivers = peers, nil }, "gds", "straight", "straight into the GPU's memory: PCI peer-to-peer transfers", ""},
		{"a6000", "/data", func(s *situation) {
			s.answer, s.model, s.m.Driver.Registry, s.m.CuFile.P2PDMA = peers, "NVIDIA L40S", "RMForceStaticBar1=1", &yes
		}, "bounce", "stacked", "it lies on md0, and of PCI peer-to-peer transfers: for a RAID 0 they need kernel 7.1 and use_pci_p2pdma of raid in cufile.json", "load nvidia-fs, or use one drive; see docs/gpu-direct.md"},
		{"a6000", "/data", func(s *situation) {
			s.answer, s.model, s.m.Driver.Registry, s.m.CuFile.P2PDMA, s.m.CuFile.BlockP2PDMA["raid"], s.m.Kernel.Release.Value = peers, "NVIDIA L40S", "RMForceStaticBar1=1", &yes, true, "7.1.0"
		}, "gds", "straight", "straight into the GPU's memory: PCI peer-to-peer transfers", ""},
		{"a6000", "/", nil, "bounce", "file-system", "its file system (ext4 on /) is not supported: cuFile wants to see the option data=ordered, though that is the default",
			"mount it with data=ordered (in /etc/fstab; for the root folder rootflags=data=ordered)"},
		{"docker-no-udev", "/data", func(s *situation) { s.answer = straight }, "gds", "straight", "straight into the GPU's memory: nvidia-fs 2.24", ""},
		{"kernel-7.0", "/", func(s *situation) { s.m.Kernel.Release.Value = "6.17.5" }, "bounce", "mechanism", "the module nvidia_fs is not loaded, its source is not built for this kernel",
			"dkms install nvidia-fs/2.28.4; see docs/gpu-direct.md"},
		{"slurm-apptainer", "/well", func(s *situation) { s.answer = straight }, "bounce", "peer-memory", "RDMA cannot reach the GPU's memory: the module nvidia_peermem is not loaded",
			"modprobe nvidia-peermem, or set rdma_peer_type to dmabuf in cufile.json; see docs/gpu-direct.md"},
		{"slurm-apptainer", "/well", func(s *situation) { s.answer, s.m.Driver.PeerMem.Loaded = straight, true }, "bounce", "peer-memory", "rdma_dev_addr_list is empty in cuFile's defaults",
			"name the addresses of the RDMA cards there; see docs/gpu-direct.md"},
		{"slurm-apptainer", "/well", func(s *situation) {
			s.answer, s.m.CuFile.PeerType, s.m.CuFile.RDMA = straight, "dmabuf", []string{"10.0.0.1"}
		}, "gds", "straight", "straight into the GPU's memory: nvidia-fs 2.24", ""},
		{"compat", "/scratch", nil, "bounce", "mechanism", "the module nvidia_fs is not loaded", "load nvidia-fs: modprobe nvidia-fs; see docs/gpu-direct.md"},
		{"compat", "/scratch", func(s *situation) { s.m.CuFile.P2PDMA = &yes }, "bounce", "mechanism", "the module nvidia_fs is not loaded, and PCI peer-to-peer transfers are not possible: they need kernel 6.2 or newer",
			"load nvidia-fs: modprobe nvidia-fs; see docs/gpu-direct.md"},
		{"compat", "/scratch", func(s *situation) {
			s.m.CuFile.P2PDMA, s.m.Kernel.Release.Value, s.m.Driver.Version.Value, s.m.Driver.Registry = &yes, "6.8.0", "570.1", "RMForceStaticBar1=1;RmForceDisableIomapWC=1;"
		}, "gds", "straight", "straight into the GPU's memory: PCI peer-to-peer transfers", ""},
		{"compat", "/scratch", func(s *situation) {
			s.m.CuFile.P2PDMA, s.m.Kernel.Release.Value, s.m.Driver.Version.Value, s.m.Driver.Arch = &yes, "6.8.0", "570.1", "aarch64"
		}, "gds", "straight", "straight into the GPU's memory: PCI peer-to-peer transfers", ""},
		{"compat", "/scratch", func(s *situation) {
			s.m.CuFile.P2PDMA, s.m.Kernel.Release.Value, s.m.Driver.Version.Value = &yes, "6.8.0", "570.1"
		}, "bounce", "mechanism", `the module nvidia_fs is not loaded, and PCI peer-to-peer transfers are not possible: the driver has no NVreg_RegistryDwords="RMForceStaticBar1=1;RmForceDisableIomapWC=1;"`,
			"load nvidia-fs: modprobe nvidia-fs; see docs/gpu-direct.md"},
		{"compat", "/scratch", func(s *situation) { s.m.NvidiaFS.Module.File = "" }, "bounce", "mechanism", "the module nvidia_fs is not loaded, its source is not built for this kernel",
			"dkms install nvidia-fs/2.18.3; see docs/gpu-direct.md"},
		{"compat", "/scratch", func(s *situation) { s.m.NvidiaFS.Module.File, s.m.NvidiaFS.Source = "", "" }, "bounce", "mechanism", "the module nvidia_fs is not loaded",
			"install nvidia-fs: server_setup/install_gds.sh; see docs/gpu-direct.md"},
		{"compat", "/scratch", func(s *situation) { s.m.Driver.Open.Value = false }, "bounce", "mechanism", "the module nvidia_fs is not loaded",
			"install the open kernel modules of the driver, which nvidia-fs since 2.17.5 needs, and nvidia-fs; see docs/gpu-direct.md"},
		{"compat", "/scratch", func(s *situation) { s.m.NvidiaFS.Module.Loaded = true }, "bounce", "mechanism", "the module nvidia_fs is not loaded", "load it again: modprobe -r nvidia-fs; modprobe nvidia-fs; see docs/gpu-direct.md"},
		{"no-gpu", "/home", nil, "host", "no-gpu", "this machine has no GPU of NVIDIA", ""},
		{"no-gpu", "/home", func(s *situation) { s.noGPU = "" }, "bounce", "stacked", "it lies on vg-root of the device mapper: of stacked devices NVIDIA lists only RAID 0 of md", "put the file system on the drive itself, or on a RAID 0 of md"},
		{"docker-no-udev", "/data", nil, "bounce", "udev", "cuFile cannot see on which devices files lie: there is no /run/udev/data", "start the container with --volume /run/udev:/run/udev:ro"},
		{"docker-no-udev", "/data", func(s *situation) { s.m.Container.Kind = "apptainer" }, "bounce", "udev", "cuFile cannot see on which devices files lie: there is no /run/udev/data", "start the container with --bind /run/udev"},
		{"docker-no-udev", "/home", nil, "bounce", "file-system", "its file system (overlay on /) is not supported: it is an overlay of other file systems, as the root folder of a container is", "put the data on ext4 or xfs on NVMe"},
		{"docker-no-udev", "/data", func(s *situation) { s.noGPU = "x" }, "host", "no-gpu", "x", "start the container with --gpus all"},
		{"wsl", "/", nil, "bounce", "wsl", "GPUDirect Storage does not exist in the Windows Subsystem for Linux", "start Linux itself on this machine"},
		{"mig", "/raid", nil, "gds", "straight", "straight into the GPU's memory: nvidia-fs 2.19.7", ""},
		{"slurm-apptainer", "/well", nil, "bounce", "library", "libcufile.so.0 is not where packages put it",
			"use an image that has libcufile (made with --with_nvidia), or bind the host's and name it in STRATA_LIBCUFILE; see docs/gpu-direct.md"},
		{"slurm-apptainer", "/well", func(s *situation) { s.library = "" }, "bounce", "mechanism", "the module nvidia_fs is not loaded", "have it loaded on the host; see docs/gpu-direct.md"},
		{"slurm-apptainer", "/tmp", nil, "bounce", "transport", "it lies on sda, which is not an NVMe drive", "put the data on ext4 or xfs on NVMe"},
		{"slurm-apptainer", "/well", func(s *situation) { s.noGPU, s.m.Job.GPUs = "x", "" }, "host", "no-gpu", "x", "ask SLURM for one: --gres=gpu:1"},
		{"slurm-apptainer", "/well", func(s *situation) { s.noGPU, s.m.Job = "x", nil }, "host", "no-gpu", "x", "start the container with --nv"},
		{"lockdown", "/", nil, "bounce", "mechanism", "the module nvidia_fs is not loaded: the kernel takes only signed modules (lockdown integrity by Secure Boot)",
			"sign it and enrol the key (mokutil --import), then modprobe nvidia-fs; see docs/gpu-direct.md"},
		{"degraded-raid", "/data", nil, "bounce", "stacked", "it lies on md127, a raid10: of the levels of md NVIDIA lists only RAID 0", "make a RAID 0 of the drives for data that can be had again, or use one drive"},
		{"nfs-rdma", "/vast/a", nil, "gds", "straight", "straight into the GPU's memory: nvidia-fs 2.18.3", ""},
		{"nfs-rdma", "/vast/a", func(s *situation) { s.m.NvidiaFS.Drivers = s.m.NvidiaFS.Drivers[:1] }, "bounce", "driver", "the storage driver rpcrdma has not registered with nvidia-fs",
			"install NFS over RDMA of DOCA or MLNX_OFED (--with-nfsrdma) and load rpcrdma; see docs/gpu-direct.md"},
		{"lustre", "/ai400", nil, "gds", "straight", "straight into the GPU's memory: nvidia-fs 2.7.47", ""},
		{"lustre", "/ai400", func(s *situation) { s.m.NvidiaFS.Drivers = nil }, "bounce", "driver", "the storage driver lnet has not registered with nvidia-fs",
			"install a client of the file system that knows GPUDirect Storage: with the client of DDN EXAScaler or Lustre 2.15 or newer and an RDMA network"},
		{"kernel-7.0", "/", nil, "bounce", "mechanism", "the module nvidia_fs is not loaded, and its source 2.28.4 does not build on kernel 7.0.0-12-generic",
			"patch it: server_setup/nvfs_patch.sh, then dkms install nvidia-fs/2.28.4; see docs/gpu-direct.md"},
	} {
		s := recorded(machine(t, below, c.machine, c.path))
		if c.change != nil {
			c.change(s)
		}
		r := judge(s)
		seen[r.Rule] = true
		if r.Backend != c.backend || r.Rule != c.rule || r.Because != c.because || r.Next != c.next {
			t.Errorf("%s %s: %s by %s\n%s\n%s\nwant %s by %s\n%s\n%s", c.machine, c.path, r.Backend, r.Rule, r.Because, r.Next, c.backend, c.rule, c.because, c.next)
		}
	}
	for _, r := range rules {
		if !seen[r.name] {
			t.Errorf("no case has the rule %s", r.name)
		}
	}
}
